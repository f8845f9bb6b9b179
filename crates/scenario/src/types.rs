//! [`Scenario`], the fully resolved form of a scenario file.

use crate::amount::Amount;
use crate::custom::CustomSpec;
use bentpipe_advice::tia1039::RateType;
use bentpipe_base::{Duration, Instant, Rate, Size};
pub use bentpipe_link::DirectionSpec;
pub use bentpipe_nodes::{Pattern, Reader, WhenRefused};
use bentpipe_tcp::{AskConfig, Config};
use std::sync::Arc;

/// One fully resolved experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Title: one line that states the question of the experiment.
    pub title: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Maximum length of the run.
    pub duration: Duration,
    /// When the run ends.
    pub stop: Stop,
    /// Interval in which goodput is counted; `None`: the whole run.
    pub measure: Option<(Instant, Instant)>,
    /// True if the throughput of each link in that interval is reported as well.
    pub measure_links: bool,
    /// Resolved parameters in file order: name and value.
    pub parameters: Vec<(String, ParamValue)>,
    /// Hosts and routers, in file order.
    pub nodes: Vec<NodeSpec>,
    /// Links. Each refers to two nodes by index.
    pub links: Vec<LinkSpec>,
    /// TCP-SuperCharger gateways.
    pub gateways: Vec<GatewaySpec>,
    /// Flow routers, which answer requests for rates.
    pub flow_routers: Vec<FlowRouterSpec>,
    /// Boxes that change or drop packets.
    pub middleboxes: Vec<MiddleboxSpec>,
    /// Nodes of kinds that are not built in, with the direction into which each sends. Packets of the other
    /// direction pass through the node as well.
    pub custom_nodes: Vec<(Direction, CustomSpec)>,
    /// Flows.
    pub flows: Vec<FlowSpec>,
    /// Measuring instruments, whose samples are part of the report.
    pub instruments: Vec<InstrumentSpec>,
    /// Links whose packets are recorded when results are written to a folder.
    pub captures: Vec<CaptureSpec>,
    /// Published or measured values that the report compares with this run.
    pub references: Vec<ReferenceSpec>,
}

impl Scenario {
    /// Returns the first part that exists in simulated time only.
    pub fn simulated_only(&self) -> Option<SimulatedOnly> {
        let nat = self.middleboxes.iter().find(|middlebox| middlebox.config.nat).map(|nat| SimulatedOnly {
            what: format!("middlebox `{}`", nat.name),
            why: "ports of real packets are not translated",
            instead: "with `nat = false`",
        });
        let of = |name: &str, d: &DirectionSpec| {
            d.mtu.is_some().then(|| SimulatedOnly {
                what: format!("link `{name}`"),
                why: "an MTU does not act on real packets",
                instead: "without `mtu`",
            })
        };
        nat.or_else(|| {
            let mut links = self.links.iter();
            links.find_map(|l| of(&l.name, &l.forward).or_else(|| of(&l.reverse_name, &l.backward)))
        })
    }

    /// Returns the first flow of which an end signals rates: no kernel's TCP does.
    pub fn signalling_flow(&self) -> Option<&FlowSpec> {
        self.flows.iter().find(|flow| flow.sender.signalling.is_some() || flow.receiver.signalling.is_some())
    }
}

/// A part of a scenario that exists in simulated time only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedOnly {
    /// The part.
    pub what: String,
    /// Why.
    pub why: &'static str,
    /// How the scenario would run live.
    pub instead: &'static str,
}

/// A published or measured value to compare with.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceSpec {
    /// Metric of the run to compare with.
    pub metric: String,
    /// The reference value.
    pub value: Amount,
    /// The value as written in the file.
    pub written: String,
    /// Source of the value.
    pub source: String,
}

/// A gateway at the start of a link direction.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewaySpec {
    /// Unique name.
    pub name: String,
    /// The hop: direction into which it sends. Packets of the other direction pass through it as well.
    pub hop: Direction,
    /// Configuration of the gateway.
    pub config: bentpipe_gateway::Config,
    /// Which connections it accelerates.
    pub policy: bentpipe_gateway::Policy,
}

/// A flow router at the start of a link direction, behind the gateway if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRouterSpec {
    /// Unique name.
    pub name: String,
    /// Direction into which it sends, and whose rate it shares out. Packets of the other direction pass
    /// through it as well.
    pub hop: Direction,
    /// Configuration of the router.
    pub config: bentpipe_flow_router::RouterConfig,
    /// Later rates of the direction from its timeline, in the order of time.
    pub rates: Vec<(Instant, Rate)>,
}

/// A middlebox at the start of a link direction, before gateway and flow router.
#[derive(Clone, Debug, PartialEq)]
pub struct MiddleboxSpec {
    /// Unique name.
    pub name: String,
    /// Direction into which it sends. Packets of the other direction pass through it as well.
    pub hop: Direction,
    /// What it does.
    pub config: bentpipe_nodes::MiddleboxConfig,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Direction {
    /// Index of the link.
    pub link: usize,
    /// False: from `a` to `b`; true: from `b` to `a`.
    pub backward: bool,
}

impl Direction {
    /// Index in a list that holds the forward and backward directions of all links in turn.
    pub const fn index(self) -> usize {
        2 * self.link + self.backward as usize
    }
}

/// An instrument that samples at fixed intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrumentSpec {
    /// Unique name.
    pub name: String,
    /// What it measures.
    pub kind: InstrumentKind,
    /// Direction at which it measures.
    pub link: Direction,
    /// Measuring interval.
    pub every: Duration,
}

