//! Route lookup, as `ip route get` does it, and the interface data needed to send packets along that route.

use super::link::Mac;
use super::route::family;
use super::{Error, Netlink};
use core::net::IpAddr;
use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use std::io;

/// The result of a route lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteLookup {
    /// Index of the interface.
    pub interface: u32,
    /// Source address.
    pub source: IpAddr,
    /// The next hop; `None` if the address is on the link.
    pub gateway: Option<IpAddr>,
    /// True if the address is one of this host's.
    pub local: bool,
}

/// An interface with its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// MAC address; zeros if it has none of six bytes.
    pub mac: Mac,
    /// MTU in bytes.
    pub mtu: u32,
    /// True if neighbours are resolved by ARP or ND; otherwise frames go to the interface's own MAC address.
    pub resolves: bool,
    /// True for the loopback interface.
    pub loopback: bool,
    /// Addresses.
    pub addresses: Vec<IpAddr>,
}

impl Netlink {
    /// Returns the route to `to`.
    ///
    /// # Errors
    /// When there is no route.
    pub fn route_to(&mut self, to: IpAddr) -> Result<RouteLookup, Error> {
        let mut message = RouteMessage::default();
        (message.header.address_family, message.header.destination_prefix_length) = family(to);
        message.attributes.push(RouteAttribute::Destination(to.into()));
        let mut way = None;
        let take = |answer| {
            if let RouteNetlinkMessage::NewRoute(route) = answer {
                way = read(&route);
            }
        };
        let asked = self.exchange(RouteNetlinkMessage::GetRoute(message), NLM_F_REQUEST | NLM_F_ACK, take);
        asked
            .and_then(|()| way.ok_or_else(|| io::ErrorKind::NetworkUnreachable.into()))
            .map_err(|source| Error::new(format!("there is no route to {to}"), source))
    }

    /// Returns an interface by its index.
    ///
    /// # Errors
    /// When there is none with that index, or the kernel does not answer.
    pub fn interface(&mut self, index: u32) -> Result<Interface, Error> {
        let missing = || Error::new(format!("there is no interface {index}"), io::ErrorKind::NotFound);
        let links = self.links()?;
        let link = links.iter().find(|link| link.header.index == index).ok_or_else(missing)?;
        let of_this = |(of, address): (u32, IpAddr)| (of == index).then_some(address);
        let addresses = self.addresses()?.into_iter().filter_map(of_this).collect();
        Ok(Interface { addresses, ..interface(link) })
    }

    /// Index of the interface that has this address; `None` if it is not an address of this host.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn interface_with(&mut self, wanted: IpAddr) -> Result<Option<u32>, Error> {
        Ok(self.addresses()?.into_iter().rfind(|(_, address)| *address == wanted).map(|(of, _)| of))
    }

    /// MAC address of a neighbour; `None` if the kernel does not know it.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn neighbour(&mut self, interface: u32, address: IpAddr) -> Result<Option<Mac>, Error> {
        let all = RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default());
        let found = self.list("neighbours", all, |message| match message {
            RouteNetlinkMessage::NewNeighbour(found) if found.header.ifindex == interface => {
                mac_of(&found, address)
            }
            _ => None,
        })?;
        Ok(found.last().copied())
    }

    /// All addresses, each with the index of its interface.
    fn addresses(&mut self) -> Result<Vec<(u32, IpAddr)>, Error> {
        self.list("addresses", RouteNetlinkMessage::GetAddress(AddressMessage::default()), |message| {
            let RouteNetlinkMessage::NewAddress(address) = message else { return None };
            let (mut local, mut other) = (None, None);
            for attribute in &address.attributes {
                match attribute {
                    AddressAttribute::Local(ip) => local = Some(*ip),
                    AddressAttribute::Address(ip) => other = Some(*ip),
                    _ => {}
                }
            }
            // on a point-to-point interface `Address` is the other end's
            local.or(other).map(|ip| (address.header.index, ip))
        })
    }
}

fn read(route: &RouteMessage) -> Option<RouteLookup> {
    let (mut interface, mut source, mut gateway) = (None, None, None);
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(index) => interface = Some(*index),
            RouteAttribute::PrefSource(address) => source = ip(address),
            RouteAttribute::Gateway(address) => gateway = ip(address),
            _ => {}
        }
    }
    let local = route.header.kind == RouteType::Local;
    Some(RouteLookup { interface: interface?, source: source?, gateway, local })
}

const fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(ip) => Some(IpAddr::V4(*ip)),
        RouteAddress::Inet6(ip) => Some(IpAddr::V6(*ip)),
        _ => None,
    }
}

fn interface(link: &LinkMessage) -> Interface {
    let mut found = Interface {
        index: link.header.index,
        resolves: !link.header.flags.contains(LinkFlags::Noarp),
        loopback: link.header.flags.contains(LinkFlags::Loopback),
        ..Interface::default()
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => name.clone_into(&mut found.name),
            LinkAttribute::Mtu(mtu) => found.mtu = *mtu,
            LinkAttribute::Address(bytes) => {
                found.mac = bytes.as_slice().try_into().unwrap_or_default();
            }
            _ => {}
        }
    }
    found
}

fn mac_of(neighbour: &NeighbourMessage, wanted: IpAddr) -> Option<Mac> {
    let is = neighbour.attributes.iter().any(|a| match a {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(ip)) => IpAddr::V4(*ip) == wanted,
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(ip)) => IpAddr::V6(*ip) == wanted,
        _ => false,
    });
    neighbour.attributes.iter().filter(|_| is).find_map(|a| match a {
        NeighbourAttribute::LinkLayerAddress(bytes) => bytes.as_slice().try_into().ok(),
        _ => None,
    })
}
