//! Flow routers, which follow the rate of the links before which they stand.

use bentpipe_base::{Addr, Cx, Input, Instant, Node, NodeId, Rate, Slot};
use bentpipe_flow_router::{FlowRouter, RouterConfig};
use bentpipe_network::Network as Simulation;
use bentpipe_scenario::FlowRouterSpec;
use std::collections::VecDeque;

/// Timer of the next change of the rate; the router itself has others.
const CHANGE: Slot = Slot(u32::MAX);

/// A flow router with the times at which its rate changes.
struct ScheduledRouter {
    router: FlowRouter,
    /// Changes to come, in the order of time.
    rates: VecDeque<(Instant, Rate)>,
}

/// Adds a flow router to the network. `hops`: by how much the node before it lowers the hop limit.
pub(super) fn add(sim: &mut Simulation, spec: &FlowRouterSpec, hops: u8) -> NodeId {
    let rates: VecDeque<_> = spec.rates.iter().copied().collect();
    let (first, now) = (rates.front().map(|(at, _)| *at), sim.now());
    let router = FlowRouter::new(RouterConfig { hops, ..spec.config.clone() });
    let id = sim.add(Box::new(ScheduledRouter { router, rates }));
    if let Some(at) = first {
        sim.world.cx(now, id).wake(CHANGE, at);
    }
    id
}

impl ScheduledRouter {
    /// Makes the changes that are due, and requests a wake-up for the next one.
    fn change(&mut self, cx: &mut Cx<'_>) {
        while let Some((at, rate)) = self.rates.front().copied() {
            if at > cx.now {
                cx.wake(CHANGE, at);
                return;
            }
            self.rates.pop_front();
            self.router.set_rate(cx, rate);
        }
    }
}

impl Node for ScheduledRouter {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Timer(CHANGE) => self.change(cx),
            other => self.router.handle(cx, other),
        }
    }

    fn takes_super_packets(&self) -> bool {
        self.router.takes_super_packets()
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.router.release(cx);
    }

    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        self.router.addresses(each);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.router.counters(each);
    }
}
