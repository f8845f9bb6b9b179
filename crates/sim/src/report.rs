//! What a run found out: one value, printed as text or as JSON. Of a simulated run nothing in it depends on the machine or the wall clock.

use crate::app_report::transfers;
pub use crate::app_report::{DelayReport, RequestsReport, TelnetReport, TransferReport, UdpReport};
pub use crate::gateway_report::{GatewayFlows, GatewayReport};
pub use crate::live_report::{LatenessReport, LiveReport, PortDropsReport};
pub use crate::probe_report::ProbesReport;
pub use crate::reference::ReferenceReport;
use bentpipe_base::Duration;
use bentpipe_scenario::{InstrumentKind, InstrumentSpec, ParamValue, Scenario};
use serde::Serialize;
use serde_json::{Map, Value};

/// The result of a run. Field order is the order of the JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of this format.
    pub schema: u32,
    /// The scenario's title.
    pub scenario: String,
    /// bentpipe's version.
    pub version: &'static str,
    /// Seed of all random streams; absent where nobody chose one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Parameters as resolved.
    pub parameters: Map<String, Value>,
    /// Sums over all flows.
    pub total: Total,
    /// Per flow.
    pub flows: Vec<FlowReport>,
    /// Transfers that several connections carry together; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<TransferReport>,
    /// Per direction of a link.
    pub links: Vec<LinkReport>,
    /// Per gateway; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewayReport>,
    /// What the scenario's instruments saw; absent without instruments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instruments: Vec<InstrumentReport>,
    /// Figures of others beside those of this run; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceReport>,
    /// Of a live run; absent from simulated ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveReport>,
}

/// What one instrument saw: a row for each interval.
#[derive(Clone, Debug, Serialize)]
pub struct InstrumentReport {
    /// Name.
    pub name: String,
    /// `side-channel`, `counters` or `bins`.
    pub kind: &'static str,
    /// What the cells of a row are, unit last; the first is the end of the interval.
    pub columns: Vec<&'static str>,
    /// The rows; null where there was nothing to see.
    pub rows: Vec<Vec<f64>>,
}

