//! Addresses and routes.

use super::{Error, Netlink};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

/// TCP settings of new connections over a route; `None` is the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Initial congestion window in segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window in segments.
    pub initrwnd: Option<u32>,
    /// Disable delayed acknowledgments.
    pub quickack: Option<bool>,
    /// Advertised MSS in bytes.
    pub advmss: Option<u32>,
    /// Minimum RTO in milliseconds.
    pub rto_min_ms: Option<u32>,
    /// Kernel name of the congestion control.
    pub congestion: Option<String>,
}

/// A route over an interface, without a gateway.
#[derive(Clone, Debug)]
pub struct Route<'a> {
    /// Destination prefix; `0.0.0.0/0` and `::/0` are default routes.
    pub to: (IpAddr, u8),
    /// The interface.
    pub interface: &'a str,
    /// Initial TCP settings.
    pub metrics: Metrics,
}

/// A route as the kernel lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEntry {
    /// Destination prefix.
    pub to: (IpAddr, u8),
    /// Index of the interface.
    pub interface: Option<u32>,
    /// Number of the table; 254 is the main one.
    pub table: u32,
}

impl Netlink {
    /// Adds an address with a full-length prefix (/32 or /128) to an interface; adding it again is no error.
    /// IPv6 addresses are used without duplicate address detection.
    ///
    /// # Errors
    /// When there is no such interface or the kernel refuses, for instance because IPv6 is disabled.
    pub fn add_address(&mut self, interface: &str, address: IpAddr) -> Result<(), Error> {
        let mut message = AddressMessage::default();
        message.header.index = self.index_of(interface)?;
        (message.header.family, message.header.prefix_len) = family(address);
        message.header.scope = AddressScope::Universe;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE, || {
            format!("interface {interface} cannot have the address {address}")
        })
    }

    /// Adds a route.
    ///
    /// # Errors
    /// When the route exists already ([`Error::is_taken`]), there is no such interface, or the kernel does
    /// not know the congestion control.
    pub fn add_route(&mut self, route: &Route<'_>) -> Result<(), Error> {
        self.route(route, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a route, replacing an existing one to the same destination.
    ///
    /// # Errors
    /// As [`Netlink::add_route`].
    pub fn replace_route(&mut self, route: &Route<'_>) -> Result<(), Error> {
        self.route(route, NLM_F_CREATE | NLM_F_REPLACE)
    }

    fn route(&mut self, route: &Route<'_>, flags: u16) -> Result<(), Error> {
        let (to, length) = route.to;
        let mut message = direct_route(family(to).0, self.index_of(route.interface)?);
        message.header.destination_prefix_length = length;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        if length > 0 {
            message.attributes.push(RouteAttribute::Destination(to.into()));
        }
        let metrics = route.metrics.attributes();
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        self.request(RouteNetlinkMessage::NewRoute(message), flags, || {
            format!("the route to {to}/{length} over {} cannot be set", route.interface)
        })
    }

    /// Returns all routes of all tables.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn routes(&mut self) -> Result<Vec<RouteEntry>, Error> {
        let all = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        self.list("routes", all, |message| match message {
            RouteNetlinkMessage::NewRoute(route) => entry(&route),
            _ => None,
        })
    }
}

/// A static route over the interface of this index, without a gateway and a table.
pub(super) fn direct_route(family: AddressFamily, interface: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.protocol = RouteProtocol::Static;
    // IPv6 routes have no scope; for IPv4 the destination is on the link
    message.header.scope =
        if family == AddressFamily::Inet { RouteScope::Link } else { RouteScope::Universe };
    message.header.kind = RouteType::Unicast;
    message.attributes.push(RouteAttribute::Oif(interface));
    message
}

impl Metrics {
    fn attributes(&self) -> Vec<RouteMetric> {
        let mut all = Vec::new();
        all.extend(self.initcwnd.map(RouteMetric::InitCwnd));
        all.extend(self.initrwnd.map(RouteMetric::InitRwnd));
        all.extend(self.quickack.map(|on| RouteMetric::QuickAck(u32::from(on))));
        all.extend(self.advmss.map(RouteMetric::Advmss));
        all.extend(self.rto_min_ms.map(RouteMetric::RtoMin));
        all.extend(self.congestion.clone().map(RouteMetric::CcAlgo));
        all
    }
}

pub(super) fn family(address: IpAddr) -> (AddressFamily, u8) {
    match address {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    }
}

/// Converts an IPv4 or IPv6 route; `None` for other families.
fn entry(message: &RouteMessage) -> Option<RouteEntry> {
    let everywhere = match message.header.address_family {
        AddressFamily::Inet => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    let mut route = RouteEntry {
        to: (everywhere, message.header.destination_prefix_length),
        interface: None,
        table: u32::from(message.header.table),
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(to)) => route.to.0 = (*to).into(),
            RouteAttribute::Destination(RouteAddress::Inet6(to)) => route.to.0 = (*to).into(),
            RouteAttribute::Oif(index) => route.interface = Some(*index),
            RouteAttribute::Table(table) => route.table = *table,
            _ => {}
        }
    }
    Some(route)
}
