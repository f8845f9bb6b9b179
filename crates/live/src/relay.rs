//! The network of an emulated scenario: its links, routers and gateways, with ports for the kernel's packets
//! in place of the hosts.

use bentpipe_base::{NodeId, Size};
use bentpipe_driver::{Hosts, LiveNetwork, Unit};
use bentpipe_link::Discipline;
use bentpipe_scenario::Scenario;
use bentpipe_sim::build::{Network, build_open};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Links of at least this rate and without impairments pass super-packets whole: 64 KB take 52 us.
const UNLIMITED_BPS: u64 = 10_000_000_000;

/// The names of a network's nodes and links; the driver has the network itself.
#[derive(Clone, Debug)]
pub struct Names(Rc<RefCell<Network>>);

impl Names {
    /// Calls `act` with the names and the network.
    pub fn with<T>(&self, net: &mut LiveNetwork, act: impl FnOnce(&mut Network) -> T) -> T {
        let built = &mut *self.0.borrow_mut();
        core::mem::swap(&mut built.sim, &mut net.network);
        let done = act(built);
        core::mem::swap(&mut built.sim, &mut net.network);
        done
    }

    /// Directions of links with their nodes: forward and backward of each link in turn.
    pub fn links(&self) -> Vec<(Arc<str>, NodeId)> {
        self.0.borrow().links.clone()
    }
}

/// Builds the network of `scenario`; its ports are the hosts, in order.
pub fn network(scenario: &Scenario, hosts: Hosts) -> (LiveNetwork, Names) {
    let mut built = build_open(scenario);
    let ports: Vec<_> =
        built.ports.iter().enumerate().filter_map(|(host, id)| Some(((*id)?, host))).collect();
    built.sim.pass_whole = passes_whole(scenario);
    let network = core::mem::replace(&mut built.sim, bentpipe_sim::Simulation::new(0));
    let net =
        LiveNetwork::new(network, ports, Unit::Packet, Size(u64::MAX)).routed(hosts, scenario.nodes.len());
    (net, Names(Rc::new(RefCell::new(built))))
}

/// True if no link does anything that needs wire packets.
fn passes_whole(scenario: &Scenario) -> bool {
    let mut directions = scenario.links.iter().flat_map(|l| [&l.forward, &l.backward]);
    directions.all(|d| {
        d.discipline == Discipline::Fifo
            && d.dynamics.is_none()
            && d.loss.is_zero()
            && d.ber.is_zero()
            && d.mtu.is_none()
            && d.rate.bps() >= UNLIMITED_BPS
    })
}
