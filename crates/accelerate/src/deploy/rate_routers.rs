//! The flow routers of a gateway: nodes of its chain, and access to them on the data thread.
//!
//! The one of the direction to the satellite has its senders on the LAN; that of the other direction is
//! turned, and has them behind the satellite. Both stand before the gateway, which delays packets: a router
//! polices the rate at which senders send.

use crate::status::NodeFigures;
use bentpipe_base::{Addr, Cx, Input, Node, NodeId};
use bentpipe_driver::LiveNetwork;
use bentpipe_flow_router::{FlowRouter, RouterConfig};
use bentpipe_network::{ChainNode, Network};
use bentpipe_scenario::gateway_file::ManagedRates;
use std::cell::RefCell;
use std::rc::Rc;

/// Kind of these nodes in the status.
const KIND: &str = "flow-router";

/// A flow router as a node, shared with the requests between turns.
#[derive(Clone)]
struct SharedRouter(Rc<RefCell<FlowRouter>>);

impl Node for SharedRouter {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        self.0.borrow_mut().handle(cx, input);
    }

    fn takes_super_packets(&self) -> bool {
        self.0.borrow().takes_super_packets()
    }

    fn reads_signalling(&self) -> bool {
        self.0.borrow().reads_signalling()
    }

    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        self.0.borrow().addresses(each);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.0.borrow().counters(each);
    }
}

/// One managed direction.
struct Managed {
    name: &'static str,
    id: NodeId,
    router: SharedRouter,
}

/// The flow routers; none if rates are not told.
#[derive(Default)]
pub(super) struct RateRouters(Vec<Managed>);

impl RateRouters {
    /// Adds the flow routers to a network; returns them as a part of its chain too.
    pub(super) fn add(network: &mut Network, rates: Option<&ManagedRates>) -> (Self, Vec<ChainNode>) {
        let (mut all, mut chain) = (Vec::new(), Vec::new());
        for (name, config, is_turned) in configs(rates) {
            let router = SharedRouter(Rc::new(RefCell::new(FlowRouter::new(config.clone()))));
            let id = network.add(Box::new(router.clone()));
            all.push(Managed { name, id, router });
            chain.push(ChainNode { id, is_turned });
        }
        (Self(all), chain)
    }

    /// Applies new configurations; the directions are the same.
    pub(super) fn reconfigure(
        &self,
        net: &mut LiveNetwork,
        rates: Option<&ManagedRates>,
    ) -> Result<(), String> {
        net.with(|network| {
            let now = network.now();
            for (managed, (_, config, _)) in self.0.iter().zip(configs(rates)) {
                let cx = &mut network.world.cx(now, managed.id);
                let done = managed.router.0.borrow_mut().reconfigure(cx, config.clone());
                done.map_err(|why| why.to_string())?;
            }
            Ok(())
        })
    }

    /// Counters and the rate that is shared out, for each direction.
    pub(super) fn figures(&self) -> Vec<NodeFigures> {
        let figures = |managed: &Managed| {
            let router = managed.router.0.borrow();
            let mut counters = vec![("rate_bps".to_owned(), router.config().rate.bps())];
            router.counters(&mut |key, n| counters.push((key.to_owned(), n)));
            NodeFigures { name: managed.name.to_owned(), kind: KIND.to_owned(), counters }
        };
        self.0.iter().map(figures).collect()
    }
}

/// Name, configuration, and whether the router is turned, for each managed direction.
fn configs(rates: Option<&ManagedRates>) -> impl Iterator<Item = (&'static str, &RouterConfig, bool)> {
    rates.into_iter().flat_map(|rates| {
        let inward = rates.inward.as_ref().map(|config| ("to_lan", config, true));
        [("to_satellite", &rates.outward, false)].into_iter().chain(inward)
    })
}

/// Why a running gateway cannot change from `old` to `new`.
pub(super) fn refusal(old: Option<&ManagedRates>, new: Option<&ManagedRates>) -> Option<String> {
    let directions = |rates| configs(rates).map(|(name, ..)| name).collect::<Vec<_>>();
    if directions(old) != directions(new) {
        return Some("which directions [rate] manages cannot change while packets pass".to_owned());
    }
    let mut both = configs(old).zip(configs(new));
    both.find_map(|((_, old, _), (_, new, _))| old.can_become(new).err()).map(|why| format!("[rate]: {why}"))
}

#[cfg(test)]
#[path = "rate_routers_tests.rs"]
mod tests;
