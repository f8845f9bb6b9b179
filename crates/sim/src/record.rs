//! Time series of a run for plots and tables, and the points of time-sequence plots.
//!
//! Column keys end with the unit.

use crate::exchange::Exchange;
use bentpipe_base::Duration;
use bentpipe_tcp::Limit;

/// Maximum number of intervals of a record. A long run ends with at least half of it.
pub const MAX_INTERVALS: usize = 2048;
/// Key of a column that is used for computations only.
pub(crate) const PACKETS: &str = "packets";

/// Time series of a run.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Length of an interval.
    pub every: Duration,
    /// End of each interval in seconds; the last may be shorter.
    pub time_s: Vec<f64>,
    /// Series of each flow, in the scenario's order.
    pub flows: Vec<Series>,
    /// Series of each link direction, forward and backward of each link in turn.
    pub links: Vec<Series>,
    /// Points of the time-sequence plots, one for each recorded flow.
    pub sequences: Vec<Sequence>,
    /// Rate signalling of the first flows that ask.
    pub exchanges: Vec<Exchange>,
}

/// Named columns, all as long as [`Record::time_s`].
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Name of the flow or direction.
    pub name: String,
    /// The columns.
    pub columns: Vec<Column>,
}

/// One quantity over time.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name with unit: `goodput_bps`.
    pub key: &'static str,
    /// One value per interval; NaN if there is none.
    pub values: Vec<f64>,
}

/// Columns of a flow. Counts are those of the interval, other values those at its end unless noted. When
/// intervals are merged, windows take the last value, counts are summed and all others averaged.
pub const FLOW_COLUMNS: [&str; 10] = [
    // bytes delivered to the application in the interval x 8 / its length
    "goodput_bps",
    "cwnd_bytes",
    "ssthresh_bytes",
    "in_flight_bytes",
    // the peer's receive window as the sender knows it: a round trip old, and perhaps changed by a gateway
    "receive_window_bytes",
    // mean of the interval's samples
    "rtt_ms",
    "retransmits",
    "timeouts",
    // UDP only: mean one-way delay in the interval
    "delay_ms",
    // the window that the receiver announced last
    "announced_window_bytes",
];

/// Columns of a direction of a link. Counts and the peak are those of the interval.
pub const LINK_COLUMNS: [&str; 10] = [
    // current rate; 0 while packets wait (not in an outage, where packets are sent and lost)
    "rate_bps",
    // rate carried in the interval
    "throughput_bps",
    // mean over the interval
    "queue_packets",
    "queue_peak_packets",
    "one_way_ms",
    "ber",
    // fraction of the interval's packets lost to errors of any kind; empty without packets
    "packet_error_share",
    // attenuation; empty without a fade
    "fade_db",
    "dropped_at_queue",
    "lost",
];

/// Seconds of the interval under each of the sender's limits, in the order of reports, behind the columns of
/// a flow.
pub const LIMIT_COLUMNS: [&str; Limit::COUNT] = [
    "limit_handshake_s",
    "limit_application_s",
    "limit_send_buffer_s",
    "limit_receiver_window_s",
    "limit_congestion_window_s",
    "limit_pacing_s",
    "limit_recovery_s",
];
/// Share of the interval in which the link lost everything that was sent, behind the columns of a direction.
pub const DARK: &str = "dark_share";

/// How the values of several intervals are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
    /// The last one.
    Last,
    /// The largest one.
    Max,
}

/// Returns how a column of a record or of an instrument is merged.
pub fn merge_of(key: &str) -> Merge {
    match key {
        "cwnd_bytes"
        | "ssthresh_bytes"
        | "in_flight_bytes"
        | "receive_window_bytes"
        | "announced_window_bytes" => Merge::Last,
        "retransmits" | "timeouts" | "dropped_at_queue" | "lost" | PACKETS | "bytes" | "packets_in_error"
        | "packets_dropped" | "errored_seconds" => Merge::Sum,
        "queue_peak_packets" => Merge::Max,
        key if LIMIT_COLUMNS.contains(&key) => Merge::Sum,
        _ => Merge::Mean,
    }
}

/// Merges values of which some may be unknown; NaN if all are.
pub fn merged(rule: Merge, values: &[f64]) -> f64 {
    let mut known = values.iter().copied().filter(|v| !v.is_nan());
    let n = known.clone().count();
    match rule {
        _ if n == 0 => f64::NAN,
        Merge::Mean => known.sum::<f64>() / n as f64,
        Merge::Sum => known.sum(),
        Merge::Last => known.next_back().unwrap_or(f64::NAN),
        Merge::Max => known.fold(f64::NEG_INFINITY, f64::max),
    }
}

impl Record {
    /// Merges pairs of intervals.
    pub fn merge_pairs(&mut self) {
        self.every = self.every * 2;
        self.time_s = self.time_s.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
        let series = self.flows.iter_mut().chain(&mut self.links);
        series.flat_map(|s| &mut s.columns).for_each(Column::merge_pairs);
    }
}

impl Column {
    /// Merges pairs of values as the column's key requires.
    pub fn merge_pairs(&mut self) {
        let rule = merge_of(self.key);
        self.values = self.values.chunks(2).map(|pair| merged(rule, pair)).collect();
    }
}

impl Series {
    /// Creates a series without values.
    pub fn new(name: impl Into<String>, keys: &[&'static str]) -> Self {
        let column = |key: &&'static str| Column { key, values: Vec::new() };
        Self { name: name.into(), columns: keys.iter().map(column).collect() }
    }

    /// Adds a value to each column.
    pub fn push<'a>(&mut self, row: impl IntoIterator<Item = &'a f64>) {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.values.push(*value);
        }
    }

    /// Values of the column `key`.
    pub fn column(&self, key: &str) -> Option<&[f64]> {
        self.columns.iter().find(|c| c.key == key).map(|c| c.values.as_slice())
    }
}

/// A time-sequence plot of one connection as seen at the sender, like those of tcptrace.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// Index of the flow.
    pub flow: usize,
    /// Points in order of time.
    pub points: Vec<SequencePoint>,
    /// Number of points omitted at the end because there were too many.
    pub omitted: u64,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequencePoint {
    /// Time in seconds.
    pub time_s: f64,
    /// Offset in the stream, from 0.
    pub offset: u64,
    /// Kind of event.
    pub kind: SequenceKind,
}

/// Kind of event of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceKind {
    /// New data was sent.
    Sent,
    /// Data was retransmitted.
    Resent,
    /// A packet with this data was dropped.
    Dropped,
    /// All data before this offset was acknowledged.
    Acknowledged,
    /// The right edge of the receiver's window.
    WindowEdge,
}
