//! Access to the ends of a flow during a run.

use crate::build::{Carries, FlowEnds, Network};
use crate::world::Simulation;
use bentpipe_base::Instant;
use bentpipe_nodes::{Asker, Endpoint, Sink, Source, Typist, Writer};
use bentpipe_scenario::App;
use bentpipe_tcp::Connection;

/// True for flows of finite length.
pub(crate) const fn ends_itself(app: &App) -> bool {
    matches!(app, App::Transfer(_) | App::Requests { count: Some(_), .. })
}

/// Time at which the sender's last data byte was acknowledged, or the last response was complete; `None`
/// before.
pub(crate) fn finished_at(sim: &Simulation, flow: &FlowEnds) -> Option<Instant> {
    match flow.carries {
        Carries::Stream | Carries::Typing => from_end(sim, flow)?.conn.stats().finished_at,
        Carries::Answers => asker(sim, flow)?.finished_at(),
        Carries::Datagrams => None,
    }
}

/// True when the flow has finished.
pub(crate) fn finished(sim: &Simulation, flow: &FlowEnds) -> bool {
    finished_at(sim, flow).is_some()
}

/// Bytes delivered to the application so far, per flow.
pub(crate) fn delivered(net: &mut Network) -> Vec<u64> {
    (0..net.flows.len()).map(|i| delivered_by(net, i)).collect()
}

/// Bytes delivered to the application of flow `i` so far: payload of distinct datagrams, or bytes of the
/// stream read in order. For requests, the bytes of responses.
pub(crate) fn delivered_by(net: &mut Network, i: usize) -> u64 {
    let ends = net.flows[i];
    if ends.carries == Carries::Datagrams {
        return sink(&net.sim, &ends).map_or(0, Sink::bytes);
    }
    receiver(net, &ends, |c| c.received() - c.readable()).unwrap_or(0)
}

/// Mean one-way delay in milliseconds of the datagrams of flow `i` that arrived since the last call; `None`
/// if there were none.
pub(crate) fn take_delay_ms(net: &mut Network, i: usize) -> Option<f64> {
    let ends = net.flows[i];
    if ends.carries != Carries::Datagrams {
        return None;
    }
    let (host, _) = net.sim.host(ends.to.0)?;
    Some(host.sink_mut(ends.to.2)?.take_recent_delay()?.as_millis_f64())
}

/// Calls `look` with the sender's connection if it exists.
pub(crate) fn sender<T>(net: &mut Network, f: &FlowEnds, look: impl FnOnce(&Connection) -> T) -> Option<T> {
    from_end(&net.sim, f).map(|e| look(&e.conn))
}

/// Calls `look` with the receiver's connection if it exists.
pub(crate) fn receiver<T>(net: &mut Network, f: &FlowEnds, look: impl FnOnce(&Connection) -> T) -> Option<T> {
    to_end(&net.sim, f).map(|e| look(&e.conn))
}

/// The application that sends requests.
pub(crate) fn asker<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a Asker> {
    match to_end(sim, f)?.writer() {
        Writer::Ask(asker) => Some(asker),
        _ => None,
    }
}

/// The typing application.
pub(crate) fn typist<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a Typist> {
    match from_end(sim, f)?.writer() {
        Writer::Telnet(typist) => Some(typist),
        _ => None,
    }
}

/// Source of datagrams.
pub(crate) fn source<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a Source> {
    sim.peek_host(f.from.0)?.source(f.from.2)
}

/// Destination of datagrams.
pub(crate) fn sink<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a Sink> {
    sim.peek_host(f.to.0)?.sink(f.to.2)
}

fn from_end<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a Endpoint> {
    sim.peek_host(f.from.0)?.end(f.from.2, (f.to.1, f.to.2))
}

fn to_end<'a>(sim: &'a Simulation, f: &FlowEnds) -> Option<&'a Endpoint> {
    sim.peek_host(f.to.0)?.end(f.to.2, (f.from.1, f.from.2))
}