/// What an instrument measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstrumentKind {
    /// A narrow channel beside a link that carries a known bit pattern in a loop and counts bit errors and
    /// errored seconds. It has the link's bit error rate and uses none of its capacity.
    SideChannel {
        /// Bit rate of the side channel.
        rate: Rate,
    },
    /// Counters of a router, as read by SNMP: packets, bytes, packets in error, dropped packets.
    Counters,
    /// Goodput of a flow and packet error ratio of a link, per interval.
    Bins {
        /// Index of the flow.
        flow: usize,
    },
}

/// A recording of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSpec {
    /// Direction to record: packets before the queue, after the link, and dropped ones with the cause.
    pub link: Direction,
    /// Start of the recording.
    pub from: Instant,
    /// End of the recording.
    pub to: Instant,
    /// Maximum number of bytes recorded of each packet.
    pub snap: Size,
    /// Maximum file size. The recording stops there.
    pub limit: Size,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At `duration`.
    Duration,
    /// When every flow of finite length has finished, at the latest at `duration`.
    Finished,
}

/// Value of a parameter for reports.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// Text, which includes quantities: `"64 segments"`.
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
    pub name: Arc<str>,
    /// Host or router.
    pub kind: NodeKind,
    /// Explicit static routes: destination host index and link index. All other packets take the route with
    /// the fewest hops (first link in file order on ties).
    pub routes: Vec<(usize, usize)>,
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// End of flows. A host has exactly one link.
    Host,
    /// Forwards by static routes.
    Router,
}

/// A link between two nodes, with separate properties for each direction.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Unique name of the direction from `a` to `b`.
    pub name: Arc<str>,
    /// Unique name of the direction from `b` to `a`.
    pub reverse_name: Arc<str>,
    /// Index of one end.
    pub a: usize,
    /// Index of the other end.
    pub b: usize,
    /// Direction from `a` to `b`. Links that are alike share it.
    pub forward: Arc<DirectionSpec>,
    /// Direction from `b` to `a`.
    pub backward: Arc<DirectionSpec>,
}

impl LinkSpec {
    /// The direction from `b` to `a` if `backward`, else that from `a` to `b`.
    pub fn direction(&self, backward: bool) -> &DirectionSpec {
        if backward { &self.backward } else { &self.forward }
    }

    /// True if a queue of this link, in either direction, serves low priority last.
    pub fn serves_low_priority_last(&self) -> bool {
        [&self.forward, &self.backward].iter().any(|d| d.discipline.uses_priority())
    }
}

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Unique name.
    pub name: Arc<str>,
    /// Index of the host that opens the connection and sends.
    pub from: usize,
    /// Index of the host that receives.
    pub to: usize,
    /// TCP configuration of the sender.
    pub sender: Arc<Config>,
    /// TCP configuration of the receiver.
    pub receiver: Arc<Config>,
    /// Sending application.
    pub app: App,
    /// What only flows of datagrams have.
    pub datagrams: DatagramSpec,
    /// How the receiving application reads.
    pub reader: Reader,
    /// Start time.
    pub start: Start,
    /// Name of the transfer of which this connection carries a part, if there are several.
    pub group: Option<String>,
}

impl FlowSpec {
    /// True if it is a flow of datagrams that asks for a rate. That must be a reserved one: what all flows of
    /// a file ask for by default is an available rate, which datagrams could not follow.
    pub fn asks_for_datagrams(&self) -> bool {
        let reserved = |asks: &AskConfig| asks.ask.is_some() && asks.terms.rate_type != RateType::Available;
        matches!(self.app, App::Udp { .. })
            && self.sender.signalling.as_ref().is_some_and(|signalling| reserved(&signalling.ask))
    }
}

/// What only flows of datagrams have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramSpec {
    /// Time from the start after which the flow ends; `None`: until the end of the run.
    pub lasting: Option<Duration>,
    /// What it does without the rate for which it asks.
    pub when_refused: WhenRefused,
}

/// Behaviour of the sending application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum App {
    /// Sends until the end of the run.
    Bulk,
    /// Sends this amount, then closes the connection.
    Transfer(Size),
    /// Writes at this rate until the end of the run.
    Rate(Rate),
    /// Sends without limit for this time from the start of the flow, then closes the connection.
    Lasting(Duration),
    /// Sends requests and receives responses over one connection, as a browser does. The next request
    /// follows the last byte of the response after a think time.
    Requests {
        /// Size of a request.
        request: Size,
        /// Size of a response.
        response: Size,
        /// Mean think time, exponentially distributed. Zero: the next request follows at once.
        think: Duration,
        /// Number of requests before the connection is closed; `None`: until the end of the run.
        count: Option<u64>,
    },
    /// Small writes at exponentially distributed intervals, like a user who types.
    Telnet {
        /// Size of a write.
        size: Size,
        /// Mean time between writes.
        gap: Duration,
    },
    /// UDP datagrams without congestion control.
    Udp {
        /// Payload of a datagram.
        size: Size,
        /// When they are sent.
        pattern: Pattern,
    },
}

/// Start time of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this time.
    At(Instant),
    /// At a random time, uniform between the two, drawn from the flow's own random stream.
    Uniform(Instant, Instant),
}
