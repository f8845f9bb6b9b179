//! Which connections are accelerated: rules asked once for the SYN of each, and a share that is left alone to
//! compare with.
//!
//! The answer of the rules is a function of the SYN alone, so a repeated one gets the same. Whether a
//! connection belongs to the share that is left alone is drawn by the gateway, among those that the rules
//! would accelerate.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is accelerated.
    Accelerate,
    /// It passes.
    Pass,
}

/// A side of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// That of the hosts that send.
    Lan,
    /// That of the satellite hop.
    Satellite,
}

/// A rule; an empty list and `None` match everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What becomes of connections that match.
    pub action: Action,
    /// Who opens.
    pub from: Vec<Prefix>,
    /// To whom.
    pub to: Vec<Prefix>,
    /// Ports that are opened.
    pub ports: Vec<PortRange>,
    /// Ports of who opens.
    pub from_ports: Vec<PortRange>,
    /// DSCP values.
    pub dscp: Vec<u8>,
    /// From which side.
    pub opened_from: Option<Side>,
}

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The first `length` bits of `address`; `None` when it has not so many.
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

    /// How many bits are alike.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// True when `address` begins so.
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

/// Ports from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last.
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

/// What is known of the packet that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Who opens.
    pub from: IpAddr,
    /// To whom.
    pub to: IpAddr,
    /// Port of who opens.
    pub from_port: u16,
    /// Port that is opened.
    pub port: u16,
    /// DSCP of the packet.
    pub dscp: u8,
    /// The side it came from.
    pub side: Side,
}

/// The rules: the first one that matches decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// In their order.
    pub rules: Vec<Rule>,
    /// What becomes of connections that no rule matches.
    pub otherwise: Action,
}

impl Default for Policy {
    /// Everything is accelerated.
    fn default() -> Self {
        Self { rules: Vec::new(), otherwise: Action::Accelerate }
    }
}

impl Policy {
    /// What becomes of a connection.
    pub fn decide(&self, opening: &Opening) -> Action {
        self.rules.iter().find(|rule| rule.matches(opening)).map_or(self.otherwise, |rule| rule.action)
    }
}

impl Rule {
    fn matches(&self, opening: &Opening) -> bool {
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
