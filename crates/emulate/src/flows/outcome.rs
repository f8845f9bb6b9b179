//! Results of flows, as reports.

use super::stream::TcpFlow;
use bentpipe_base::Instant;
use bentpipe_nodes::Writer;
use bentpipe_report::{FlowKind, FlowReport, TcpReport};
use bentpipe_scenario::FlowSpec;
use bentpipe_sim::build::FlowEnds;
use bentpipe_sim::record::Record;
use bentpipe_sim::report::{context, requests, telnet};

/// Results of the flows of a live run: those of the scenario, or those of programs.
#[derive(Clone, Debug, Default)]
pub struct FlowResults {
    /// A report for each.
    pub reports: Vec<FlowReport>,
    /// Their time series, on a time axis of their own.
    pub record: Record,
    /// Problems, one line each: connections refused or given up, datagrams that the kernel did not accept.
    pub faults: Vec<String>,
    /// Differences between the kernel and the scenario, one line each.
    pub differs: Vec<String>,
    /// True if they are the scenario's own flows, in its order.
    pub of_scenario: bool,
}

pub(super) fn tcp_report(flow: &TcpFlow) -> TcpReport {
    let application = &flow.opener.writer;
    TcpReport {
        established_s: flow.established.map(Instant::as_secs_f64),
        finished_s: flow.finished.map(Instant::as_secs_f64),
        bytes_acked: flow.acknowledged(),
        requests: if let Writer::Requests(asker) = application { Some(requests(asker)) } else { None },
        telnet: if let Writer::Telnet(typist) = application { Some(telnet(typist)) } else { None },
        ..flow.samples.report(flow.spec.sender.scheme.name)
    }
}

pub(super) fn flow_report(spec: &FlowSpec, ends: &FlowEnds, goodput_bps: f64, kind: FlowKind) -> FlowReport {
    let context = context(spec, ends.path_bps);
    FlowReport { context, ..FlowReport::new(&*spec.name, ends.start, goodput_bps, kind) }
}
