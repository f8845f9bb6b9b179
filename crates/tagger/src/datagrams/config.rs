//! The configuration of a tagger of datagrams.

use crate::rules::Ports;
use bentpipe_advice::negotiation::AskConfig;
use bentpipe_base::{Duration, Port, Prefix, Size};
use core::net::IpAddr;

/// A rule: flows of datagrams to which it applies, and what is asked for them. An empty list matches
/// everything.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramRule {
    /// Addresses of the end that sends.
    pub from: Vec<Prefix>,
    /// Addresses of the end that receives.
    pub to: Vec<Prefix>,
    /// Ports of the end that sends.
    pub from_ports: Vec<Ports>,
    /// Ports of the end that receives.
    pub ports: Vec<Ports>,
    /// The side of the end that sends; `None`: either.
    pub side: Option<Port>,
    /// What is asked for a flow that the host sends, and taken of one that it receives; `None`: these flows
    /// are left alone.
    pub ask: Option<AskConfig>,
}

/// One direction between two ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) from: (Option<IpAddr>, u16),
    pub(super) to: (Option<IpAddr>, u16),
    pub(super) side: Port,
}

impl DatagramRule {
    fn applies(&self, way: &Way) -> bool {
        let holds = |prefixes: &[Prefix], address: Option<IpAddr>| {
            prefixes.is_empty() || address.is_some_and(|a| prefixes.iter().any(|p| p.contains(a)))
        };
        let within = |ports: &[Ports], port: u16| ports.is_empty() || ports.iter().any(|p| p.contains(port));
        self.side.is_none_or(|side| side == way.side)
            && within(&self.from_ports, way.from.1)
            && within(&self.ports, way.to.1)
            && holds(&self.from, way.from.0)
            && holds(&self.to, way.to.0)
    }
}

/// What the first rule that applies says; `None` without one.
pub(super) fn asked<'a>(rules: &'a [DatagramRule], way: &Way) -> Option<&'a AskConfig> {
    rules.iter().find(|rule| rule.applies(way))?.ask.as_ref()
}

/// The configuration of a tagger of datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramConfig {
    /// Which flows ask and answer; the first rule that applies decides, and a flow without one is left alone.
    pub rules: Vec<DatagramRule>,
    /// Most flows with state.
    pub flows: u32,
    /// The longest time for which a datagram is held: before the first answer, and at a granted rate.
    pub wait: Duration,
    /// Most bytes that one flow has waiting.
    pub queue: Size,
    /// Most memory for what waits in all flows. What a flow sends beyond it is dropped at a granted rate; one
    /// that waits for an answer goes on without a rate.
    pub memory: Size,
    /// Time without datagrams after which a flow gives its rate back and is forgotten.
    pub idle: Duration,
}

impl DatagramConfig {
    /// Defaults with these rules.
    pub const fn new(rules: Vec<DatagramRule>) -> Self {
        Self {
            rules,
            flows: 4096,
            // a round trip over a geostationary satellite, with one repetition of the request
            wait: Duration::from_secs(1),
            queue: Size(1 << 20),
            memory: Size(32 << 20),
            // as long as a flow router keeps a flow that is silent
            idle: Duration::from_secs(10),
        }
    }
}
