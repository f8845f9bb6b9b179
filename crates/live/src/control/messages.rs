//! Requests, replies, and the command that carries a request to the data thread.

use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_driver::Timing;
use bentpipe_link::{Capacity, Change};
use bentpipe_service::Refusal;
use serde::{Deserialize, Serialize};
use std::sync::mpsc::SyncSender;

/// Longest time (ns) and highest rate (bit/s), as in scenario files.
pub(super) const MAX_TIME_AND_RATE: (u64, u64) = (365 * 86_400 * 1_000_000_000, 100_000_000_000_000);

/// A request: one line to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Asks for the state of the session.
    Show,
    /// Sets values.
    Set {
        /// Directions to change.
        on: Target,
        /// Values to set.
        values: LinkValues,
    },
    /// Drops all packets for a while.
    Outage {
        /// Directions to change.
        on: Target,
        /// Length of the outage in nanoseconds.
        length_ns: u64,
    },
    /// Undoes all changes that users made.
    Reset {
        /// Directions to change.
        on: Target,
    },
}

/// Directions of links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// A link, or one direction by its own name. If missing: the only link, or the bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Which directions of it.
    #[serde(default)]
    pub way: Directions,
}

/// Which directions of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// Both.
    #[default]
    Both,
    /// From the scenario's `from` to its `to`; on a named link profile, towards the user.
    Forward,
    /// The opposite direction.
    Backward,
}

/// Values in base units; a missing value is left unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkValues {
    /// Rate, bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// One-way delay, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// Queue limit in packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_packets: Option<u32>,
    /// Queue limit in bytes; not together with `buffer_packets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// Loss probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Bit error rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ber: Option<f64>,
    /// False takes the direction down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

impl From<&Change> for LinkValues {
    fn from(change: &Change) -> Self {
        Self {
            rate_bps: change.rate.map(Rate::bps),
            delay_ns: change.delay.map(|d| d.0),
            buffer_packets: if let Some(Capacity::Packets(n)) = change.buffer { Some(n) } else { None },
            buffer_bytes: if let Some(Capacity::Bytes(n)) = change.buffer { Some(n.0) } else { None },
            loss: change.loss.map(Probability::get),
            ber: change.ber.map(Probability::get),
            up: change.up,
        }
    }
}

impl LinkValues {
    /// Converts the values to a change.
    ///
    /// # Errors
    /// When a value is out of range, or nothing is given.
    pub fn change(&self) -> Result<Change, String> {
        if *self == Self::default() {
            return Err("nothing is set: give rate, delay, buffer, loss, ber or up".to_owned());
        }
        let chance = |name: &str, p: f64| Probability::new(p).ok_or(format!("{name} is not between 0 and 1"));
        let rate = |bps| {
            Rate::from_bps(bps).filter(|_| bps <= MAX_TIME_AND_RATE.1).ok_or("rate_bps is out of range")
        };
        let buffer = match (self.buffer_packets, self.buffer_bytes) {
            (Some(_), Some(_)) => return Err("buffer_packets and buffer_bytes exclude each other".to_owned()),
            (Some(n), None) => Some(Capacity::Packets(n)),
            (None, bytes) => bytes.map(|n| Capacity::Bytes(Size(n))),
        };
        if self.delay_ns.is_some_and(|ns| ns > MAX_TIME_AND_RATE.0) {
            return Err("delay_ns is more than a year".to_owned());
        }
        Ok(Change {
            rate: self.rate_bps.map(rate).transpose()?,
            delay: self.delay_ns.map(Duration),
            buffer,
            loss: self.loss.map(|p| chance("loss", p)).transpose()?,
            ber: self.ber.map(|p| chance("ber", p)).transpose()?,
            up: self.up,
        })
    }
}

/// A reply to a request that was carried out: one line from the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// The state of the session.
    State(Box<State>),
    /// The change was made.
    Done(ChangesMade),
}

impl bentpipe_service::Reply for Reply {
    type Request = Request;
    const SERVICE: &'static str = "session";
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangesMade {
    /// When it took effect, nanoseconds since the session began.
    pub at_ns: u64,
    /// The change on each direction.
    pub changes: Vec<DirectionChange>,
}

/// A change on one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionChange {
    /// The direction's name.
    pub name: String,
    /// Description: `rate 5 Mbit/s (was 10 Mbit/s)`.
    pub what: String,
}

impl ChangesMade {
    /// A line for each direction, for a log or a terminal: `at 12.345678 s  satellite: loss 0.001 (was 0)`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let at = Instant(self.at_ns);
        self.changes.iter().map(move |c| format!("at {at}  {}: {}", c.name, c.what))
    }
}

/// State of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Name of the session.
    pub session: String,
    /// The link profile or scenario.
    pub title: String,
    /// Seconds since the session began.
    pub uptime_s: f64,
    /// State of all directions: forward and backward of each link in turn.
    pub links: Vec<LinkState>,
    /// Whether the machine is fast enough.
    pub timing: Timing,
    /// TCP connections in the session.
    #[serde(default)]
    pub flows: Vec<FlowState>,
}

/// State of a direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkState {
    /// Name of the direction.
    pub name: String,
    /// The link's name.
    pub link: String,
    /// True for the backward direction.
    pub backward: bool,
    /// Node where it begins.
    pub from: String,
    /// Node where it ends.
    pub to: String,
    /// Rate in bit/s; null while the link is stopped.
    pub rate_bps: Option<u64>,
    /// One-way propagation delay in ms.
    pub one_way_ms: f64,
    /// Loss probability per packet, whatever its size; during an outage, the value after it.
    pub loss: f64,
    /// Bit error rate.
    pub ber: f64,
    /// Attenuation in dB, if there is a fade.
    pub fade_db: Option<f64>,
    /// False while no packet gets through.
    pub up: bool,
    /// Packets in the queue.
    pub queue_packets: u64,
    /// Bytes in the queue.
    pub queue_bytes: u64,
    /// Queue limit in packets, if packets are counted.
    pub limit_packets: Option<u64>,
    /// Queue limit in bytes, if bytes are counted.
    pub limit_bytes: Option<u64>,
    /// Recent throughput of the link, bit/s, IP headers included.
    pub throughput_bps: f64,
    /// Packets sent onto the link.
    pub packets: u64,
    /// Bytes sent onto the link.
    pub bytes: u64,
    /// Packets lost, by cause.
    pub drops: Vec<(String, u64)>,
    /// Values that a user has set.
    #[serde(default)]
    pub set: LinkValues,
    /// End of an outage that a user asked for, seconds since the session began.
    #[serde(default)]
    pub outage_until_s: Option<f64>,
}

/// State of a TCP connection, from the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowState {
    /// Its two addresses.
    pub name: String,
    /// Smoothed round-trip time in ms.
    pub rtt_ms: Option<f64>,
    /// Congestion window in segments.
    pub cwnd: u64,
    /// Recent goodput (acknowledged data), bit/s.
    pub goodput_bps: f64,
    /// Segments retransmitted.
    pub retransmits: u64,
}

/// A request to the data thread. The reply lacks what only the session knows: its name, title and flows.
#[derive(Debug)]
pub struct Command {
    /// The request.
    pub request: Request,
    /// Channel for the reply; sending never blocks if the channel holds one message.
    pub reply: SyncSender<Result<Reply, Refusal>>,
}
