//! Which connections are accelerated: rules that are evaluated for the SYN of each connection.
//!
//! The result depends on the SYN only, so a retransmitted SYN gets the same one. The control group
//! ([`Config::sample`](crate::Config::sample)) is drawn by the gateway among the connections that the rules
//! accelerate.

use bentpipe_base::Prefix;
use core::fmt;
use core::net::IpAddr;

/// What to do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Accelerate it.
    Accelerate,
    /// Let it pass unaccelerated.
    Pass,
}

/// A side of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side of the sending hosts.
    Lan,
    /// The side of the satellite hop.
    Satellite,
}

/// A rule. An empty list and `None` match everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Action for matching connections.
    pub action: Action,
    /// Prefixes of the host that opens the connection.
    pub from: Vec<Prefix>,
    /// Prefixes of the host it connects to.
    pub to: Vec<Prefix>,
    /// Destination ports.
    pub ports: Vec<PortRange>,
    /// Source ports.
    pub from_ports: Vec<PortRange>,
    /// DSCP values.
    pub dscp: Vec<u8>,
    /// Side of the host that opens the connection.
    pub opened_from: Option<Side>,
}

/// A range of ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// First port.
    pub first: u16,
    /// Last port.
    pub last: u16,
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// The properties of a SYN that rules can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynProperties {
    /// Source address.
    pub from: IpAddr,
    /// Destination address.
    pub to: IpAddr,
    /// Source port.
    pub from_port: u16,
    /// Destination port.
    pub port: u16,
    /// DSCP of the packet.
    pub dscp: u8,
    /// The side it came from.
    pub side: Side,
}

/// The rules. The first one that matches decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The rules, in order.
    pub rules: Vec<Rule>,
    /// Action for connections that no rule matches.
    pub otherwise: Action,
}

impl Default for Policy {
    /// Accelerates everything.
    fn default() -> Self {
        Self { rules: Vec::new(), otherwise: Action::Accelerate }
    }
}

impl Policy {
    /// Returns the action for a connection.
    pub fn decide(&self, opening: &SynProperties) -> Action {
        self.rule_for(opening).and_then(|at| self.rules.get(at)).map_or(self.otherwise, |rule| rule.action)
    }

    /// Returns the index of the rule that decides about a connection; `None` if none matches.
    pub fn rule_for(&self, opening: &SynProperties) -> Option<usize> {
        self.rules.iter().position(|rule| rule.matches(opening))
    }
}

impl Rule {
    fn matches(&self, opening: &SynProperties) -> bool {
        let holds = |prefixes: &[Prefix], address| {
            prefixes.is_empty() || prefixes.iter().any(|p| p.contains(address))
        };
        let within = |ranges: &[PortRange], port| {
            ranges.is_empty() || ranges.iter().any(|r| (r.first..=r.last).contains(&port))
        };
        self.opened_from.is_none_or(|side| side == opening.side)
            && within(&self.ports, opening.port)
            && within(&self.from_ports, opening.from_port)
            && (self.dscp.is_empty() || self.dscp.contains(&opening.dscp))
            && holds(&self.from, opening.from)
            && holds(&self.to, opening.to)
    }
}
