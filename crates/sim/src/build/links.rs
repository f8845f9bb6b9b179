//! Links of a scenario as nodes.

use crate::routes::Hop;
use crate::world::Simulation;
use bentpipe_base::{NodeId, Rate};
use bentpipe_gateway::SATELLITE;
use bentpipe_link::{CapacityTrace, DirectionSpec, Orbit};
use bentpipe_network::End;
use bentpipe_scenario as spec;
use std::collections::BTreeMap;

/// For each node: where its ports lead.
pub(super) type Ports = Vec<Vec<Hop>>;

/// What stands at the beginning of a direction, in the order in which packets that go into it pass: gateways
/// and nodes whose first port leads back, and whose second leads on.
pub(super) type Chains = BTreeMap<spec::Direction, Vec<NodeId>>;

/// Links, and where each node's ports lead.
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
            let end = at(!backward).last().map_or(nodes[b].into(), |last| End::from((*last, SATELLITE)));
            sim.wire(id, end);
            ports[a].push(Hop { to: b, link: i, port, bps: nominal_bps(spec) });
            links.push((name.clone(), id));
        }
    }
    (links, ports)
}

/// What the report compares goodput with: the link's own rate, or the mean of the trace or of the slots that
/// take its place.
fn nominal_bps(d: &DirectionSpec) -> u64 {
    let Some(dynamics) = &d.dynamics else { return d.rate.bps() };
    let trace = dynamics.capacity.as_ref().and_then(CapacityTrace::mean_rate).map(Rate::bps);
    let slots = match &dynamics.orbit {
        Some(Orbit::Slots(slots)) => slots.rate.map(|(least, most)| least.bps().midpoint(most.bps())),
        _ => None,
    };
    trace.or(slots).unwrap_or(d.rate.bps())
}
