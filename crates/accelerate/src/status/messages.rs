//! What is said over the control socket: lines of JSON, and the figures in them.

use super::comparison::Comparison;
use super::flow::FlowPage;
use crate::deploy::Sandbox;
use bentpipe_service::Refusal;
use serde::{Deserialize, Serialize};

/// Most connections in an answer.
pub const PAGE: usize = 1000;

/// A line to the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// How it is.
    Status,
    /// Its connections, in the order of its table.
    Flows {
        /// Where to begin: 0, or `next` of the page before.
        #[serde(default)]
        from: u32,
        /// At most so many; never more than [`PAGE`].
        #[serde(default = "page")]
        most: usize,
    },
    /// Read the file again.
    Reload,
    /// End as planned.
    Stop {
        /// Leave the records of connections, so that the next run goes on with them.
        #[serde(default)]
        keep: bool,
    },
}

const fn page() -> usize {
    PAGE
}

/// A line from the gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// How it is.
    Status(Box<Status>),
    /// Its connections.
    Flows(FlowPage),
    /// It is done.
    Done {
        /// What.
        message: String,
    },
    /// It is not.
    Refused(Refusal),
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl bentpipe_service::Reply for Reply {
    type Request = Request;
    const SERVICE: &'static str = "gateway";

    fn accepted(self) -> Result<Self, Refusal> {
        if let Self::Refused(refusal) = self { Err(refusal) } else { Ok(self) }
    }
}

/// How a gateway is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// `routed` or `inline`.
    pub kind: String,
    /// Seconds since it began.
    pub uptime_s: f64,
    /// Rate of the hop in bit/s, where it is configured.
    pub rate_bps: Option<u64>,
    /// Why nothing is accelerated, when that is so.
    pub bypass: Option<String>,
    /// What came in lately from the LAN and from the satellite, bit/s.
    pub throughput_bps: [f64; 2],
    /// What the data path counts.
    pub figures: Figures,
    /// Accelerated connections beside those left alone.
    pub sample: Option<Comparison>,
    /// Flow records that could not be written.
    pub records_lost: u64,
    /// What the gateway can still reach.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// How the scheduler treats the thread that carries packets, and why no better.
    #[serde(default)]
    pub priority: String,
}

/// What a data path counts. Pairs are for LAN and satellite: where packets came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Connections that are accelerated now.
    pub accelerated: u64,
    /// Connections that pass now.
    pub passing: u64,
    /// Of all these the ones that are being opened.
    pub opening: u64,
    /// Those that pass, by reason.
    pub passing_why: Vec<(String, u64)>,
    /// Connections since it began.
    pub connections: u64,
    /// Wire packets that came in.
    pub packets: [u64; 2],
    /// Their bytes, IP headers included.
    pub bytes: [u64; 2],
    /// Bytes held now.
    pub held_bytes: u64,
    /// The most that were held.
    pub held_peak_bytes: u64,
    /// Packets found lost on the hop.
    pub lost: u64,
    /// Packets sent again.
    pub repaired: u64,
    /// Further copies sent ahead of any loss.
    pub copied: u64,
    /// Packets that came in and did not go out, by cause.
    pub not_forwarded: Vec<(String, u64)>,
    /// Packets that the ports lost, by place.
    pub port_drops: Vec<(String, u64)>,
    /// What the data path could not read, so that it passed, by reason; and how often it had no room, or came
    /// late.
    #[serde(default)]
    pub data_path: Vec<(String, u64)>,
    /// What nodes of kinds that are not built in have counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeFigures>,
}

/// What a node of a kind that is not built in has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFigures {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Its counters, by name.
    pub counters: Vec<(String, u64)>,
}
