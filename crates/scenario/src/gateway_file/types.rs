//! A gateway file as a value.

use bentpipe_base::{Duration, Rate, Size};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// All that a gateway file says, every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayFile {
    /// The satellite hop.
    pub hop: Hop,
    /// Where the gateway stands.
    pub deploy: Deploy,
    /// Which connections are accelerated; the first rule that matches decides.
    pub rules: Vec<Rule>,
    /// What becomes of the others.
    pub otherwise: Action,
    /// Share, from 0 to 1, of the connections to be accelerated that are left alone.
    pub sample: f64,
    /// Stop accelerating when the sample shows that it is slower.
    pub bypass_when_slower: bool,
    /// Bits of an address that make a subscriber: IPv4, IPv6.
    pub subscriber_prefix: (u8, u8),
    /// How much may be held.
    pub limits: Limits,
    /// How it tells how it is.
    pub status: Status,
}

/// The satellite hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// As the hop counts; `None`: nothing is paced.
    pub rate: Option<Rate>,
    /// Bytes it counts for each packet beside IP.
    pub framing: Size,
    /// Round-trip time until it is measured.
    pub rtt: Option<Duration>,
    /// How the receiver is judged.
    pub mode: Mode,
    /// Share of the rate that is used.
    pub share: f64,
    /// How often each packet is sent.
    pub copies: Copies,
}

/// How the receiver is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Finds out how fast it can read.
    Open,
    /// Keeps to the printed equations.
    Strict,
}

/// How often each packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// As often as pays at the loss that is measured.
    Auto,
    /// So often.
    Fixed(u8),
}

/// How the gateway gets at packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By routes into TUN interfaces.
    Routed,
    /// As the wire between two interfaces.
    Inline,
}

/// What becomes of a start before a firewall that would drop what it lets pass today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firewall {
    /// There is none.
    Check,
    /// It starts all the same.
    Ignore,
}

/// Where the gateway stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deploy {
    /// How it gets at packets.
    pub kind: Kind,
    /// Interfaces of the hosts that send, at least one; exactly one inline.
    pub lan: Vec<String>,
    /// The interface that leads to the satellite.
    pub satellite: String,
    /// Name of the gateway.
    pub name: String,
    /// TUN interface of the LAN's packets.
    pub tun_lan: String,
    /// TUN interface of the satellite's packets.
    pub tun_satellite: String,
    /// nftables table of family `inet`.
    pub nft_table: String,
    /// Mark of packets from the LAN; the next number is that of packets from the satellite.
    pub mark: u32,
    /// Routing table of packets from the LAN; the next number is that of packets from the satellite.
    pub table: u32,
    /// Preference of the routing rules.
    pub priority: u32,
    /// What firewalls are asked.
    pub firewall: Firewall,
    /// How long after its start it watches whether traffic goes on; zero: not at all.
    pub watch: Duration,
}

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

/// How much may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections.
    pub flows: u32,
    /// Bytes of all connections.
    pub memory: Size,
    /// Bytes of one.
    pub per_flow: Size,
    /// Longest opening.
    pub opening: Duration,
    /// Longest silence.
    pub idle: Duration,
    /// Longest end.
    pub closing: Duration,
}

/// How the gateway tells how it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Control socket; `None`: beside the session file.
    pub socket: Option<String>,
    /// Where Prometheus finds metrics.
    pub prometheus: Option<SocketAddr>,
    /// Flow records.
    pub records: Option<(String, RecordFormat)>,
}

/// How flow records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFormat {
    /// Comma separated values with a heading.
    Csv,
    /// A JSON object a line.
    JsonLines,
}
