//! Creates the flows of a scenario as connections and datagrams of hosts.

use super::FlowEnds;
use crate::routes::RouteTable;
use bentpipe_base::{Addr, Instant, NodeId, Purpose, Rng, World};
use bentpipe_network::Network as Simulation;
use bentpipe_nodes::{
    ConnectRequest, DatagramRate, DatagramStream, Lasting, Listener, Paced, Reader, RequestClient,
    RequestServer, TelnetClient, Writer,
};
use bentpipe_scenario as spec;
use std::sync::Arc;

/// First port that each host uses.
const FIRST_PORT: u32 = 1024;

pub(super) fn add(
    sim: &mut Simulation,
    scenario: &spec::Scenario,
    nodes: &[NodeId],
    table: &RouteTable<'_>,
) -> Vec<FlowEnds> {
    let mut ends = Vec::with_capacity(scenario.flows.len());
    let mut used = vec![0_u32; nodes.len()];
    let mut next_port = |host: usize| {
        used[host] += 1;
        // the scenario parser limits a host to 50 000 flows
        u16::try_from(FIRST_PORT + used[host] - 1).expect("a host has fewer flows than ports")
    };
    for flow in &scenario.flows {
        let (server, client) = (next_port(flow.to), next_port(flow.from));
        let opens = (nodes[flow.from], Addr(flow.from as u32), client);
        let accepts = (nodes[flow.to], Addr(flow.to as u32), server);
        let (from, to) = if acceptor_sends(flow) { (accepts, opens) } else { (opens, accepts) };
        let path_bps = table.lowest_rate(from.1.0 as usize, to.1.0 as usize);
        let start = start_of(scenario.seed, flow);
        ends.push(FlowEnds { app: flow.app, from, to, start, path_bps });
        match flow.app {
            spec::App::Udp { size, pattern } => {
                let rng = sim.world.open_rng(&flow.name, Purpose::Application);
                let stream =
                    DatagramStream { port: client, to: (accepts.1, server), size, pattern, rng, start };
                add_datagrams(sim, opens, accepts, (flow, &stream));
            }
            _ => add_connection(sim, flow, (opens, accepts, start)),
        }
    }
    ends
}

/// True if the host that accepts the connection sends the data.
const fn acceptor_sends(flow: &spec::FlowSpec) -> bool {
    matches!(flow.app, spec::App::Requests { .. })
}

/// Index of the host that sends the flow's data.
pub(super) const fn sending_host(flow: &spec::FlowSpec) -> usize {
    if acceptor_sends(flow) { flow.to } else { flow.from }
}

/// A host with its address and a port.
type End = (NodeId, Addr, u16);

/// `from` and `to` of the result are the source and destination of the data, whoever connects.
fn add_connection(sim: &mut Simulation, flow: &spec::FlowSpec, (opens, accepts, start): (End, End, Instant)) {
    let sending = (Arc::clone(&flow.sender), Reader::Eager);
    let receiving = (Arc::clone(&flow.receiver), flow.reader);
    let (opening, accepting) = if acceptor_sends(flow) { (receiving, sending) } else { (sending, receiving) };
    let (writer, answerer) = writers(&mut sim.world, flow);
    if let Some((host, _)) = sim.host(accepts.0) {
        host.listen(accepts.2, Listener { config: accepting.0, writer: answerer, reader: accepting.1 });
    }
    if let Some((host, mut cx)) = sim.host(opens.0) {
        let to = (accepts.1, accepts.2);
        let call = ConnectRequest { port: opens.2, to, config: opening.0, writer, reader: opening.1 };
        host.connect_at(&mut cx, start, call);
    }
}

/// Returns the writing applications of the connecting and the accepting end. They use a random stream of
/// the flow's own.
pub fn writers(world: &mut World, flow: &spec::FlowSpec) -> (Writer, Writer) {
    let mut rng = || world.open_rng(&flow.name, Purpose::Application);
    let writer = match flow.app {
        spec::App::Bulk | spec::App::Udp { .. } => Writer::Bulk,
        spec::App::Transfer(size) => Writer::Transfer(size.0),
        spec::App::Rate(rate) => Writer::Paced(Paced::new(rate)),
        spec::App::Lasting(length) => Writer::Lasting(Lasting::new(length)),
        spec::App::Requests { request, response, think, count } => {
            let client = RequestClient::new(request, response, think, count, rng());
            let server = RequestServer::new(request, response);
            return (Writer::Requests(Box::new(client)), Writer::Responses(server));
        }
        spec::App::Telnet { size, gap } => Writer::Telnet(Box::new(TelnetClient::new(size, gap, rng()))),
    };
    (writer, Writer::Silent)
}

fn add_datagrams(
    sim: &mut Simulation,
    from: End,
    to: End,
    (flow, stream): (&spec::FlowSpec, &DatagramStream),
) {
    let asks = flow.asks_for_datagrams();
    if let Some((host, _)) = sim.host(to.0) {
        let sink = host.receive_datagrams(to.2, (from.1, from.2));
        if let Some(signalling) = flow.receiver.signalling.as_ref().filter(|_| asks) {
            sink.signal(signalling.ask.take, flow.sender.ip);
        }
    }
    let rate = flow.sender.signalling.as_ref().filter(|_| asks).map(|signalling| DatagramRate {
        ask: signalling.ask.clone(),
        ip: flow.sender.ip,
        when_refused: flow.datagrams.when_refused,
    });
    let until = flow.datagrams.lasting.map_or(Instant::NEVER, |lasting| stream.start + lasting);
    if let Some((host, mut cx)) = sim.host(from.0) {
        host.send_datagrams_until(&mut cx, stream, until, rate.as_ref());
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
