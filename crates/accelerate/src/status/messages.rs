//! Messages on the control socket: lines of JSON.

use super::comparison::Comparison;
use super::flow::FlowPage;
use crate::deploy::Sandbox;
use serde::{Deserialize, Serialize};

/// Maximum number of connections in an answer.
pub const PAGE: usize = 1000;

/// A request to the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Ask for its status.
    Status,
    /// List its connections in table order.
    Flows {
        /// First index: 0, or `next` of the previous page.
        #[serde(default)]
        from: u32,
        /// Maximum number of connections; at most [`PAGE`].
        #[serde(default = "page")]
        most: usize,
    },
    /// Reload the gateway file.
    Reload,
    /// Stop.
    Stop {
        /// Keep the records of connections, so that the next run resumes them.
        #[serde(default)]
        keep: bool,
    },
}

const fn page() -> usize {
    PAGE
}

/// A reply from the gateway to a request that was carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// Its status.
    Status(Box<Status>),
    /// Its connections.
    Flows(FlowPage),
    /// The request was carried out.
    Done {
        /// What was done.
        message: String,
    },
}

impl bentpipe_service::Reply for Reply {
    type Request = Request;
    const SERVICE: &'static str = "gateway";
}

/// Status of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name.
    pub name: String,
    /// Path of its gateway file.
    pub file: String,
    /// `routed` or `inline`.
    pub kind: String,
    /// Seconds since the start.
    pub uptime_s: f64,
    /// Configured rate of the hop in bit/s.
    pub rate_bps: Option<u64>,
    /// Why nothing is accelerated; null in normal operation.
    pub bypass: Option<String>,
    /// Current throughput from the LAN and from the satellite, bit/s.
    pub throughput_bps: [f64; 2],
    /// Counters of the data path.
    pub figures: GatewayCounters,
    /// Comparison of accelerated and unaccelerated connections.
    pub sample: Option<Comparison>,
    /// Flow records that could not be written.
    pub records_lost: u64,
    /// State of the sandbox.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// Scheduling priority of the data thread, and why it is not better.
    #[serde(default)]
    pub priority: String,
}

/// Counters of a data path. Pairs are LAN and satellite, the side that packets came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayCounters {
    /// Connections accelerated now.
    pub accelerated: u64,
    /// Unaccelerated connections now.
    pub passing: u64,
    /// Number of all these connections that are still being opened.
    pub opening: u64,
    /// Unaccelerated connections by reason.
    pub passing_why: Vec<(String, u64)>,
    /// Connections since the start.
    pub connections: u64,
    /// Packets received, counted as on the wire.
    pub packets: [u64; 2],
    /// Bytes received, IP headers included.
    pub bytes: [u64; 2],
    /// Bytes held now.
    pub held_bytes: u64,
    /// Maximum of the bytes held.
    pub held_peak_bytes: u64,
    /// Packets found lost on the hop.
    pub lost: u64,
    /// Packets retransmitted by the gateway.
    pub repaired: u64,
    /// Redundant copies sent before any loss.
    pub copied: u64,
    /// Keep-alives of the hop.
    #[serde(default)]
    pub keep_alives: u64,
    /// Packets received and not forwarded, by cause.
    pub not_forwarded: Vec<(String, u64)>,
    /// Packets lost at the ports, by place.
    pub port_drops: Vec<(String, u64)>,
    /// Packets that the data path could not parse and forwarded unchanged, by reason; and how often it ran
    /// out of memory or was late.
    #[serde(default)]
    pub data_path: Vec<(String, u64)>,
    /// Counters of nodes of kinds that are not built in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeFigures>,
    /// Windows that the hosts behind the hop announced, smallest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowStats>,
    /// RTT of the hop in recent handshakes, or as configured; null before it is known.
    #[serde(default)]
    pub hop_rtt_ms: Option<f64>,
    /// There were more of these hosts than `windows` counts.
    #[serde(default)]
    pub more_clients: bool,
    /// Flow routers, one for each managed direction: `to_satellite`, `to_lan`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate: Vec<NodeFigures>,
}

/// Hosts behind the hop whose largest announced windows lie between two powers of two. Each connection and
/// each host counts once, with its largest window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowStats {
    /// The largest of these windows.
    pub window_bytes: u64,
    /// Hosts.
    pub clients: u64,
    /// Their connections since the start whose handshake was seen.
    pub connections: u64,
    /// Of these, accelerated ones.
    pub accelerated: u64,
    /// Rate that the window allows over the RTT of the hop; null before that is known.
    pub limit_bps: Option<u64>,
    /// How many times more an accelerated connection can have now: its share of the hop's rate over
    /// `limit_bps`, at least 1; null without a configured rate or RTT.
    pub gain: Option<f64>,
}

/// Counters of a node of a kind that is not built in, or of a flow router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFigures {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: String,
    /// Counters by name.
    pub counters: Vec<(String, u64)>,
}
