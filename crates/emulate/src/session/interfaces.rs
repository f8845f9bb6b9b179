//! Interfaces and routes of hosts.

use super::INTERFACE;
use crate::error::Error;
use bentpipe_base::Duration;
use bentpipe_os::netlink::{Metrics, Netlink, Route};
use bentpipe_service::wait_until;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::io;

/// Time limit for an interface to come up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sets a host's addresses. Called in its namespace.
pub(super) fn set_addresses(addresses: &[IpAddr]) -> Result<(), Error> {
    let mut netlink = Netlink::open()?;
    netlink.set_up(INTERFACE)?;
    for &address in addresses {
        netlink.add_address(INTERFACE, address)?;
    }
    Ok(())
}

/// Sets a host's addresses and its default route over the link. Called in its namespace.
pub(super) fn attach(addresses: &[IpAddr]) -> Result<(), Error> {
    set_addresses(addresses)?;
    let mut netlink = Netlink::open()?;
    for &address in addresses {
        let everywhere: IpAddr =
            if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
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

/// Waits until an interface of the calling thread's namespace carries packets. The end of a veth pair that
/// was set up first had no carrier then: the kernel drops its packets until the link watch starts its queue.
/// The other end carries packets at once.
///
/// # Errors
/// When it does not within the time limit.
pub fn wait_until_up(interface: &str) -> io::Result<()> {
    let mut netlink = Netlink::open().map_err(io::Error::other)?;
    let mut carries = Ok(false);
    wait_until(PATIENCE, Duration::from_millis(1), || {
        carries = netlink.carries(interface);
        !matches!(carries, Ok(false))
    });
    if carries.map_err(io::Error::other)? {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("{interface} does not come up")))
}
