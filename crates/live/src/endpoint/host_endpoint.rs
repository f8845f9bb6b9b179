//! Runs an endpoint beside the kernel's TCP: at the host's address, on the interface that leads to the peer,
//! with one port of its own.
//!
//! The host's kernel handles all other traffic. A socket that receives nothing ([`SilentPort`]) holds the
//! port, so that the kernel neither answers the peer nor gives the port to another program. A packet socket
//! on the interface reads and writes the port's packets. This needs CAP_NET_RAW in the network namespace,
//! which programs behind an emulated link have without being root. Nothing of it outlives the process.

use super::neighbour_port::NeighbourPort;
use super::{EndpointDriver, Settings};
use bentpipe_base::Size;
use bentpipe_os::netlink::{Interface, Mac, Netlink};
use bentpipe_os::{Clock, PortError, SilentPort, VethPort, netlink, wait};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::time::Duration;

/// How often to look for a neighbour's hardware address before giving up, and the time between two tries.
const LOOKS: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(10);
/// The port of "discard" (RFC 863): a datagram to it makes the kernel resolve the neighbour's address.
const DISCARD: u16 = 9;
/// Send buffer: enough for 2.5 Gbit/s over 100 ms. Only what the window needs is used.
const SEND_BUFFER: Size = Size(32 << 20);
/// First port that programs other than root's may use (ip(7), `ip_unprivileged_port_start`).
const FOR_ALL: u16 = 1024;
/// Smallest MTU for TCP (RFC 8200, section 5).
const LEAST_MTU: u32 = 576;

/// Why the endpoint of a host could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostEndpointError {
    /// No route, or no interface.
    #[error("{0}\nhelp: behind a link of `bentpipe emulate` the other end is called `far`")]
    NoWay(#[source] netlink::Error),
    /// The kernel did not answer a netlink request.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// The peer is the host itself.
    #[error(
        "{0} is this host itself: packets to it never reach an interface\nhelp: write the address of another host"
    )]
    Ourselves(IpAddr),
    /// The address to listen at is not ours.
    #[error(
        "{0} is not an address of this host\nhelp: `ip address` lists its addresses; leave it out to use the interface of the default route"
    )]
    NotOurs(IpAddr),
    /// There is no default route.
    #[error("this host has no default route\nhelp: write the address to listen at, as in 10.55.0.2:5000")]
    NoInterface,
    /// Another program uses the port.
    #[error("port {0} is in use by another program\nhelp: end it, or choose another port")]
    PortTaken(u16),
    /// Only root may use the port.
    #[error("port {0} is for root only\nhelp: choose a port from 1024 on")]
    PortForbidden(u16),
    /// The kernel refused the port for another reason.
    #[error("port {0}: {1}")]
    Port(u16, #[source] io::Error),
    /// No permission to open a packet socket.
    #[error(
        "bentpipe's own TCP reads and writes packets, which is not permitted here (CAP_NET_RAW)\n\
         help: run it behind a link, which needs no permission: bentpipe emulate geo-10m -- bentpipe send far:5000 FILE\n\
         help: or start it as root"
    )]
    NotAllowed,
    /// The interface cannot be used.
    #[error(transparent)]
    Packets(PortError),
    /// The next hop does not answer.
    #[error(
        "{0} does not answer address resolution on {1}\nhelp: check that this host is running and connected"
    )]
    NoNeighbour(IpAddr, String),
    /// The interface does not carry Ethernet frames.
    #[error(
        "interface {0} carries no Ethernet frames\nhelp: use a veth pair, as `bentpipe emulate` does, or an Ethernet"
    )]
    NotEthernet(String),
}

/// An endpoint at this host's address, ready to be driven.
#[derive(Debug)]
pub struct HostEndpoint {
    /// The endpoint behind its port.
    pub driver: EndpointDriver<NeighbourPort>,
    /// Our port.
    pub port: u16,
    /// Our addresses.
    pub addresses: Vec<IpAddr>,
    interface: Interface,
    /// Keep the kernel from answering at our port.
    _silent: Vec<SilentPort>,
}

impl HostEndpoint {
    /// An endpoint that can connect to `to`. `seed` must be secret.
    ///
    /// # Errors
    /// When there is no route to `to`, or no permission.
    pub fn towards(to: IpAddr, seed: u64) -> Result<Self, HostEndpointError> {
        let mut netlink = Netlink::open()?;
        let way = netlink.route_to(to).map_err(HostEndpointError::NoWay)?;
        if way.local {
            return Err(HostEndpointError::Ourselves(to));
        }
        let interface = netlink.interface(way.interface)?;
        let mut host = Self::open(interface, vec![way.source], 0, seed)?;
        if host.interface.resolves {
            let mac = host.neighbour(&mut netlink, way.gateway.unwrap_or(to))?;
            host.driver.port.set_next_hop(mac);
        }
        Ok(host)
    }