impl InstrumentReport {
    /// An empty table for an instrument.
    pub fn new(spec: &InstrumentSpec) -> Self {
        let (kind, columns): (_, &[&'static str]) = match spec.kind {
            InstrumentKind::SideChannel { .. } => {
                ("side-channel", &["time_s", "fade_db", "link_ber", "measured_ber", "errored_seconds"])
            }
            InstrumentKind::Counters { .. } => {
                ("counters", &["time_s", "packets", "bytes", "packets_in_error", "packets_dropped"])
            }
            InstrumentKind::Bins { .. } => (
                "bins",
                &["time_s", "goodput_bytes_per_s", "packets", "packets_in_error", "packet_error_share"],
            ),
        };
        Self { name: spec.name.clone(), kind, columns: columns.to_vec(), rows: Vec::new() }
    }
}

/// Sums over all flows.
#[derive(Clone, Debug, Serialize)]
pub struct Total {
    /// In-order bytes delivered to applications x 8 / measure interval, bit/s.
    pub goodput_bps: f64,
    /// Jain's fairness index of the flows' goodputs; null when nothing was delivered.
    pub jain: Option<f64>,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowReport {
    /// Name.
    pub name: String,
    /// Scheme; null for datagrams, whose figures are in `udp`: then what only TCP has is null or zero.
    pub tcp: Option<&'static str>,
    /// Seconds since the start of the run.
    pub start_s: f64,
    /// When the sender's handshake ended; null if it did not.
    pub established_s: Option<f64>,
    /// When the sender had the acknowledgment of its last data byte, or the last answer was complete; null if it did not finish.
    pub finished_s: Option<f64>,
    /// When the sender first had the receiver's whole window outstanding; null if it never had.
    pub opened_s: Option<f64>,
    /// In-order bytes delivered to the application x 8 / measure interval, bit/s.
    pub goodput_bps: f64,
    /// New payload sent x 8 / time, from three round trips after the handshake to the sending of the last new byte, bit/s; null when that is too short.
    pub steady_bps: Option<f64>,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Of these, retransmissions.
    pub retransmits: u64,
    /// Segments sent once more where a grant left time for it, beside those; absent where the scheme does not do that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Round-trip times; null without a sample.
    pub rtt_ms: Quantiles,
    /// Share of the flow's time limited by each cause; sum 1.
    pub limited_by: LimitedBy,
    /// What the scheme became when it could not go on as itself; absent while it is itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<FallbackReport>,
    /// Of requests; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestsReport>,
    /// Of typing; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telnet: Option<TelnetReport>,
    /// Of datagrams; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpReport>,
    /// Of schemes that send probe segments; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<ProbesReport>,
    /// What the words need and the JSON does not repeat.
    #[serde(skip)]
    pub context: FlowContext,
}

/// A scheme that is not itself any more.
#[derive(Clone, Debug, Serialize)]
pub struct FallbackReport {
    /// The scheme that it is now.
    pub to: &'static str,
    /// Why.
    pub why: &'static str,
    /// Since when, in seconds since the start of the run.
    pub at_s: f64,
    /// Data segments that were sent before.
    pub after_segments: u64,
}

/// What a flow's sentences compare it with.
#[derive(Clone, Debug, Default)]
pub struct FlowContext {
    /// Lowest rate on the way of the data, bit/s.
    pub path_bps: u64,
    /// The receiver's window as a user reads it.
    pub receive_window: String,
    /// The receiving application does not read everything at once.
    pub slow_reader: bool,
    /// The sender's buffer as a user reads it.
    pub send_buffer: String,
}

/// Times in milliseconds; null without a value.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Quantiles {
    /// Smallest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

/// Shares of time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct LimitedBy {
    /// Opening the connection.
    pub handshake: f64,
    /// The application had nothing to send.
    pub application: f64,
    /// The send buffer was full.
    pub send_buffer: f64,
    /// The peer's window.
    pub receiver_window: f64,
    /// The congestion window.
    pub congestion_window: f64,
    /// Pacing or sender jitter.
    pub pacing: f64,
    /// Repairing losses.
    pub recovery: f64,
}

impl LimitedBy {
    /// Keys and shares in the order of the JSON.
    pub const fn shares(&self) -> [(&'static str, f64); 7] {
        [
            ("handshake", self.handshake),
            ("application", self.application),
            ("send_buffer", self.send_buffer),
            ("receiver_window", self.receiver_window),
            ("congestion_window", self.congestion_window),
            ("pacing", self.pacing),
            ("recovery", self.recovery),
        ]
    }

    /// The mean over several flows.
    pub fn mean<'a>(all: impl ExactSizeIterator<Item = &'a Self>) -> Self {
        let n = all.len().max(1) as f64;
        all.fold(Self::default(), |m, l| Self {
            handshake: m.handshake + l.handshake / n,
            application: m.application + l.application / n,
            send_buffer: m.send_buffer + l.send_buffer / n,
            receiver_window: m.receiver_window + l.receiver_window / n,
            congestion_window: m.congestion_window + l.congestion_window / n,
            pacing: m.pacing + l.pacing / n,
            recovery: m.recovery + l.recovery / n,
        })
    }
}

/// One direction of a link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkReport {
    /// Name.
    pub name: String,
    /// Share of the run spent serialising.
    pub utilisation: f64,
    /// Bytes carried x 8 / measure interval, framing included, bit/s; absent unless the scenario asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carried_bps: Option<f64>,
    /// Packets serialised.
    pub packets: u64,
    /// Drops by cause.
    pub drops: Map<String, Value>,
    /// Packets marked CE in the queue; absent from links whose queue marks none ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked: Option<u64>,
    /// Packets waiting, the one in service not counted.
    pub queue_packets: QueueReport,
}

/// Packets waiting.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueueReport {
    /// Mean over time.
    pub mean: f64,
    /// Most at any time.
    pub peak: u32,
}

impl Report {
    /// Puts a report together; sums and transfers follow from its flows, which are in the scenario's order where they are the scenario's.
    pub fn assemble(
        scenario: &Scenario,
        ran: Duration,
        flows: Vec<FlowReport>,
        links: Vec<LinkReport>,
        instruments: Vec<InstrumentReport>,
    ) -> Self {
        let sum: f64 = flows.iter().map(|f| f.goodput_bps).sum();
        let squares: f64 = flows.iter().map(|f| f.goodput_bps * f.goodput_bps).sum();
        let jain = (squares > 0.0).then(|| sum * sum / (flows.len() as f64 * squares));
        Self {
            schema: 1,
            scenario: scenario.title.clone(),
            version: env!("CARGO_PKG_VERSION"),
            seed: Some(scenario.seed),
            simulated_s: ran.as_secs_f64(),
            parameters: scenario.parameters.iter().map(|(k, v)| (k.clone(), json(v))).collect(),
            total: Total { goodput_bps: sum, jain },
            transfers: transfers(scenario, &flows),
            flows,
            links,
            gateways: Vec::new(),
            instruments,
            references: Vec::new(),
            live: None,
        }
    }

    /// The report as one JSON object, pretty-printed.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

fn json(value: &ParamValue) -> Value {
    match value {
        ParamValue::Text(t) => Value::from(t.as_str()),
        ParamValue::Number(n) => Value::from(*n),
        ParamValue::Integer(n) => Value::from(*n),
        ParamValue::Switch(b) => Value::from(*b),
    }
}
