//! An experiment is a value: `Scenario`. This is what a file resolves to, with nothing left to interpret.

use crate::amount::Amount;
use crate::custom::CustomSpec;
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
pub use bentpipe_link::DirectionSpec;
pub use bentpipe_nodes::Pattern;
use bentpipe_tcp::Config;

/// One fully resolved experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// One line that says what is being asked.
    pub title: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Latest end of the run.
    pub duration: Duration,
    /// When the run ends.
    pub stop: Stop,
    /// Interval over which goodput is counted; `None` is the whole run.
    pub measure: Option<(Instant, Instant)>,
    /// What links carry in that interval is reported as well.
    pub measure_links: bool,
    /// Parameters as resolved, in the order of the file: name and value as a user writes it.
    pub parameters: Vec<(String, ParamValue)>,
    /// Hosts and routers, in the order of the file.
    pub nodes: Vec<NodeSpec>,
    /// Links; each names two nodes by index.
    pub links: Vec<LinkSpec>,
    /// Gateways before hops.
    pub gateways: Vec<GatewaySpec>,
    /// Nodes of kinds that are not built in, with the direction into which each sends; what comes over the other
    /// direction of the link passes through it as well.
    pub customs: Vec<(Direction, CustomSpec)>,
    /// Flows.
    pub flows: Vec<FlowSpec>,
    /// Measuring instruments; what they saw is part of the report.
    pub instruments: Vec<InstrumentSpec>,
    /// Packets to record when results are written to a folder.
    pub captures: Vec<CaptureSpec>,
    /// Figures that others found, to be shown beside this run's.
    pub references: Vec<ReferenceSpec>,
}

/// A figure that somebody else found.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceSpec {
    /// Which of the run's metrics it is compared with.
    pub metric: String,
    /// The figure.
    pub value: Amount,
    /// The same as it was written.
    pub written: String,
    /// Where it was found.
    pub source: String,
}

/// A gateway at the beginning of a direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewaySpec {
    /// Unique name.
    pub name: String,
    /// The hop: it sends into this direction, and what comes over the other direction of the link passes
    /// through it as well.
    pub at: Direction,
    /// How it works.
    pub config: bentpipe_gateway::Config,
    /// Which connections it accelerates.
    pub policy: bentpipe_gateway::Policy,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Direction {
    /// Index of the link.
    pub link: usize,
    /// From `b` to `a`.
    pub backward: bool,
}

impl Direction {
    /// Place in a list that holds forward and backward of each link in turn.
    pub const fn index(self) -> usize {
        2 * self.link + self.backward as usize
    }
}

/// Looks at something at fixed times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrumentSpec {
    /// Unique name.
    pub name: String,
    /// What it looks at.
    pub kind: InstrumentKind,
    /// Length of an interval.
    pub every: Duration,
}

/// What an instrument looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstrumentKind {
    /// A narrow channel beside a link that carries a known bit pattern in a loop: counts wrong bits and
    /// errored seconds. It sees the link's bit error rate and uses none of its capacity.
    SideChannel {
        /// The direction whose errors it sees.
        link: Direction,
        /// Its rate.
        rate: Rate,
    },
    /// A router's counters, asked as by SNMP: packets, bytes, packets in error, packets dropped.
    Counters {
        /// The direction.
        link: Direction,
    },
    /// Goodput of a flow, and the share of packets in error on a link, in bins.
    Bins {
        /// Index of the flow.
        flow: usize,
        /// The direction.
        link: Direction,
    },
}

/// Packets to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSpec {
    /// Where: packets before the queue, after the link, and those dropped, with the cause.
    pub at: Direction,
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// Bytes kept of each packet.
    pub snap: Size,
    /// Largest file; recording ends there.
    pub limit: Size,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At `duration`.
    Duration,
    /// When every flow with an end has finished, at the latest at `duration`.
    Finished,
}

/// A parameter's value as it goes into reports.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// Text, quantities included: `"64 segments"`.
    Text(String),
    /// A number without a unit.
    Number(f64),
    /// A whole number.
    Integer(i64),
    /// A switch.
    Switch(bool),
}

/// A host or a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// Unique name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Explicit static routes, destination host index -> link index; all else follows the fewest hops (first
    /// link in file order on ties).
    pub routes: Vec<(usize, usize)>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Ends of flows. A host has exactly one link.
    Host,
    /// Forwards by static routes.
    Router,
}

/// A link between two nodes; each direction on its own.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Unique name of the direction from `a` to `b`.
    pub name: String,
    /// Unique name of the direction from `b` to `a`.
    pub reverse_name: String,
    /// Index of one end.
    pub a: usize,
    /// Index of the other end.
    pub b: usize,
    /// From `a` to `b`.
    pub forward: DirectionSpec,
    /// From `b` to `a`.
    pub backward: DirectionSpec,
}

impl LinkSpec {
    /// A queue of this link, in either direction, serves low priority last.
    pub fn serves_last(&self) -> bool {
        [&self.forward, &self.backward].iter().any(|d| d.discipline.minds_priority())
    }
}

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Unique name.
    pub name: String,
    /// Index of the host that opens the connection and sends.
    pub from: usize,
    /// Index of the host that receives.
    pub to: usize,
    /// The sender's TCP.
    pub sender: Config,
    /// The receiver's TCP.
    pub receiver: Config,
    /// What is sent.
    pub app: App,
    /// How the receiver reads.
    pub reader: Reader,
    /// When it starts.
    pub start: Start,
    /// Name of the transfer that this connection carries a part of, where several do.
    pub group: Option<String>,
}

/// What the sending application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum App {
    /// Sends as long as the run lasts.
    Bulk,
    /// Sends this much, then closes.
    Transfer(Size),
    /// Sends this much at the given rate, for as long as the run lasts.
    Rate(Rate),
    /// Asks and gets answers over one connection, as a browser does: the data flows back. The next question
    /// follows the last byte of the answer after a time to think.
    Requests {
        /// Bytes of a question.
        request: Size,
        /// Bytes of an answer.
        response: Size,
        /// Mean of the exponential time to think; zero asks at once.
        think: Duration,
        /// Closes after this many; `None` goes on as long as the run lasts.
        count: Option<u64>,
    },
    /// Small writes at exponential intervals, as typing does.
    Telnet {
        /// Bytes of a write.
        size: Size,
        /// Mean time between writes.
        gap: Duration,
    },
    /// Datagrams without any control.
    Udp {
        /// Payload of each.
        size: Size,
        /// When they are sent.
        pattern: Pattern,
    },
}

/// How the receiving application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Everything at once.
    Eager,
    /// At most this rate.
    Slow(Rate),
    /// At most these rates in turn.
    Turns {
        /// The rates.
        rates: [Rate; 2],
        /// How long a turn is.
        each: Duration,
    },
    /// Eagerly, except for a pause.
    Pause {
        /// Start of the pause.
        from: Instant,
        /// End of the pause.
        to: Instant,
        /// From one pause to the next; none: there is one.
        every: Option<Duration>,
    },
    /// Eagerly until this instant, then never again.
    StopAt(Instant),
}

/// Start of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this instant.
    At(Instant),
    /// Uniform between two instants, drawn from the flow's own stream.
    Uniform(Instant, Instant),
}
