//! Interfaces: veth pairs, state and MTU.

use super::{Error, Netlink};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State,
};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// A MAC address.
pub type Mac = [u8; 6];

/// A veth pair without ARP: frames sent to an end's own MAC address reach the other end. Both ends start
/// down, since one cannot come up before the other exists.
#[derive(Clone, Copy, Debug)]
pub struct VethPair<'a> {
    /// Name of the end in the calling thread's namespace.
    pub name: &'a str,
    /// MAC address of that end.
    pub mac: Mac,
    /// Name of the other end.
    pub peer: &'a str,
    /// MAC address of the other end.
    pub peer_mac: Mac,
    /// Network namespace of the other end.
    pub peer_network: BorrowedFd<'a>,
    /// MTU in bytes.
    pub mtu: u32,
}

impl Netlink {
    /// Creates a veth pair.
    ///
    /// # Errors
    /// When a name is in use ([`Error::is_taken`]) or the kernel refuses.
    pub fn add_veth(&mut self, pair: &VethPair<'_>) -> Result<(), Error> {
        let mut peer = end(pair.peer, pair.peer_mac, pair.mtu);
        peer.attributes.push(LinkAttribute::NetNsFd(pair.peer_network.as_raw_fd()));
        let mut message = end(pair.name, pair.mac, pair.mtu);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL, || {
            format!("the pair of interfaces {} and {} cannot be made", pair.name, pair.peer)
        })
    }

    /// Brings an interface up.
    ///
    /// # Errors
    /// When there is no interface of that name.
    pub fn set_up(&mut self, name: &str) -> Result<(), Error> {
        let mut message = named(name);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0, || {
            format!("interface {name} cannot be brought up")
        })
    }

    /// Sets the MTU of an interface.
    ///
    /// # Errors
    /// When there is no interface of that name, or it does not support this MTU.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), Error> {
        let mut message = named(name);
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.request(RouteNetlinkMessage::SetLink(message), 0, || {
            format!("interface {name} cannot carry packets of {mtu} bytes")
        })
    }

    /// MTU of an interface; `None` if there is none of that name.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn mtu(&mut self, name: &str) -> Result<Option<u32>, Error> {
        let mtu = |a: &LinkAttribute| if let LinkAttribute::Mtu(n) = a { Some(*n) } else { None };
        Ok(self.link(name)?.and_then(|link| link.attributes.iter().find_map(mtu)))
    }

    /// True if an interface can carry packets. Before that the kernel drops what is sent over it; a veth pair
    /// needs a moment after both ends were brought up.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn carries(&mut self, name: &str) -> Result<bool, Error> {
        let up = LinkAttribute::OperState(State::Up);
        Ok(self.link(name)?.is_some_and(|link| link.attributes.contains(&up)))
    }

    /// Removes an interface, and with it the other end of a veth pair.
    ///
    /// # Errors
    /// When there is no interface of that name.
    pub fn delete(&mut self, name: &str) -> Result<(), Error> {
        self.request(RouteNetlinkMessage::DelLink(named(name)), 0, || {
            format!("interface {name} cannot be removed")
        })
    }

    /// Indices and names of all interfaces.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn interfaces(&mut self) -> Result<Vec<(u32, String)>, Error> {
        let entry = |link: &LinkMessage| name_of(link).map(|name| (link.header.index, name.to_owned()));
        Ok(self.links()?.iter().filter_map(entry).collect())
    }

    /// Index of an interface; `None` if there is none of that name.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn index(&mut self, name: &str) -> Result<Option<u32>, Error> {
        Ok(self.link(name)?.map(|link| link.header.index))
    }

    /// As [`Netlink::index`], but a missing interface is an error.
    pub(super) fn index_of(&mut self, name: &str) -> Result<u32, Error> {
        let missing = || Error::new(format!("there is no interface {name}"), io::ErrorKind::NotFound);
        self.index(name)?.ok_or_else(missing)
    }

    /// The description of an interface; `None` if there is none of that name.
    fn link(&mut self, name: &str) -> Result<Option<LinkMessage>, Error> {
        Ok(self.links()?.into_iter().find(|link| name_of(link) == Some(name)))
    }

    pub(super) fn links(&mut self) -> Result<Vec<LinkMessage>, Error> {
        let all = RouteNetlinkMessage::GetLink(LinkMessage::default());
        self.list("interfaces", all, |message| match message {
            RouteNetlinkMessage::NewLink(link) => Some(link),
            _ => None,
        })
    }
}

/// One end of a veth pair.
fn end(name: &str, mac: Mac, mtu: u32) -> LinkMessage {
    let mut message = named(name);
    message.header.flags = LinkFlags::Noarp;
    message.header.change_mask = message.header.flags;
    message.attributes.extend([LinkAttribute::Address(mac.to_vec()), LinkAttribute::Mtu(mtu)]);
    message
}

fn named(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message
}

fn name_of(link: &LinkMessage) -> Option<&str> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.as_str()),
        _ => None,
    })
}
