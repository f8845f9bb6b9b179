//! Results of the flows, as reports.

use super::datagrams::UdpFlow;
use super::stream::TcpFlow;
use bentpipe_base::Instant;
use bentpipe_nodes::Writer;
use bentpipe_report::{FlowKind, FlowReport, TcpReport};
use bentpipe_scenario::FlowSpec;
use bentpipe_sim::build::FlowEnds;
use bentpipe_sim::record::Record;
use bentpipe_sim::report::{context, datagrams, requests, telnet};

/// Results of all flows.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When the run ended.
    pub until: Instant,
    /// A report for each flow, in the scenario's order.
    pub flows: Vec<FlowReport>,
    /// Time series of the flows, on a time axis of their own.
    pub record: Record,
    /// Problems, one line each: connections refused or given up, datagrams that the kernel did not accept.
    pub faults: Vec<String>,
}

/// The report of a TCP flow.
pub(super) fn stream_report(flow: &TcpFlow, ends: &FlowEnds, goodput_bps: f64) -> FlowReport {
    let (spec, application) = (flow.spec(), flow.application());
    let tcp = TcpReport {
        established_s: flow.established.map(Instant::as_secs_f64),
        finished_s: flow.finished.map(Instant::as_secs_f64),
        bytes_acked: flow.acknowledged(),
        requests: if let Writer::Ask(asker) = application { Some(requests(asker)) } else { None },
        telnet: if let Writer::Telnet(typist) = application { Some(telnet(typist)) } else { None },
        ..flow.samples.report(spec.sender.scheme.name)
    };
    flow_report(spec, ends, goodput_bps, FlowKind::Tcp(tcp))
}

/// The report of a UDP flow.
pub(super) fn datagram_report(
    flow: &UdpFlow,
    spec: &FlowSpec,
    ends: &FlowEnds,
    goodput_bps: f64,
) -> FlowReport {
    flow_report(spec, ends, goodput_bps, FlowKind::Udp(datagrams(flow.sent, &flow.sink)))
}

fn flow_report(spec: &FlowSpec, ends: &FlowEnds, goodput_bps: f64, kind: FlowKind) -> FlowReport {
    let context = context(spec, ends.path_bps);
    FlowReport { context, ..FlowReport::new(&*spec.name, ends.start, goodput_bps, kind) }
}
