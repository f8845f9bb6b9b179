//! What applications measure for themselves, and transfers over several connections.

use crate::number;
use crate::quantiles::Quantiles;
use serde::{Deserialize, Serialize};

/// Questions and answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct RequestsReport {
    /// Answers that are complete.
    pub completed: u64,
    /// From the writing of a request's first byte to the reading of its answer's last.
    pub response_ms: Quantiles,
}

/// Typing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct TelnetReport {
    /// Writes made.
    pub writes: u64,
    /// Of these, acknowledged.
    pub acknowledged: u64,
    /// From a write to the acknowledgment of its last byte.
    pub ack_ms: Quantiles,
}

/// Datagrams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct UdpReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that arrived, each counted once.
    pub received: u64,
    /// Datagrams missing before the last one that arrived; what is under way at the end is not lost.
    pub lost: u64,
    /// Arrivals of what had arrived before.
    pub duplicates: u64,
    /// Arrivals after a later one.
    pub reordered: u64,
    /// One-way delay.
    pub delay_ms: DelayReport,
}

/// One-way delays in milliseconds; null without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct DelayReport {
    /// Mean.
    pub mean: Option<f64>,
    /// Smallest, median and 99th percentile.
    #[serde(flatten)]
    pub quantiles: Quantiles,
}

/// A transfer over several connections at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct TransferReport {
    /// Name.
    pub name: String,
    /// Number of connections.
    pub connections: u64,
    /// Payload bytes acknowledged, of all of them.
    pub bytes: u64,
    /// When the last of them had finished; null if one did not.
    pub finished_s: Option<f64>,
    /// Sum of their goodputs, bit/s.
    #[serde(deserialize_with = "number::or_nan")]
    pub goodput_bps: f64,
}
