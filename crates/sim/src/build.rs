//! Values -> nodes: builds the network that a scenario describes.

use crate::routes::{Hop, RouteTable};
use crate::world::Simulation;
use bentpipe_base::{Addr, Instant, NodeId, Purpose, Rng};
use bentpipe_link::{Capacity, Channel, DropTail, Errors, Link};
use bentpipe_nodes::{Call, Host, Listener, Reader, Router, Writer};
use bentpipe_scenario as spec;
use bentpipe_tcp::Config;
use std::sync::Arc;

/// First port of a host's listeners and of its calls. Each host counts its own.
const FIRST_PORT: u32 = 1024;

/// Where a flow's two ends are.
#[derive(Clone, Copy, Debug)]
pub struct FlowEnds {
    /// The sender's host and port.
    pub from: (NodeId, Addr, u16),
    /// The receiver's host and port.
    pub to: (NodeId, Addr, u16),
    /// When it starts.
    pub start: Instant,
    /// Lowest rate on the way of the data, bit/s.
    pub path_bps: u64,
}

/// A built network with the names its reports need.
#[derive(Debug)]
pub struct Network {
    /// The network.
    pub sim: Simulation,
    /// Ends of each flow, in the scenario's order.
    pub flows: Vec<FlowEnds>,
    /// Link nodes with their names, forward and backward of each link in turn.
    pub links: Vec<(String, NodeId)>,
}

/// Builds the network of `scenario`.
pub fn build(scenario: &spec::Scenario) -> Network {
    let mut sim = Simulation::new(scenario.seed);
    let nodes = add_nodes(&mut sim, scenario);
    let (links, ports) = add_links(&mut sim, scenario, &nodes);
    let table = RouteTable::new(scenario, &ports);
    set_routes(&mut sim, scenario, &nodes, &table);
    let flows = add_flows(&mut sim, scenario, &nodes, &table);
    Network { sim, flows, links }
}

fn add_nodes(sim: &mut Simulation, scenario: &spec::Scenario) -> Vec<NodeId> {
    let jitters = |i: usize| scenario.flows.iter().any(|f| f.from == i && f.sender.jitter.is_some());
    (scenario.nodes.iter().enumerate())
        .map(|(i, node)| match node.kind {
            spec::NodeKind::Host => {
                let isn = sim.world.open_rng(&node.name, Purpose::Isn);
                let jitter = jitters(i).then(|| sim.world.open_rng(&node.name, Purpose::Jitter));
                sim.add_host(Host::new(Addr(i as u32), isn, jitter))
            }
            spec::NodeKind::Router => sim.add_router(Router::default()),
        })
        .collect()
}

/// For each node: where its ports lead.
type Ports = Vec<Vec<Hop>>;

fn add_links(
    sim: &mut Simulation,
    scenario: &spec::Scenario,
    nodes: &[NodeId],
) -> (Vec<(String, NodeId)>, Ports) {
    let mut links = Vec::new();
    let mut ports: Ports = vec![Vec::new(); nodes.len()];
    for (i, link) in scenario.links.iter().enumerate() {
        for (name, spec, a, b) in [
            (&link.name, &link.forward, link.a, link.b),
            (&link.reverse_name, &link.backward, link.b, link.a),
        ] {
            let node = direction(sim, name, spec);
            let id = sim.add_link(node);
            let port = sim.wire(nodes[a], id);
            sim.wire(id, nodes[b]);
            ports[a].push(Hop { to: b, link: i, port, bps: spec.rate.bps() });
            links.push((name.clone(), id));
        }
    }
    (links, ports)
}

fn direction(sim: &mut Simulation, name: &str, d: &spec::DirectionSpec) -> Link {
    let lossy = !d.loss.is_zero() || !d.ber.is_zero();
    let errors =
        lossy.then(|| Errors { rng: sim.world.open_rng(name, Purpose::Errors), loss: d.loss, ber: d.ber });
    let capacity = match d.buffer {
        spec::Buffer::Packets(n) => Capacity::Packets(n),
        spec::Buffer::Bytes(n) => Capacity::Bytes(n),
    };
    Link::new(DropTail::new(capacity), Channel::new(d.rate, d.delay, d.framing, errors))
}

