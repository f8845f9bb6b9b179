//! [`AgentFile`], the fully resolved form of an agent file.

use crate::gateway_file::{GatewayFile, Policy};
use bentpipe_advice::negotiation::AskConfig;
use bentpipe_base::{Duration, Size};
use bentpipe_tcp::Config;

/// An agent file with all defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentFile {
    /// How it acts for the host.
    pub method: Method,
    /// Where it stands.
    pub place: Place,
    /// What it shares with a gateway: names of system objects, the conditions of the rules, the control
    /// socket. The host is on the side of the LAN. Rules that signal have the action `Accelerate`. An agent
    /// on the host itself is described as routed.
    pub site: GatewayFile,
    /// For each rule, the TCP towards the network; `None` for one that lets connections pass.
    pub asks: Vec<Option<Config>>,
    /// The numbers of these rules in the file, from 1.
    pub numbers: Vec<usize>,
    /// The rules for datagrams; `None` if there are none.
    pub datagrams: Option<DatagramRules>,
    /// Limits.
    pub limits: AgentLimits,
    /// Windows that sockets of the host can have with [`Method::Kernel`]: the initial one, and the largest.
    pub windows: [Size; 2],
    /// How long to wait for connections to end when it is stopped.
    pub drain: Duration,
}

/// Rules for datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramRules {
    /// Their conditions, as those of connections: source and destination are those of the data.
    pub policy: Policy,
    /// For each rule, what is asked for and taken; `None` for one that lets datagrams pass.
    pub asks: Vec<Option<AskConfig>>,
    /// The longest time for which a datagram is held.
    pub wait: Duration,
    /// Time without datagrams after which a flow gives its rate back.
    pub idle: Duration,
}

/// Protocol of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// How an agent acts for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It ends the host's connection and goes on with a TCP of its own.
    Split,
    /// It signals in the host's own packets, and the host's TCP uses the rates.
    Kernel,
}

impl Method {
    /// Returns its word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Kernel => "kernel",
        }
    }
}

/// Where an agent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Between two interfaces, like a wire.
    Inline,
    /// On a router.
    Routed,
    /// On the host itself.
    Host,
}

impl Place {
    /// Returns its word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Routed => "routed",
            Self::Host => "host",
        }
    }
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Takes the connection.
    Signal,
    /// Lets it pass unread.
    Pass,
}

/// Limits of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Connections at a time.
    pub flows: usize,
    /// Memory for all buffers together.
    pub memory: Size,
    /// Silence after which a peer is asked whether it is still there.
    pub idle: Duration,
}
