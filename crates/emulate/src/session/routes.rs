//! Routes of hosts. Also brings interfaces up, without which there are no routes.

use super::INTERFACE;
use crate::error::Error;
use bentpipe_os::netlink::{Metrics, Netlink, Route};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Sets a host's addresses and its default route over the link. Called in its namespace.
pub(super) fn attach(addresses: &[IpAddr]) -> Result<(), Error> {
    let mut netlink = Netlink::open()?;
    netlink.set_up(INTERFACE)?;
    for &address in addresses {
        netlink.add_address(INTERFACE, address)?;
        let everywhere = match address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let (to, metrics) = ((everywhere, 0), Metrics::default());
        netlink.add_route(&Route { to, interface: INTERFACE, metrics })?;
    }
    Ok(())
}

/// Adds routes to single addresses over an interface. Called in the namespace of that interface.
pub(super) fn add_host_routes(interface: &str, addresses: &[IpAddr]) -> Result<(), Error> {
    let mut netlink = Netlink::open()?;
    netlink.set_up(interface)?;
    for &address in addresses {
        let length = if address.is_ipv4() { 32 } else { 128 };
        netlink.replace_route(&Route { to: (address, length), interface, metrics: Metrics::default() })?;
    }
    Ok(())
}
