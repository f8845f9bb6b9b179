//! A gateway file as a value.

use crate::custom::CustomSpec;
use bentpipe_base::{Duration, Rate, Size};
pub use bentpipe_gateway::{Action, Copies, Mode, Policy, PortRange, Prefix, Rule, Side};
use core::net::{IpAddr, SocketAddr};

/// All that a gateway file says, every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayFile {
    /// The satellite hop.
    pub hop: Hop,
    /// Where the gateway stands.
    pub deploy: Deploy,
    /// Which connections are accelerated.
    pub policy: Policy,
    /// Share, from 0 to 1, of the connections to be accelerated that are left alone.
    pub sample: f64,
    /// Stop accelerating when the sample shows that it is slower.
    pub bypass_when_slower: bool,
    /// Bits of an address that make a subscriber: IPv4, IPv6.
    pub subscriber_prefix: (u8, u8),
    /// Nodes of kinds that are not built in, behind the gateway in their order.
    pub customs: Vec<CustomSpec>,
    /// How much may be held.
    pub limits: Limits,
    /// How it tells how it is.
    pub status: Status,
}

impl GatewayFile {
    /// The subscriber to whom an address on the LAN belongs.
    pub fn subscriber(&self, address: IpAddr) -> Option<Prefix> {
        let (v4, v6) = self.subscriber_prefix;
        Prefix::new(address, if address.is_ipv4() { v4 } else { v6 })
    }
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
