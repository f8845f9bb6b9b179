//! Report of a flow.

use super::probes;
use crate::build::{FlowEnds, Network};
use crate::flow;
use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_nodes::{DatagramSink, RequestClient, TelnetClient};
use bentpipe_report::{
    DelayReport, FallbackReport, FlowContext, FlowKind, FlowReport, LimitedBy, Quantiles, RateChangeReport,
    RateReport, RequestsReport, TcpReport, TelnetReport, UdpReport, rate_bps,
};
use bentpipe_scenario::{App, FlowSpec, Reader, Scenario};
use bentpipe_tcp::cc::Fallback;
use bentpipe_tcp::probes::Probes;
use bentpipe_tcp::{Connection, Limit, RateChange, RateView, ReceiveBuffer, Scheme};
use std::sync::Arc;

/// Reports on flow `i` with the given goodput. `last` is the context of the flow before it, then that of this
/// one.
pub(crate) fn flow_report(
    scenario: &Scenario,
    net: &Network,
    (i, goodput_bps): (usize, f64),
    last: &mut Option<FlowContext>,
) -> FlowReport {
    let (spec, ends) = (&scenario.flows[i], net.flows[i]);
    let kind = match (flow::source(&net.sim, &ends), flow::sink(&net.sim, &ends)) {
        (Some(source), Some(sink)) => {
            let rate = source.rate().map(|view| rate(&view).into());
            FlowKind::from(UdpReport { rate, ..datagrams(source.sent, sink) })
        }
        _ => FlowKind::from(connection(scenario, net, i, &ends)),
    };
    let alike = |other: &FlowSpec| {
        let [sender, receiver] = [(&other.sender, &spec.sender), (&other.receiver, &spec.receiver)];
        Arc::ptr_eq(sender.0, sender.1) && Arc::ptr_eq(receiver.0, receiver.1) && other.reader == spec.reader
    };
    // thousands of flows that are alike share its words
    let known = last.take().filter(|_| i > 0 && alike(&scenario.flows[i - 1]));
    let mut context = known.unwrap_or_else(|| context(spec, 0));
    context.path_bps = ends.path_bps;
    *last = Some(context.clone());
    if let ReceiveBuffer::Auto { max, .. } = spec.receiver.receive_buffer
        && let Some(grown) = flow::receiver(&net.sim, &ends).map(|c| c.receiver().window.buffer())
        && grown < max.0
    {
        context.receive_window = format!("{}, which could grow up to {max}", rounded(grown)).into();
    }
    if !scenario.gateways.is_empty() {
        let shown = flow::sender(&net.sim, &ends).map_or(0, |c| c.path().peer_window.0);
        set_advertised_window(&mut context, spec, shown);
    }
    FlowReport { context, ..FlowReport::new(Arc::clone(&spec.name), ends.start, goodput_bps, kind) }
}

fn connection(scenario: &Scenario, net: &Network, i: usize, ends: &FlowEnds) -> TcpReport {
    let requests = flow::request_client(&net.sim, ends).map(|client| requests(client).into());
    let telnet = flow::telnet_client(&net.sim, ends).map(|client| telnet(client).into());
    TcpReport {
        finished_s: flow::finished_at(&net.sim, ends).map(Instant::as_secs_f64),
        // a flow that has not started has no application yet
        requests: matches!(ends.app, App::Requests { .. }).then(|| requests.unwrap_or_default()),
        telnet: matches!(ends.app, App::Telnet { .. }).then(|| telnet.unwrap_or_default()),
        ..sending_end(scenario, i, flow::sender(&net.sim, ends), net.sim.now())
    }
}

/// Report of flow `i` without its application, from its sending end; `None` before that exists.
pub fn sending_end(
    scenario: &Scenario,
    i: usize,
    connection: Option<&Connection>,
    now: Instant,
) -> TcpReport {
    let counters = connection.map_or_else(report_of_unstarted_flow, |c| sender_counters(c, now));
    let spec = scenario.flows.get(i);
    TcpReport {
        scheme: spec.map_or(counters.scheme, |spec| spec.sender.scheme.name.into()),
        finished_s: connection.and_then(|c| c.stats().finished_at).map(Instant::as_secs_f64),
        probes: connection
            .zip(spec)
            .and_then(|(c, spec)| Some(probes::probes(scenario, &spec.sender, c)?.into())),
        ..counters
    }
}

/// Report of the sending end of a connection outside of scenarios, which started at `start`. Goodput counts
/// acknowledged bytes up to the last acknowledgment.
pub fn sender_report(name: String, connection: &Connection, start: Instant, now: Instant) -> FlowReport {
    let finished = connection.stats().finished_at;
    let tcp = TcpReport {
        finished_s: finished.map(Instant::as_secs_f64),
        probes: probes::of_connection(connection).map(Box::new),
        ..sender_counters(connection, now)
    };
    let goodput_bps = rate_bps(tcp.bytes_acked, finished.unwrap_or(now).since(start));
    let context = FlowContext {
        receive_window: rounded(connection.path().peer_window.0).into(),
        send_buffer: connection.config().send_buffer.map_or_else(String::new, |s| s.to_string()).into(),
        ..FlowContext::default()
    };
    FlowReport { context, ..FlowReport::new(name, start, goodput_bps, FlowKind::from(tcp)) }
}

