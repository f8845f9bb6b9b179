//! The figures of a connection.

use serde::{Deserialize, Serialize};

/// Some of the connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowPage {
    /// How many there are in all.
    pub all: u64,
    /// These.
    pub flows: Vec<FlowFigures>,
    /// Where the next page begins; null when this is the last.
    pub next: Option<u32>,
}

/// A connection. Pairs are for LAN and satellite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Address and port of the host at the LAN.
    pub lan: String,
    /// Address and port of the host behind the satellite.
    pub satellite: String,
    /// `lan` or `satellite`: who opened it; null when nobody saw.
    pub opened_from: Option<String>,
    /// The subscriber's prefix.
    pub subscriber: Option<String>,
    /// How far it is: `opening`, `established`, `closing`, `closed`.
    pub state: String,
    /// Why it is not accelerated; null when it is. `sampled` is the group that is left alone.
    pub why_passing: Option<String>,
    /// How it ended; null while it lives.
    pub end: Option<String>,
    /// Seconds since its first packet.
    pub age_s: f64,
    /// Payload from each side.
    pub bytes: [u64; 2],
    /// Payload that the host behind the satellite has acknowledged.
    pub acked_bytes: u64,
    /// Payload per time towards the satellite, while there was some.
    pub goodput_bps: Option<u64>,
    /// Round-trip time of the hop.
    pub rtt_ms: Option<f64>,
    /// Window that the receiver advertised last.
    pub window_bytes: u64,
    /// Window that the sender was shown last.
    pub shown_bytes: u64,
    /// Bytes held for it.
    pub held_bytes: u64,
    /// Rate of a reader that is slower than the hop, bit/s.
    pub reader_bps: Option<f64>,
    /// Losses found in the hop.
    pub lost: u64,
    /// Timeouts of the gateway's own.
    pub timeouts: u64,
    /// Segments of the sender that were swallowed.
    pub swallowed: u64,
}
