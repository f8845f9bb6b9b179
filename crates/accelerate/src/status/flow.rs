//! Statistics of a connection.

use serde::{Deserialize, Serialize};

/// One page of the list of connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowPage {
    /// Total number of connections.
    pub all: u64,
    /// The connections of this page.
    pub flows: Vec<FlowStats>,
    /// Index where the next page begins; null on the last page.
    pub next: Option<u32>,
}

/// A connection. Pairs are LAN and satellite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowStats {
    /// Address and port of the host on the LAN side.
    pub lan: String,
    /// Address and port of the host on the satellite side.
    pub satellite: String,
    /// Side that opened it, `lan` or `satellite`; null if its SYN was not seen.
    pub opened_from: Option<String>,
    /// The subscriber's prefix.
    pub subscriber: Option<String>,
    /// State: `opening`, `established`, `closing`, `closed`.
    pub state: String,
    /// Why it is not accelerated; null if it is. `sampled` is the unaccelerated sample.
    pub why_passing: Option<String>,
    /// How it closed; null while it is open.
    pub end: Option<String>,
    /// Seconds since its first packet.
    pub age_s: f64,
    /// Payload bytes from each side.
    pub bytes: [u64; 2],
    /// Payload bytes acknowledged by the host on the satellite side.
    pub acked_bytes: u64,
    /// Goodput towards the satellite during transmission, bit/s.
    pub goodput_bps: Option<u64>,
    /// RTT of the satellite hop.
    pub rtt_ms: Option<f64>,
    /// Window last advertised by the receiver.
    pub window_bytes: u64,
    /// Window last advertised to the sender.
    pub shown_bytes: u64,
    /// Bytes held by the gateway.
    pub held_bytes: u64,
    /// Reading rate of a receiver that is slower than the hop, bit/s.
    pub reader_bps: Option<f64>,
    /// Packets lost on the hop.
    pub lost: u64,
    /// RTOs of the gateway.
    pub timeouts: u64,
    /// Duplicate segments from the sender that the gateway dropped.
    pub swallowed: u64,
}