/// Values that the sending end knows.
fn sender_counters(connection: &Connection, now: Instant) -> TcpReport {
    let s = connection.stats();
    TcpReport {
        scheme: connection.config().scheme.name.into(),
        established_s: s.established_at.map(Instant::as_secs_f64),
        opened_s: s.opened_at.map(Instant::as_secs_f64),
        steady_bps: s.steady.bps(),
        fallback: connection.fallback().map(|to| fallback(to).into()),
        bytes_acked: s.bytes_acked.0,
        segments_sent: s.segments_sent,
        retransmits: s.retransmits,
        // a scheme with probes reports its copies as probes
        copies: connection.probes().filter(|_| !connection.config().scheme.probes()).map(Probes::sent),
        timeouts: s.timeouts,
        rtt_ms: Quantiles::of(&s.rtt),
        limited_by: LimitedBy::of(&connection.limited_by(now)),
        rate: connection.rate().map(|view| rate(&view).into()),
        ..TcpReport::default()
    }
}

/// The rate that a sender asked for.
fn rate(view: &RateView<'_>) -> RateReport {
    let change = |change: &RateChange| RateChangeReport {
        at_s: change.at.as_secs_f64(),
        bps: change.rate.bps(),
        cause: change.cause.to_owned(),
    };
    RateReport {
        encoding: view.encoding.word().to_owned(),
        asked_bps: view.asked.bps(),
        granted_bps: view.granted.map(Rate::bps),
        state: view.state.word().to_owned(),
        changes: view.changes.iter().map(change).collect(),
    }
}

/// Report of a flow that has not started.
fn report_of_unstarted_flow() -> TcpReport {
    TcpReport { limited_by: LimitedBy::of(&[Duration::ZERO; Limit::COUNT]), ..TcpReport::default() }
}

fn fallback(Fallback { to, why, at, segments }: Fallback) -> FallbackReport {
    let (to, why) = (to.to_owned(), why.to_owned());
    FallbackReport { to, why, at_s: at.as_secs_f64(), after_segments: segments }
}

/// Measurements of the application that sends requests.
pub fn requests(client: &RequestClient) -> RequestsReport {
    RequestsReport { completed: client.completed, response_ms: Quantiles::of(&client.times) }
}

/// Measurements of the typing application.
pub fn telnet(client: &TelnetClient) -> TelnetReport {
    let times = &client.times;
    TelnetReport { writes: client.writes, acknowledged: times.count(), ack_ms: Quantiles::of(times) }
}

/// Measurements of `sent` datagrams.
pub fn datagrams(sent: u64, sink: &DatagramSink) -> UdpReport {
    UdpReport {
        sent,
        received: sink.received,
        lost: sink.lost(),
        duplicates: sink.duplicates,
        reordered: sink.reordered,
        delay_ms: DelayReport {
            mean: sink.mean_delay().map(Duration::as_millis_f64),
            quantiles: Quantiles::of(&sink.delay),
        },
        rate: None,
    }
}

/// Context of the text report for a flow on a path of `path_bps` bit/s.
pub fn context(spec: &FlowSpec, path_bps: u64) -> FlowContext {
    FlowContext {
        path_bps,
        receive_window: match spec.receiver.receive_buffer {
            ReceiveBuffer::Fixed(size) => size.to_string(),
            ReceiveBuffer::Auto { max, .. } => format!("up to {max}"),
        }
        .into(),
        slow_reader: spec.reader != Reader::Eager,
        send_buffer: spec.sender.send_buffer.map_or_else(String::new, |s| s.to_string()).into(),
        ..FlowContext::default()
    }
}

/// Adds to the context of each flow what the table of schemes says of its own, or of that to which it fell
/// back. A name that is not in the table, as the kernel has some, counts as one that follows losses.
pub fn describe_schemes(flows: &mut [FlowReport]) {
    // of the last name: most flows have the same
    let mut known: Option<(String, bool)> = None;
    for flow in flows {
        let Some(tcp) = flow.tcp() else { continue };
        let name = tcp.fallback.as_ref().map_or(&*tcp.scheme, |fallback| &*fallback.to);
        let ignores = |scheme: Scheme| scheme.growth.algorithm().ignores_losses;
        if known.as_ref().is_none_or(|(last, _)| last != name) {
            known = Some((name.to_owned(), Scheme::named(name).is_some_and(ignores)));
        }
        flow.context.ignores_losses = known.as_ref().is_some_and(|(_, ignores)| *ignores);
    }
}

/// Sets the window that the sender was shown, in bytes: a gateway may show another one than the receiver's.
pub fn set_advertised_window(context: &mut FlowContext, spec: &FlowSpec, shown: u64) {
    let announced = spec.receiver.receive_buffer.max();
    if shown > announced.0 {
        let words = format!("{}, as a gateway shows it in place of {announced}", rounded(shown));
        context.receive_window = words.into();
    }
}

/// Formats "194 kB" or "1.2 MB".
fn rounded(bytes: u64) -> String {
    if bytes < 1_000_000 {
        format!("{:.0} kB", bytes as f64 / 1e3)
    } else {
        format!("{:.1} MB", bytes as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_say_whether_losses_hold_down_their_windows() {
        let ignores = |scheme: &str, fallback: Option<&str>| {
            let to = |to: &str| FallbackReport {
                to: to.to_owned(),
                why: String::new(),
                at_s: 0.0,
                after_segments: 0,
            };
            let tcp = TcpReport {
                scheme: scheme.to_owned().into(),
                fallback: fallback.map(|name| to(name).into()),
                ..TcpReport::default()
            };
            let mut flows = [FlowReport::new("a", Instant::ZERO, 0.0, FlowKind::from(tcp))];
            describe_schemes(&mut flows);
            flows[0].context.ignores_losses
        };
        let those: Vec<&str> = Scheme::NAMES.into_iter().filter(|name| ignores(name, None)).collect();
        assert_eq!(those, ["bbr", "bbr3", "explicit-rate"]);
        assert!(!ignores("explicit-rate", Some("cubic")) && ignores("cubic", Some("bbr")));
        // a scheme that only the kernel has
        assert!(!ignores("bbr-like", None));
    }
}
