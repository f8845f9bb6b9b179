//! What is said: requests, answers, and the command that carries both to the data thread.

use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_driver::Timing;
use bentpipe_link::{Capacity, Change};
use bentpipe_service::Refusal;
use serde::{Deserialize, Serialize};
use std::sync::mpsc::SyncSender;

/// Longest time and highest rate, as in scenario files.
pub(super) const MOST: (u64, u64) = (365 * 86_400 * 1_000_000_000, 100_000_000_000_000);

/// A line to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// How things are.
    Show,
    /// Set values.
    Set {
        /// Where.
        on: On,
        /// Which.
        values: Values,
    },
    /// Lose everything for a while.
    Outage {
        /// Where.
        on: On,
        /// For so long, in nanoseconds.
        length_ns: u64,
    },
    /// Give everything back that was set.
    Reset {
        /// Where.
        on: On,
    },
}

/// Directions of links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct On {
    /// A link, or one direction by its own name. Without it: the only link, or the bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Which of the two.
    #[serde(default)]
    pub way: Way,
}

/// Which directions of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Both.
    #[default]
    Both,
    /// As the scenario's `from` and `to`; of a named link to the user.
    Forward,
    /// The other.
    Backward,
}

/// Values in base units; what is missing stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Values {
    /// Rate, bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// One-way delay, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// Queue in packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_packets: Option<u32>,
    /// Queue in bytes; not beside packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// Loss probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Bit error rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ber: Option<f64>,
    /// False takes it down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

impl From<&Change> for Values {
    fn from(change: &Change) -> Self {
        let (buffer_packets, buffer_bytes) = match change.buffer {
            Some(Capacity::Packets(n)) => (Some(n), None),
            Some(Capacity::Bytes(n)) => (None, Some(n.0)),
            None => (None, None),
        };
        Self {
            rate_bps: change.rate.map(Rate::bps),
            delay_ns: change.delay.map(|d| d.0),
            buffer_packets,
            buffer_bytes,
            loss: change.loss.map(Probability::get),
            ber: change.ber.map(Probability::get),
            up: change.up,
        }
    }
}

impl Values {
    /// As a change.
    ///
    /// # Errors
    /// What is out of range, or that nothing is given.
    pub fn change(&self) -> Result<Change, String> {
        if *self == Self::default() {
            return Err("nothing is set: give rate, delay, buffer, loss, ber or up".to_owned());
        }
        let chance = |name: &str, p: f64| Probability::new(p).ok_or(format!("{name} is not between 0 and 1"));
        let rate = |bps| Rate::from_bps(bps).filter(|_| bps <= MOST.1).ok_or("rate_bps is out of range");
        let buffer = match (self.buffer_packets, self.buffer_bytes) {
            (Some(_), Some(_)) => return Err("buffer_packets and buffer_bytes exclude each other".to_owned()),
            (Some(n), None) => Some(Capacity::Packets(n)),
            (None, bytes) => bytes.map(|n| Capacity::Bytes(Size(n))),
        };
        if self.delay_ns.is_some_and(|ns| ns > MOST.0) {
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

/// A line from the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// How things are.
    State(Box<State>),
    /// It is done.
    Done(Done),
    /// It is not.
    Refused(Refusal),
}

impl Reply {
    /// A refusal.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into().into())
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl bentpipe_service::Reply for Reply {
    type Request = Request;
    const SERVICE: &'static str = "session";

    fn accepted(self) -> Result<Self, Refusal> {
        if let Self::Refused(refusal) = self { Err(refusal) } else { Ok(self) }
    }
}

/// What was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// When it took effect, nanoseconds since the session began.
    pub at_ns: u64,
    /// What, a direction each.
    pub changes: Vec<Changed>,
}

/// What was changed on a direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The direction's name.
    pub name: String,
    /// In words: `rate 5 Mbit/s (was 10 Mbit/s)`.
    pub what: String,
}

impl Done {
    /// A line for each direction, for a log or a terminal: `at 12.345678 s  satellite: loss 0.001 (was 0)`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let at = Instant(self.at_ns);
        self.changes.iter().map(move |c| format!("at {at}  {}: {}", c.name, c.what))
    }
}

/// How a session is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Its name.
    pub session: String,
    /// The link or scenario.
    pub title: String,
    /// Seconds since it began.
    pub uptime_s: f64,
    /// Directions of links, forward and backward of each in turn.
    pub links: Vec<LinkState>,
    /// Whether the machine is fast enough.
    pub timing: Timing,
    /// TCP connections inside.
    #[serde(default)]
    pub flows: Vec<FlowState>,
}

/// How a direction is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkState {
    /// Its name.
    pub name: String,
    /// The link's name.
    pub link: String,
    /// Backward, not forward.
    pub backward: bool,
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// Rate in bit/s; null while nothing moves.
    pub rate_bps: Option<u64>,
    /// One-way propagation delay in ms.
    pub one_way_ms: f64,
    /// Loss probability of a packet, whatever its size; while `up` is false by an outage, what it will be
    /// after.
    pub loss: f64,
    /// Bit error rate.
    pub ber: f64,
    /// Attenuation in dB, where there is a fade.
    pub fade_db: Option<f64>,
    /// False while nothing gets through.
    pub up: bool,
    /// Packets waiting.
    pub queue_packets: u64,
    /// Bytes waiting.
    pub queue_bytes: u64,
    /// How many packets may wait, where packets are counted.
    pub limit_packets: Option<u64>,
    /// How many bytes may wait, where bytes are counted.
    pub limit_bytes: Option<u64>,
    /// What went onto the link lately, bit/s, IP headers included.
    pub throughput_bps: f64,
    /// Packets that went onto the link.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets lost, by cause.
    pub drops: Vec<(String, u64)>,
    /// What a user has set.
    #[serde(default)]
    pub set: Values,
    /// End of an outage that a user has asked for, seconds since the session began.
    #[serde(default)]
    pub outage_until_s: Option<f64>,
}

/// How a TCP connection is, as the kernel says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowState {
    /// Its ends.
    pub name: String,
    /// Smoothed round-trip time in ms.
    pub rtt_ms: Option<f64>,
    /// Congestion window in segments.
    pub cwnd: u64,
    /// What was acknowledged lately, bit/s.
    pub goodput_bps: f64,
    /// Segments sent again.
    pub retransmits: u64,
}

/// A request on its way to the data thread. What only the session knows is left empty in the answer: its
/// name, its title, its flows.
#[derive(Debug)]
pub struct Command {
    /// What is asked.
    pub request: Request,
    /// Where the answer goes; it never blocks if the channel holds one.
    pub reply: SyncSender<Reply>,
}
