//! Creates the links of a scenario.

use crate::routes::{Hop, Ports};
use bentpipe_base::{NodeId, Rate};
use bentpipe_gateway::SATELLITE;
use bentpipe_link::{CapacityTrace, DirectionSpec, Orbit};
use bentpipe_network::{Network as Simulation, WireEnd};
use bentpipe_scenario as spec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Middleboxes, gateways, custom nodes and flow routers at the start of each direction, in the order in which
/// packets pass. Port 0 of each leads back, port 1 leads on.
pub(super) type Chains = BTreeMap<spec::Direction, Vec<NodeId>>;

/// Adds the links. Returns their names and nodes, and the destinations of each node's ports.
pub(super) fn add(
    sim: &mut Simulation,
    scenario: &spec::Scenario,
    nodes: &[NodeId],
    chains: &Chains,
) -> (Vec<(Arc<str>, NodeId)>, Ports) {
    let count = 2 * scenario.links.len();
    let (mut links, mut hops) = (Vec::with_capacity(count), Vec::with_capacity(count));
    sim.reserve_links(count);
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
            hops.push(Hop { to: b, port, bps: nominal_bps(spec) });
            links.push((Arc::clone(name), id));
        }
    }
    (links, Ports::new(scenario, hops))
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
