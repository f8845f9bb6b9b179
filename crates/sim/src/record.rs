//! What was seen during a run, for pictures and tables: series at fixed intervals and the points of a
//! time-sequence plot.
//!
//! The report says how a run came out; a record says how it went. Units stand in the keys of the columns.

use bentpipe_base::Duration;

/// Most intervals of a record; between half of it and all of it are there at the end of a long run.
pub const MOST_INTERVALS: usize = 2048;
/// Key of a column that is only counted with.
pub(crate) const PACKETS: &str = "packets";

/// Series of a run.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Length of an interval.
    pub every: Duration,
    /// End of each interval in seconds; the last may be shorter.
    pub time_s: Vec<f64>,
    /// For each TCP flow or UDP flow, in the scenario's order.
    pub flows: Vec<Series>,
    /// For each direction of a link, forward and backward in turn.
    pub links: Vec<Series>,
    /// Points of the time-sequence plots, one for each flow that was followed.
    pub sequences: Vec<Sequence>,
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
    /// What it is, unit last: `goodput_bps`.
    pub key: &'static str,
    /// One value for each interval; NaN where there was none.
    pub values: Vec<f64>,
}

/// Columns of a flow. Values are those at the end of an interval unless said; windows of intervals that were
/// put together are those of the last, the others sums where they count and else means.
pub const FLOW_COLUMNS: [&str; 9] = [
    // bytes that reached the application in the interval x 8 / its length
    "goodput_bps",
    "cwnd_bytes",
    "ssthresh_bytes",
    "in_flight_bytes",
    // the peer's receive window
    "receive_window_bytes",
    // mean of the samples of the interval
    "rtt_ms",
    // in the interval
    "retransmits",
    // in the interval
    "timeouts",
    // datagrams: mean one-way delay of the interval
    "delay_ms",
];

/// Columns of a direction of a link.
pub const LINK_COLUMNS: [&str; 10] = [
    // what the link can carry; 0 while nothing moves (in an outage it moves, and is lost)
    "rate_bps",
    // what it carried in the interval
    "throughput_bps",
    // mean over the interval
    "queue_packets",
    // in the interval
    "queue_peak_packets",
    "one_way_ms",
    "ber",
    // share of the interval's packets lost to errors of any kind; empty without packets
    "packet_error_share",
    // attenuation; empty without a fade
    "fade_db",
    // in the interval
    "dropped_at_queue",
    // in the interval
    "lost",
];

/// How values of two intervals become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    Mean,
    Sum,
    Last,
    Most,
}

/// The rule of a column.
pub(crate) fn merge_of(key: &str) -> Merge {
    match key {
        "cwnd_bytes" | "ssthresh_bytes" | "in_flight_bytes" | "receive_window_bytes" => Merge::Last,
        "retransmits" | "timeouts" | "dropped_at_queue" | "lost" | PACKETS => Merge::Sum,
        "queue_peak_packets" => Merge::Most,
        _ => Merge::Mean,
    }
}

fn merged(rule: Merge, values: &[f64]) -> f64 {
    let mut known = values.iter().copied().filter(|v| !v.is_nan());
    let n = known.clone().count();
    match rule {
        _ if n == 0 => f64::NAN,
        Merge::Mean => known.sum::<f64>() / n as f64,
        Merge::Sum => known.sum(),
        Merge::Last => known.next_back().unwrap_or(f64::NAN),
        Merge::Most => known.fold(f64::NEG_INFINITY, f64::max),
    }
}

impl Record {
    /// Puts two and two intervals together.
    pub fn halve(&mut self) {
        self.every = self.every * 2;
        self.time_s = self.time_s.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
        let series = self.flows.iter_mut().chain(&mut self.links);
        series.flat_map(|s| &mut s.columns).for_each(Column::halve);
    }
}

impl Column {
    /// Puts two and two values together, as their key asks.
    pub fn halve(&mut self) {
        let rule = merge_of(self.key);
        self.values = self.values.chunks(2).map(|pair| merged(rule, pair)).collect();
    }
}

impl Series {
    /// A series without values.
    pub fn new(name: impl Into<String>, keys: &[&'static str]) -> Self {
        let column = |key: &&'static str| Column { key, values: Vec::new() };
        Self { name: name.into(), columns: keys.iter().map(column).collect() }
    }

    /// Adds a value to each column.
    pub fn push(&mut self, row: &[f64]) {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.values.push(*value);
        }
    }

    /// The column called `key`.
    pub fn column(&self, key: &str) -> Option<&[f64]> {
        self.columns.iter().find(|c| c.key == key).map(|c| c.values.as_slice())
    }
}

/// A time-sequence plot of one connection, seen at the sender: Tcptrace's picture.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// Index of the flow.
    pub flow: usize,
    /// Its points in order of time.
    pub points: Vec<SequencePoint>,
    /// Points that were left out at the end, because there were too many.
    pub omitted: u64,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequencePoint {
    /// When, in seconds.
    pub time_s: f64,
    /// First byte of the stream, from 0.
    pub offset: u64,
    /// What happened.
    pub kind: SequenceKind,
}

/// What a point shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceKind {
    /// New data was sent.
    Sent,
    /// Data was sent again.
    Resent,
    /// A packet with this data was dropped.
    Dropped,
    /// Everything before this offset was acknowledged.
    Acknowledged,
    /// The right edge of the receiver's window.
    WindowEdge,
}
