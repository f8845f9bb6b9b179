//! Builds the network of a scenario.

mod flows;
mod links;
mod routers;

pub use flows::writers;

use crate::routes::RouteTable;
use bentpipe_base::{Addr, Instant, NodeId, Purpose};
use bentpipe_flow_router::RouterConfig;
use bentpipe_gateway::Gateway;
use bentpipe_network::Network as Simulation;
use bentpipe_nodes::{Host, Middlebox, Router};
use bentpipe_scenario as spec;
use std::sync::Arc;

/// The two ends of a flow. `from` sends the data; of requests it is the host that answers, although the
/// other one opens the connection.
#[derive(Clone, Copy, Debug)]
pub struct FlowEnds {
    /// The application, which determines where the measurements are.
    pub app: spec::App,
    /// The sender's host and port.
    pub from: (NodeId, Addr, u16),
    /// The receiver's host and port.
    pub to: (NodeId, Addr, u16),
    /// Start time.
    pub start: Instant,
    /// Lowest rate on the path of the data, bit/s.
    pub path_bps: u64,
}

/// A built network, with the names that reports need.
#[derive(Debug)]
pub struct Network {
    /// The network.
    pub sim: Simulation,
    /// Ends of each flow, in the scenario's order.
    pub flows: Vec<FlowEnds>,
    /// Names and nodes of links, forward and backward of each link in turn.
    pub links: Vec<(Arc<str>, NodeId)>,
    /// Names and nodes of gateways, in the scenario's order.
    pub gateways: Vec<(String, NodeId)>,
    /// Names and nodes of flow routers, in the scenario's order.
    pub flow_routers: Vec<(String, NodeId)>,
    /// For each flow router, who pays: the prefixes of its rules, after those without a rule.
    pub payers: Vec<Vec<String>>,
    /// Names, kinds and nodes of custom nodes, in the scenario's order.
    pub customs: Vec<(String, &'static str, NodeId)>,
    /// For each node of the scenario, the open port in place of a host, if any.
    pub ports: Vec<Option<NodeId>>,
}

impl Network {
    /// Chains the links that can be ([`Simulation::chain`]); returns how many are told of packets.
    pub fn chain(&mut self) -> usize {
        let both = |flow: &FlowEnds| [(flow.from.0, flow.to.1), (flow.to.0, flow.from.1)];
        self.sim.chain(self.flows.iter().flat_map(both))
    }
}

/// Builds the network of `scenario`.
pub fn build(scenario: &spec::Scenario) -> Network {
    assemble(scenario, false)
}

/// Builds the links and routers of `scenario` with an open port in place of each host, and no flows: a
/// driver supplies the packets. The address of a host is `Addr(i)`, with its index among the nodes.
pub fn build_open(scenario: &spec::Scenario) -> Network {
    assemble(scenario, true)
}

fn assemble(scenario: &spec::Scenario, open: bool) -> Network {
    let mut sim = Simulation::new(scenario.seed);
    let is_host = |i: &usize| scenario.nodes[*i].kind == spec::NodeKind::Host;
    let nodes = add_nodes(&mut sim, scenario, open);
    if !open {
        name_hosts(&mut sim, scenario);
    }
    let mut chains = links::Chains::new();
    let mut customs = Vec::new();
    for middlebox in &scenario.middleboxes {
        let id = sim.add(Box::new(Middlebox::new(middlebox.config.clone())));
        customs.push((middlebox.name.clone(), "middlebox", id));
        chains.entry(middlebox.hop).or_default().push(id);
    }
    let mut gateways = Vec::new();
    for gateway in &scenario.gateways {
        let id = sim.add_gateway(Gateway::new(gateway.config.clone()).with_policy(gateway.policy.clone()));
        gateways.push((gateway.name.clone(), id));
        chains.entry(gateway.hop).or_default().push(id);
    }
    for (at, custom) in &scenario.custom_nodes {
        let id = sim.add(custom.node().expect("its keys were read with the file"));
        customs.push((custom.name.clone(), custom.kind, id));
        chains.entry(*at).or_default().push(id);
    }
    let mut flow_routers = Vec::new();
    let payers = scenario.flow_routers.iter().map(routers::payers).collect();
    for router in &scenario.flow_routers {
        let link = &scenario.links[router.hop.link];
        let from = if router.hop.backward { link.b } else { link.a };
        let framing = link.direction(router.hop.backward).framing;
        // hosts do not lower the hop limit
        let hops = u8::from(!is_host(&from));
        let config = RouterConfig { hops, is_live: open, ..router.config.clone() };
        let id = routers::add(&mut sim, router, config, framing);
        flow_routers.push((router.name.clone(), id));
        // last, next to the link
        chains.entry(router.hop).or_default().push(id);
    }
    let (links, hops) = links::add(&mut sim, scenario, &nodes, &chains);
    let ends: Vec<usize> = if open {
        (0..nodes.len()).filter(is_host).collect()
    } else {
        scenario.flows.iter().flat_map(|f| [f.from, f.to]).collect()
    };
    let table = RouteTable::new(scenario, &hops, &ends);
    set_routes(&mut sim, &nodes, &table, &ends);
    let flows = if open { Vec::new() } else { flows::add(&mut sim, scenario, &nodes, &table) };
    let ports = (0..nodes.len()).map(|i| (open && is_host(&i)).then_some(nodes[i])).collect();
    Network { sim, flows, links, gateways, flow_routers, payers, customs, ports }
}

/// Gives hosts the addresses that they have in live runs, because rules of gateways and flow routers refer to
/// them.
fn name_hosts(sim: &mut Simulation, scenario: &spec::Scenario) {
    let gateways_refer = scenario.gateways.iter().any(|gateway| !gateway.policy.rules.is_empty());
    if !gateways_refer && scenario.flow_routers.is_empty() {
        return;
    }
    let hosts = scenario.nodes.iter().enumerate().filter(|(_, node)| node.kind == spec::NodeKind::Host);
    for (index, (node, _)) in (0..u16::MAX).zip(hosts) {
        let [v4, _] = spec::host_addresses(0, index);
        sim.world.addresses.assign(Addr(node as u32), v4);
    }
}

/// Returns the lowest rate on the path between two hosts in bit/s; 0 without a path.
pub fn lowest_rate(scenario: &spec::Scenario, from: usize, to: usize) -> u64 {
    let mut sim = Simulation::new(scenario.seed);
    let nodes: Vec<NodeId> = scenario.nodes.iter().map(|_| sim.add_open_end()).collect();
    let (_, hops) = links::add(&mut sim, scenario, &nodes, &links::Chains::new());
    RouteTable::new(scenario, &hops, &[from, to]).lowest_rate(from, to)
}

fn add_nodes(sim: &mut Simulation, scenario: &spec::Scenario, open: bool) -> Vec<NodeId> {
    let mut jitters = vec![false; scenario.nodes.len()];
    for flow in scenario.flows.iter().filter(|flow| flow.sender.jitter.is_some()) {
        jitters[flows::sending_host(flow)] = true;
    }
    if !open {
        sim.reserve_hosts(scenario.nodes.iter().filter(|node| node.kind == spec::NodeKind::Host).count());
    }
    (scenario.nodes.iter().enumerate())
        .map(|(i, node)| match node.kind {
            spec::NodeKind::Host if open => sim.add_open_end(),
            spec::NodeKind::Host => {
                let isn = sim.world.open_rng(&node.name, Purpose::Isn);
                let jitter = jitters[i].then(|| sim.world.open_rng(&node.name, Purpose::Jitter));
                sim.add_host(Host::new(Addr(i as u32), isn, jitter))
            }
            spec::NodeKind::Router => sim.add_router(Router::default()),
        })
        .collect()
}

fn set_routes(sim: &mut Simulation, nodes: &[NodeId], table: &RouteTable<'_>, ends: &[usize]) {
    for (i, node) in nodes.iter().enumerate() {
        let Some(router) = sim.router(*node) else { continue };
        for &host in ends {
            if let Some(hop) = table.next(i, host) {
                router.route(Addr(host as u32), hop.port);
            }
        }
    }
}