fn set_routes(sim: &mut Simulation, scenario: &spec::Scenario, nodes: &[NodeId], table: &RouteTable<'_>) {
    for (i, node) in scenario.nodes.iter().enumerate() {
        let Some(router) = sim.router(nodes[i]).filter(|_| node.kind == spec::NodeKind::Router) else {
            continue;
        };
        for host in scenario.flows.iter().flat_map(|f| [f.from, f.to]) {
            if let Some(hop) = table.next(i, host) {
                router.route(Addr(host as u32), hop.port);
            }
        }
    }
}

fn add_flows(
    sim: &mut Simulation,
    scenario: &spec::Scenario,
    nodes: &[NodeId],
    table: &RouteTable<'_>,
) -> Vec<FlowEnds> {
    let mut ends = Vec::with_capacity(scenario.flows.len());
    let mut configs = Configs::default();
    let mut ports = PortCounter { used: vec![0; nodes.len()] };
    for flow in &scenario.flows {
        let (server, client) = (ports.next(flow.to), ports.next(flow.from));
        let start = start_of(scenario.seed, flow);
        let (from, to) = (Addr(flow.from as u32), Addr(flow.to as u32));
        if let Some((host, _)) = sim.host(nodes[flow.to]) {
            let listener = Listener {
                config: configs.share(&flow.receiver),
                writer: Writer::Silent,
                reader: reader(&flow.reader),
            };
            host.listen(server, listener);
        }
        if let Some((host, mut cx)) = sim.host(nodes[flow.from]) {
            let config = configs.share(&flow.sender);
            let call = Call { port: client, to: (to, server), config, writer: writer(&flow.app) };
            host.connect_at(&mut cx, start, call);
        }
        let path_bps = table.lowest_rate(flow.from, flow.to);
        let (from, to) = ((nodes[flow.from], from, client), (nodes[flow.to], to, server));
        ends.push(FlowEnds { from, to, start, path_bps });
    }
    ends
}

/// The next port of each host.
struct PortCounter {
    used: Vec<u32>,
}

impl PortCounter {
    fn next(&mut self, host: usize) -> u16 {
        let port = FIRST_PORT + self.used[host];
        self.used[host] += 1;
        // the scenario parser allows at most 50 000 flows at a host
        u16::try_from(port).expect("a host has fewer flows than ports")
    }
}

/// Flows that are configured alike share one configuration: less memory to walk through.
#[derive(Default)]
struct Configs(Vec<Arc<Config>>);

impl Configs {
    fn share(&mut self, config: &Config) -> Arc<Config> {
        // flows of one group follow each other, so the last ones are the likely ones
        if let Some(same) = self.0.iter().rev().take(4).find(|c| ***c == *config) {
            return Arc::clone(same);
        }
        self.0.push(Arc::new(config.clone()));
        Arc::clone(&self.0[self.0.len() - 1])
    }
}

fn start_of(seed: u64, flow: &spec::FlowSpec) -> Instant {
    match flow.start {
        spec::Start::At(at) => at,
        spec::Start::Uniform(from, to) => {
            from + Rng::new(seed, &flow.name, Purpose::Start).up_to(to.since(from))
        }
    }
}

const fn writer(app: &spec::App) -> Writer {
    match *app {
        spec::App::Bulk => Writer::Bulk,
        spec::App::Transfer(size) => Writer::Transfer(size.0),
        spec::App::Rate(rate) => Writer::Paced { rate, since: None, written: 0 },
    }
}

const fn reader(reader: &spec::Reader) -> Reader {
    match *reader {
        spec::Reader::Eager => Reader::Eager,
        spec::Reader::Slow(rate) => Reader::Slow { rate, read: 0, since: None },
        spec::Reader::Pause { from, to } => Reader::Pause(from, to),
        spec::Reader::StopAt(at) => Reader::StopAt(at),
    }
}
