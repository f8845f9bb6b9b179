//! Interfaces: veth pairs, state and counters.

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

/// Interface counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets received; a super-packet counts as one.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped on sending.
    pub tx_dropped: u64,
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
        self.tell(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL).map_err(|source| Error {
            what: format!("the pair of interfaces {} and {} cannot be made", pair.name, pair.peer),
            source,
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
        self.tell(RouteNetlinkMessage::SetLink(message), 0)
            .map_err(|source| Error { what: format!("interface {name} cannot be brought up"), source })
    }

    /// True if an interface can carry packets. Before that the kernel drops what is sent over it; a veth pair
    /// needs a moment after both ends were brought up.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn carries(&mut self, wanted: &str) -> Result<bool, Error> {
        let mut carries = false;
        self.links(|message| {
            carries |= name(&message) == Some(wanted)
                && message.attributes.contains(&LinkAttribute::OperState(State::Up));
        })?;
        Ok(carries)
    }

    /// Removes an interface, and with it the other end of a veth pair.
    ///
    /// # Errors
    /// When there is no interface of that name.
    pub fn delete(&mut self, name: &str) -> Result<(), Error> {
        self.tell(RouteNetlinkMessage::DelLink(named(name)), 0)
            .map_err(|source| Error { what: format!("interface {name} cannot be removed"), source })
    }

    /// Indices and names of all interfaces.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn interfaces(&mut self) -> Result<Vec<(u32, String)>, Error> {
        let mut all = Vec::new();
        self.links(|message| all.extend(name(&message).map(|name| (message.header.index, name.to_owned()))))?;
        Ok(all)
    }

    /// Index of an interface; `None` if there is none of that name.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn index(&mut self, wanted: &str) -> Result<Option<u32>, Error> {
        Ok(self.interfaces()?.into_iter().find(|(_, name)| name == wanted).map(|(index, _)| index))
    }

    /// As [`Netlink::index`], but a missing interface is an error.
    pub(super) fn index_of(&mut self, name: &str) -> Result<u32, Error> {
        self.index(name)?.ok_or_else(|| Error {
            what: format!("there is no interface {name}"),
            source: io::ErrorKind::NotFound.into(),
        })
    }

    /// Returns the counters of an interface.
    ///
    /// # Errors
    /// When there is no interface of that name.
    pub fn counters(&mut self, wanted: &str) -> Result<Counters, Error> {
        let mut found = None;
        self.links(|message| {
            if name(&message) == Some(wanted) {
                found = message.attributes.iter().find_map(counters);
            }
        })?;
        found.ok_or_else(|| Error {
            what: format!("interface {wanted} has no counters"),
            source: io::ErrorKind::NotFound.into(),
        })
    }

    fn links(&mut self, mut each: impl FnMut(LinkMessage)) -> Result<(), Error> {
        self.list(RouteNetlinkMessage::GetLink(LinkMessage::default()), |message| {
            if let RouteNetlinkMessage::NewLink(message) = message {
                each(message);
            }
        })
        .map_err(|source| Error { what: "interfaces cannot be listed".to_owned(), source })
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

fn name(message: &LinkMessage) -> Option<&str> {
    message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.as_str()),
        _ => None,
    })
}

fn counters(attribute: &LinkAttribute) -> Option<Counters> {
    let LinkAttribute::Stats64(stats) = attribute else { return None };
    Some(Counters {
        rx_packets: stats.rx_packets,
        rx_bytes: stats.rx_bytes,
        rx_dropped: stats.rx_dropped,
        tx_packets: stats.tx_packets,
        tx_bytes: stats.tx_bytes,
        tx_dropped: stats.tx_dropped,
    })
}
