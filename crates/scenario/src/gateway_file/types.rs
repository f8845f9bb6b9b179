//! [`GatewayFile`], the fully resolved form of a gateway file.

use crate::custom::CustomSpec;
use bentpipe_base::Duration;
pub use bentpipe_base::Prefix;
use bentpipe_flow_router::RouterConfig;
pub use bentpipe_gateway::{Action, Config, Copies, Mode, Policy, PortRange, Rule, Side};
use core::net::{IpAddr, SocketAddr};

/// A gateway file with all defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayFile {
    /// The satellite hop, the limits and the control group.
    pub config: Config,
    /// Where the gateway stands.
    pub deploy: Deploy,
    /// Which connections are accelerated.
    pub policy: Policy,
    /// Rates that flows are told; `None`: off.
    pub rate: Option<ManagedRates>,
    /// True: stop acceleration when the control group is faster.
    pub bypass_when_slower: bool,
    /// Prefix length of a subscriber's address: IPv4, IPv6.
    pub subscriber_prefix: (u8, u8),
    /// Nodes of kinds that are not built in, placed behind the gateway in this order.
    pub customs: Vec<CustomSpec>,
    /// How the gateway reports its state.
    pub status: Status,
}

impl GatewayFile {
    /// Returns the subscriber prefix of a LAN address.
    pub fn subscriber(&self, address: IpAddr) -> Option<Prefix> {
        let (v4, v6) = self.subscriber_prefix;
        Prefix::new(address, if address.is_ipv4() { v4 } else { v6 })
    }
}

/// The flow routers of a gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagedRates {
    /// The one of the direction to the satellite.
    pub outward: RouterConfig,
    /// The one of the direction to the LAN, if that is managed.
    pub inward: Option<RouterConfig>,
}

/// How packets reach the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Through routes into TUN interfaces.
    Routed,
    /// As a wire between two interfaces.
    Inline,
}

/// What to do if a firewall would drop packets on the TUN interfaces that it accepts today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firewall {
    /// Refuse to start.
    Check,
    /// Print a warning and start.
    Ignore,
}

/// Where the gateway stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deploy {
    /// How packets reach the gateway.
    pub kind: Kind,
    /// Interfaces towards the sending hosts: at least one, exactly one if inline.
    pub lan: Vec<String>,
    /// Interface towards the satellite.
    pub satellite: String,
    /// Name of the gateway.
    pub name: String,
    /// TUN interface for packets from and to the LAN.
    pub tun_lan: String,
    /// TUN interface for packets from and to the satellite.
    pub tun_satellite: String,
    /// Name of the nftables table, of family `inet`.
    pub nft_table: String,
    /// Firewall mark of packets from the LAN. Packets from the satellite get the next number.
    pub mark: u32,
    /// Routing table for packets from the LAN. Packets from the satellite use the next number.
    pub table: u32,
    /// Priority of the routing rules.
    pub priority: u32,
    /// Whether firewalls are checked.
    pub firewall: Firewall,
    /// How long after the start traffic is watched; zero: not at all.
    pub watch: Duration,
}

/// How the gateway reports its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Path of the control socket; `None`: beside the session file.
    pub socket: Option<String>,
    /// Address of the Prometheus metrics endpoint.
    pub prometheus: Option<SocketAddr>,
    /// File of flow records and its format.
    pub records: Option<(String, RecordFormat)>,
}

/// Format of flow records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFormat {
    /// CSV with a header line.
    Csv,
    /// One JSON object per line.
    JsonLines,
}
