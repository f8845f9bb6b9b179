//! Reports of link directions and of instruments.

use crate::number;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Number of events by cause, in the order in which they were counted; only causes that occurred.
pub type Counts = IndexMap<String, u64>;

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct LinkReport {
    /// Name.
    pub name: Arc<str>,
    /// Fraction of the run in which the link was sending.
    #[serde(deserialize_with = "number::or_nan")]
    pub utilisation: f64,
    /// Bytes carried x 8 / measure interval, framing included, bit/s; absent unless the scenario asks for it.
    #[serde(default, deserialize_with = "number::present", skip_serializing_if = "Option::is_none")]
    pub carried_bps: Option<f64>,
    /// Packets serialised.
    pub packets: u64,
    /// Drops by cause.
    pub drops: Counts,
    /// Packets marked CE in the queue; absent for queues that never mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked: Option<u64>,
    /// Queue length in packets, without the one in transmission.
    pub queue_packets: QueueReport,
}

/// Queue length in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct QueueReport {
    /// Time average.
    #[serde(deserialize_with = "number::or_nan")]
    pub mean: f64,
    /// Maximum.
    pub peak: u32,
}

/// Measurements of one instrument: one row per interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct InstrumentReport {
    /// Name.
    pub name: String,
    /// `side-channel`, `counters` or `bins`.
    pub kind: String,
    /// Names of the columns, unit last. The first is the end of the interval.
    pub columns: Vec<String>,
    /// The rows; null where nothing could be measured.
    #[serde(deserialize_with = "number::rows_or_nan")]
    pub rows: Vec<Vec<f64>>,
}

impl InstrumentReport {
    /// Creates a table without rows.
    pub fn new(name: &str, kind: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|c| (*c).to_owned()).collect();
        Self { name: name.to_owned(), kind: kind.to_owned(), columns, rows: Vec::new() }
    }

    /// Goodput in bit/s that is reached in this share of the intervals; `None` if this does not measure it,
    /// or if there are too few intervals to tell.
    pub(crate) fn exceeded(&self, share: f64) -> Option<f64> {
        let column = self.columns.iter().position(|column| column == "goodput_bytes_per_s")?;
        let mut values: Vec<f64> = self.rows.iter().filter_map(|row| row.get(column).copied()).collect();
        values.sort_by(f64::total_cmp);
        let below = values.len() as f64 * (1.0 - share);
        // as many as this may be below; a share of less than an interval is unknown
        let index = (below + 1e-9) as usize;
        values.get(index).filter(|_| index > 0).map(|bytes| bytes * 8.0)
    }
}
