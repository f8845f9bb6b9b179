//! What came out of the flows, in the words of a report.

use super::datagrams::UdpFlow;
use super::stream::TcpFlow;
use bentpipe_base::{Duration, Instant};
use bentpipe_nodes::{Asker, Typist, Writer};
use bentpipe_scenario::FlowSpec;
use bentpipe_sim::build::FlowEnds;
use bentpipe_sim::record::Record;
use bentpipe_sim::report::{
    DelayReport, FlowContext, FlowReport, LimitedBy, Quantiles, RequestsReport, TelnetReport, UdpReport,
};

/// What came out of all flows.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When the run ended.
    pub until: Instant,
    /// A report for each flow, in the scenario's order.
    pub flows: Vec<FlowReport>,
    /// Series of the flows, on a time axis of their own.
    pub record: Record,
    /// What went wrong, a line each: connections that were refused or given up, datagrams that the kernel did not take.
    pub faults: Vec<String>,
}

/// Bytes delivered in the measure interval x 8 / its length.
pub(super) fn goodput(bytes: u64, interval: Duration) -> f64 {
    if interval.is_zero() { 0.0 } else { bytes as f64 * 8.0 / interval.as_secs_f64() }
}

/// The report of a flow over TCP.
pub(super) fn stream_report(flow: &TcpFlow, ends: &FlowEnds, goodput_bps: f64) -> FlowReport {
    let (spec, info) = (flow.spec(), &flow.samples.last);
    FlowReport {
        tcp: Some(spec.sender.scheme.name),
        established_s: flow.established.map(Instant::as_secs_f64),
        finished_s: flow.finished.map(Instant::as_secs_f64),
        bytes_acked: flow.acknowledged(),
        segments_sent: u64::from(info.data_out),
        retransmits: u64::from(info.retransmits),
        copies: None,
        timeouts: u64::from(info.timeouts.unwrap_or(0)),
        rtt_ms: flow.samples.round_trips(),
        limited_by: flow.samples.limited_by(),
        requests: match flow.application() {
            Writer::Ask(asker) => Some(requests(asker)),
            _ => None,
        },
        telnet: match flow.application() {
            Writer::Telnet(typist) => Some(telnet(typist)),
            _ => None,
        },
        ..blank(spec, ends, goodput_bps)
    }
}

/// The report of a flow of datagrams.
pub(super) fn datagram_report(
    flow: &UdpFlow,
    spec: &FlowSpec,
    ends: &FlowEnds,
    goodput_bps: f64,
) -> FlowReport {
    let sink = &flow.sink;
    FlowReport {
        udp: Some(UdpReport {
            sent: flow.sent,
            received: sink.received(),
            lost: sink.lost(),
            duplicates: sink.duplicates(),
            reordered: sink.reordered(),
            delay_ms: DelayReport {
                mean: sink.mean_delay().map(Duration::as_millis_f64),
                quantiles: Quantiles::of(sink.delay()),
            },
        }),
        ..blank(spec, ends, goodput_bps)
    }
}

fn blank(spec: &FlowSpec, ends: &FlowEnds, goodput_bps: f64) -> FlowReport {
    FlowReport {
        name: spec.name.clone(),
        tcp: None,
        start_s: ends.start.as_secs_f64(),
        established_s: None,
        finished_s: None,
        opened_s: None,
        goodput_bps,
        steady_bps: None,
        bytes_acked: 0,
        segments_sent: 0,
        retransmits: 0,
        copies: None,
        timeouts: 0,
        rtt_ms: Quantiles::default(),
        limited_by: LimitedBy::default(),
        fallback: None,
        requests: None,
        telnet: None,
        udp: None,
        probes: None,
        context: FlowContext::of(spec, ends.path_bps),
    }
}

fn requests(asker: &Asker) -> RequestsReport {
    RequestsReport { completed: asker.completed(), response_ms: Quantiles::of(asker.times()) }
}

fn telnet(typist: &Typist) -> TelnetReport {
    TelnetReport {
        writes: typist.writes(),
        acknowledged: typist.times().count(),
        ack_ms: Quantiles::of(typist.times()),
    }
}
