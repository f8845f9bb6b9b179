//! Access to the ends of a flow during a run.

use crate::build::{FlowEnds, Network};
use bentpipe_base::Instant;
use bentpipe_network::Network as Simulation;
use bentpipe_nodes::{DatagramSink, DatagramSource, Endpoint, RequestClient, TelnetClient, Writer};
use bentpipe_scenario::App;
use bentpipe_tcp::Connection;

/// True for flows of finite length.
pub(crate) const fn is_finite(app: &App) -> bool {
    matches!(app, App::Transfer(_) | App::Lasting(_) | App::Requests { count: Some(_), .. })
}

/// Time at which the sender's last data byte was acknowledged, or the last response was complete; `None`
/// before.
pub(crate) fn finished_at(sim: &Simulation, flow: &FlowEnds) -> Option<Instant> {
    match flow.app {
        App::Requests { .. } => request_client(sim, flow)?.finished_at,
        App::Udp { .. } => None,
        _ => from_end(sim, flow)?.conn.stats().finished_at,
    }
}

/// Bytes delivered to the application of flow `i` so far: payload of distinct datagrams, or bytes of the
/// stream read in order. For requests, the bytes of responses.
pub(crate) fn delivered_by(net: &Network, i: usize) -> u64 {
    let ends = &net.flows[i];
    if matches!(ends.app, App::Udp { .. }) {
        return sink(&net.sim, ends).map_or(0, |sink| sink.bytes);
    }
    receiver(&net.sim, ends).map_or(0, |c| c.received() - c.readable())
}

/// Payload bytes of flow `i` that have arrived so far, each once, also those that wait for earlier ones or
/// for the application to read them.
pub(crate) fn arrived_by(net: &Network, i: usize) -> u64 {
    let ends = &net.flows[i];
    if matches!(ends.app, App::Udp { .. }) {
        return delivered_by(net, i);
    }
    receiver(&net.sim, ends).map_or(0, |c| c.receiver().arrived())
}

/// Retransmissions of flow `i` so far; 0 for UDP.
pub(crate) fn retransmits_by(net: &Network, i: usize) -> u64 {
    sender(&net.sim, &net.flows[i]).map_or(0, |c| c.stats().retransmits)
}

/// Mean one-way delay in milliseconds of the datagrams that arrived since the last call; `None` if there were
/// none.
pub(crate) fn take_delay_ms(net: &mut Network, ends: &FlowEnds) -> Option<f64> {
    let (host, _) = net.sim.host(ends.to.0)?;
    Some(host.sink_mut(ends.to.2)?.take_recent_delay()?.as_millis_f64())
}

/// Reads what the report of flow `i` will use, if there is such a flow. It changes nothing.
pub(crate) fn touch_sender(net: &Network, i: usize) {
    let host = net.flows.get(i).and_then(|ends| net.sim.peek_host(ends.from.0));
    core::hint::black_box(host.map_or(0, |host| host.touch(None)));
}

/// Frees the connection of flow `i`, of which nothing more is read.
pub(crate) fn free_ends(net: &mut Network, i: usize) {
    let FlowEnds { from, to, .. } = net.flows[i];
    for (node, _, port) in [from, to] {
        if let Some((host, _)) = net.sim.host(node) {
            host.free_end(port);
        }
    }
}

pub(crate) fn sender<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a Connection> {
    from_end(sim, f).map(|e| &e.conn)
}

pub(crate) fn receiver<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a Connection> {
    to_end(sim, f).map(|e| &e.conn)
}

/// The application that sends requests.
pub(crate) fn request_client<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a RequestClient> {
    match &to_end(sim, f)?.writer {
        Writer::Requests(client) => Some(client),
        _ => None,
    }
}

/// The typing application.
pub(crate) fn telnet_client<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a TelnetClient> {
    match &from_end(sim, f)?.writer {
        Writer::Telnet(client) => Some(client),
        _ => None,
    }
}

pub(crate) fn source<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a DatagramSource> {
    sim.peek_host(f.from.0)?.source(f.from.2)
}

pub(crate) fn sink<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a DatagramSink> {
    sim.peek_host(f.to.0)?.sink(f.to.2)
}

fn from_end<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a Endpoint> {
    sim.peek_host(f.from.0)?.end(f.from.2, (f.to.1, f.to.2))
}

fn to_end<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a Endpoint> {
    sim.peek_host(f.to.0)?.end(f.to.2, (f.from.1, f.from.2))
}
