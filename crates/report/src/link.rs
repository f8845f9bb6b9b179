//! Directions of links.

use crate::number;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// How often each of several causes occurred, in the order in which they were counted; only causes that did.
pub type Counts = IndexMap<String, u64>;

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct LinkReport {
    /// Name.
    pub name: String,
    /// Share of the run spent serialising.
    #[serde(deserialize_with = "number::or_nan")]
    pub utilisation: f64,
    /// Bytes carried x 8 / measure interval, framing included, bit/s; absent unless the scenario asks for it.
    #[serde(default, deserialize_with = "number::present", skip_serializing_if = "Option::is_none")]
    pub carried_bps: Option<f64>,
    /// Packets serialised.
    pub packets: u64,
    /// Drops by cause.
    pub drops: Counts,
    /// Packets marked CE in the queue; absent from links whose queue marks none ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked: Option<u64>,
    /// Packets waiting, the one in service not counted.
    pub queue_packets: QueueReport,
}

/// Packets waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct QueueReport {
    /// Mean over time.
    #[serde(deserialize_with = "number::or_nan")]
    pub mean: f64,
    /// Most at any time.
    pub peak: u32,
}
