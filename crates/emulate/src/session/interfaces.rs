//! Interfaces and routes of hosts.

use super::{INTERFACE, Session};
use crate::error::Error;
use bentpipe_base::Duration;
use bentpipe_os::netlink::{Metrics, Netlink, Route};
use bentpipe_service::wait_until;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::io;

/// Time limit for an interface to come up.
const PATIENCE: Duration = Duration::from_secs(5);

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

impl Session {
    /// Waits until the relay's ends carry packets. Called in the relay's network namespace.
    ///
    /// They were set up first, without carrier, so the kernel's link watch must start their queues. The
    /// hosts' ends had a carrier from the start and carry packets at once; only their state is updated later,
    /// after up to a second.
    pub(super) fn wait_until_up(&self) -> Result<(), Error> {
        for host in &self.hosts {
            wait_until_up(&host.port)
                .map_err(|e| Error::system(format!("the interface of {}", host.entry.name), e))?;
        }
        Ok(())
    }
}

/// Waits until an interface of the calling thread's namespace carries packets: a veth pair needs a moment
/// after both ends were set up, and until then the kernel drops packets.
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
