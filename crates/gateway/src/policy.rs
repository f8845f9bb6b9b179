//! Which connections are accelerated: rules that are evaluated for the SYN of each connection.
//!
//! The result depends on the SYN only, so a retransmitted SYN gets the same one. The control group
//! ([`Config::sample`](crate::Config::sample)) is drawn by the gateway among the connections that the rules
//! accelerate.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

/// An address prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Returns the prefix of `length` bits of `address`; `None` if `length` exceeds the address length.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        if length > if address.is_ipv4() { 32 } else { 128 } {
            return None;
        }
        let address = match address {
            IpAddr::V4(a) => IpAddr::V4(Ipv4Addr::from_bits(
                a.to_bits() & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0),
            )),
            IpAddr::V6(a) => IpAddr::V6(Ipv6Addr::from_bits(
                a.to_bits() & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0),
            )),
        };
        Some(Self { address, length })
    }

    /// Its first address.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Prefix length in bits.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// True if `address` has this prefix.
    pub fn contains(self, address: IpAddr) -> bool {
        Self::new(address, self.length)
            .is_some_and(|p| p == self && p.address.is_ipv4() == self.address.is_ipv4())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
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
        self.rules.iter().find(|rule| rule.matches(opening)).map_or(self.otherwise, |rule| rule.action)
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
