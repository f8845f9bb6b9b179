//! Flow routers, which follow the rate of the links before which they stand.

use bentpipe_base::{Addr, Cx, Input, Instant, Node, NodeId, Rate, Size, Slot};
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
    /// The rate that applies now, unless somebody has set another.
    scheduled: Rate,
    /// Somebody outside has set the rate.
    is_set: bool,
    /// Its MTU, and the framing of the link, for rates that are set.
    config: RouterConfig,
    framing: Size,
}

/// Adds a flow router with this configuration to the network. `framing`: of the link.
pub(super) fn add(
    sim: &mut Simulation,
    spec: &FlowRouterSpec,
    config: RouterConfig,
    framing: Size,
) -> NodeId {
    let rates: VecDeque<_> = spec.rates.iter().copied().collect();
    let (first, now) = (rates.front().map(|(at, _)| *at), sim.now());
    let (router, scheduled) = (FlowRouter::new(config.clone()), config.rate);
    let id = sim.add(Box::new(ScheduledRouter { router, rates, scheduled, is_set: false, config, framing }));
    if let Some(at) = first {
        sim.world.cx(now, id).wake(CHANGE, at);
    }
    id
}

/// Who may pay at a flow router.
pub(super) fn payers(spec: &FlowRouterSpec) -> Vec<String> {
    let rules = spec.config.policy.rules.iter().map(|rule| rule.from.to_string());
    core::iter::once("others".to_owned()).chain(rules).collect()
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
            self.scheduled = rate;
            if !self.is_set {
                self.router.set_rate(cx, rate);
            }
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

    fn reads_signalling(&self) -> bool {
        self.router.reads_signalling()
    }

    fn link_rate(&mut self, cx: &mut Cx<'_>, rate: Option<Rate>) {
        self.is_set = rate.is_some();
        let of_packets = |rate| self.config.of_packets(rate, self.framing);
        self.router.set_rate(cx, rate.map_or(self.scheduled, of_packets));
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
