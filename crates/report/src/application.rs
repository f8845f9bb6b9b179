//! Measurements of applications, quantiles of times, and transfers over several connections.

use crate::number;
use crate::rate::RateReport;
use bentpipe_base::Duration;
use bentpipe_base::histogram::Histogram;
use serde::{Deserialize, Serialize};

/// Times in milliseconds; null without a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct Quantiles {
    /// Smallest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

impl Quantiles {
    /// Returns the quantiles of a histogram.
    pub fn of(times: &Histogram) -> Self {
        let ms = |d: Option<Duration>| d.map(Duration::as_millis_f64);
        Self { min: ms(times.min()), p50: ms(times.quantile(0.5)), p99: ms(times.quantile(0.99)) }
    }
}

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
    /// Rate that the network granted, a value of the flow in JSON; absent for flows that did not ask for one.
    #[serde(skip)]
    pub rate: Option<Box<RateReport>>,
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