    /// An endpoint that listens at `port`, at `address` or at all addresses of the default route's interface.
    ///
    /// # Errors
    /// When the address is not ours, the port is taken, or there is no permission.
    pub fn at(address: Option<IpAddr>, port: u16, seed: u64) -> Result<Self, HostEndpointError> {
        let mut netlink = Netlink::open()?;
        let index = match address {
            Some(address) => netlink.interface_with(address)?.ok_or(HostEndpointError::NotOurs(address))?,
            None => default_route_interface(&mut netlink).ok_or(HostEndpointError::NoInterface)?,
        };
        let interface = netlink.interface(index)?;
        let is_general = |a: &IpAddr| !matches!(a, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let addresses: Vec<IpAddr> = match address {
            Some(address) => vec![address],
            None => interface.addresses.iter().copied().filter(is_general).collect(),
        };
        let mut host = Self::open(interface, addresses, port, seed)?;
        if host.interface.resolves {
            host.driver.port.learn_next_hops(host.port);
        }
        Ok(host)
    }

    /// Takes `port`, or any if it is 0.
    fn open(
        interface: Interface,
        addresses: Vec<IpAddr>,
        port: u16,
        seed: u64,
    ) -> Result<Self, HostEndpointError> {
        let ports = addresses.iter().map(|address| take(SocketAddr::new(*address, port)));
        let silent = ports.collect::<Result<Vec<_>, _>>()?;
        if interface.loopback {
            let own = addresses.first().copied().unwrap_or(Ipv4Addr::LOCALHOST.into());
            return Err(HostEndpointError::Ourselves(own));
        }
        if interface.mac == [0; 6] {
            return Err(HostEndpointError::NotEthernet(interface.name));
        }
        // without it a sleep may last 50 us too long; failing to set it is harmless
        let _ = wait::set_timer_slack();
        let port = silent.first().map_or(0, |s| s.address().port());
        let packets = VethPort::open(&interface.name, interface.mac).map_err(|e| match e {
            PortError::NoPacketSockets => HostEndpointError::NotAllowed,
            other => HostEndpointError::Packets(other),
        })?;
        let settings = Settings {
            addresses: addresses.clone(),
            port: Some(port),
            mtu: interface.mtu.clamp(LEAST_MTU, 65_535) as u16,
            send_buffer: SEND_BUFFER,
            ..Settings::default()
        };
        let packets = NeighbourPort::new(packets, interface.mac);
        let driver = EndpointDriver::new(packets, Clock::start(), seed, settings);
        Ok(Self { driver, port, addresses, interface, _silent: silent })
    }

    /// Returns a neighbour's hardware address; makes the kernel resolve it.
    fn neighbour(&self, netlink: &mut Netlink, next: IpAddr) -> Result<Mac, HostEndpointError> {
        let any: IpAddr =
            if next.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        for look in 0..LOOKS {
            if let Some(mac) = netlink.neighbour(self.interface.index, next)? {
                return Ok(mac);
            }
            if look == 0
                && let Ok(socket) = UdpSocket::bind((any, 0))
            {
                // whether it arrives does not matter
                let _ = socket.send_to(&[], (next, DISCARD));
            }
            std::thread::park_timeout(BETWEEN);
        }
        Err(HostEndpointError::NoNeighbour(next, self.interface.name.clone()))
    }
}

/// Returns the interface of the default route, of IPv4 or else of IPv6.
fn default_route_interface(netlink: &mut Netlink) -> Option<u32> {
    // addresses for documentation (RFC 5737, RFC 3849): only a default route leads there
    let somewhere: [IpAddr; 2] =
        [Ipv4Addr::new(192, 0, 2, 1).into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()];
    somewhere.into_iter().find_map(|to| netlink.route_to(to).ok().filter(|w| !w.local)).map(|w| w.interface)
}

fn take(at: SocketAddr) -> Result<SilentPort, HostEndpointError> {
    SilentPort::take(at).map_err(|error| refused(at, error))
}

fn refused(at: SocketAddr, error: io::Error) -> HostEndpointError {
    match error.kind() {
        ErrorKind::AddrInUse => HostEndpointError::PortTaken(at.port()),
        ErrorKind::PermissionDenied if (1..FOR_ALL).contains(&at.port()) => {
            HostEndpointError::PortForbidden(at.port())
        }
        ErrorKind::PermissionDenied => HostEndpointError::NotAllowed,
        ErrorKind::AddrNotAvailable => HostEndpointError::NotOurs(at.ip()),
        _ => HostEndpointError::Port(at.port(), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_user_is_told_what_is_for_root() {
        let said = |port| {
            let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
            refused(at, ErrorKind::PermissionDenied.into()).to_string()
        };
        assert!(said(80).starts_with("port 80 is for root only"), "{}", said(80));
        // any port needs the permission to read and write packets
        for port in [0, 5000] {
            assert!(said(port).contains("CAP_NET_RAW"), "{}", said(port));
        }
    }
}
