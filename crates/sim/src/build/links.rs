//! Creates the links of a scenario.

use crate::routes::Hop;
use bentpipe_base::{NodeId, Rate};
use bentpipe_gateway::SATELLITE;
use bentpipe_link::{CapacityTrace, DirectionSpec, Orbit};
use bentpipe_network::{Network as Simulation, WireEnd};
use bentpipe_scenario as spec;
use std::collections::BTreeMap;

/// For each node, the destinations of its ports.
pub(super) type Ports = Vec<Vec<Hop>>;

/// Middleboxes, gateways, custom nodes and flow routers at the start of each direction, in the order in which
/// packets pass. Port 0 of each leads back, port 1 leads on.
pub(super) type Chains = BTreeMap<spec::Direction, Vec<NodeId>>;

/// Adds the links. Returns their names and nodes, and the destinations of each node's ports.
pub(super) fn add(
    sim: &mut Simulation,
    scenario: &spec::Scenario,
    nodes: &[NodeId],
    chains: &Chains,
) -> (Vec<(String, NodeId)>, Ports) {
    let mut links = Vec::new();
    let mut ports: Ports = vec![Vec::new(); nodes.len()];
    for (i, link) in scenario.links.iter().enumerate() {
        for (name, spec, a, b, backward) in [
            (&link.name, &link.forward, link.a, link.b, false),
            (&link.reverse_name, &link.backward, link.b, link.a, true),
        ] {
            let node = spec.link(name, &mut sim.world);
            let id = sim.add_link(node);
            let at =
                |backward| chains.get(&spec::Direction { link: i, backward }).map_or(&[][..], Vec::as_slice);
            let chain = at(backward);
            let port = sim.wire(nodes[a], chain.first().copied().unwrap_or(id));
            sim.wire_chain(nodes[a], chain, id);
            let end = at(!backward).last().map_or(nodes[b].into(), |last| WireEnd::from((*last, SATELLITE)));
            sim.wire(id, end);
            if spec.mtu.is_some() {
                // port 1: messages to the senders of packets that are too long
                let back = chain.last().map_or(nodes[a].into(), |last| WireEnd::from((*last, SATELLITE)));
                sim.wire(id, back);
            }
            ports[a].push(Hop { to: b, link: i, port, bps: nominal_bps(spec) });
            links.push((name.clone(), id));
        }
    }
    (links, ports)
}

/// Returns the rate with which the report compares goodput: the link's own rate, or the mean of the trace
/// or slots that replace it.
fn nominal_bps(d: &DirectionSpec) -> u64 {
    let Some(dynamics) = &d.dynamics else { return d.rate.bps() };
    let trace = dynamics.capacity.as_ref().and_then(CapacityTrace::mean_rate).map(Rate::bps);
    let slots = match &dynamics.orbit {
        Some(Orbit::Slots(slots)) => slots.rate.map(|(least, most)| least.bps().midpoint(most.bps())),
        _ => None,
    };
    trace.or(slots).unwrap_or(d.rate.bps())
}
