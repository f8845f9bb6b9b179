//! Measurements of applications, and transfers over several connections.

use crate::number;
use crate::quantiles::Quantiles;
use serde::{Deserialize, Serialize};

/// Requests and responses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct RequestsReport {
    /// Number of complete responses.
    pub completed: u64,
    /// Time from writing the first byte of a request to reading the last byte of its response.
    pub response_ms: Quantiles,
}

/// Interactive typing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct TelnetReport {
    /// Number of writes.
    pub writes: u64,
    /// Number of acknowledged writes.
    pub acknowledged: u64,
    /// Time from a write to the acknowledgment of its last byte.
    pub ack_ms: Quantiles,
}

/// UDP datagrams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct UdpReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that arrived, each counted once.
    pub received: u64,
    /// Datagrams missing before the last one that arrived. Those in flight at the end do not count.
    pub lost: u64,
    /// Duplicate arrivals.
    pub duplicates: u64,
    /// Datagrams that arrived after a later one.
    pub reordered: u64,
    /// One-way delay.
    pub delay_ms: DelayReport,
}

/// One-way delays in milliseconds; null without a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct DelayReport {
    /// Mean.
    pub mean: Option<f64>,
    /// Minimum, median and 99th percentile.
    #[serde(flatten)]
    pub quantiles: Quantiles,
}

/// A transfer over several parallel connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct TransferReport {
    /// Name.
    pub name: String,
    /// Number of connections.
    pub connections: u64,
    /// Payload bytes acknowledged, summed over the connections.
    pub bytes: u64,
    /// Time at which the last connection finished; null if one did not.
    pub finished_s: Option<f64>,
    /// Sum of the goodputs of the connections, bit/s.
    #[serde(deserialize_with = "number::or_nan")]
    pub goodput_bps: f64,
}
