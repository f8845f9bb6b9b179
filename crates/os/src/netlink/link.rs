//! Interfaces: pairs of virtual Ethernet, their state and their counters.

use super::{Error, Netlink};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State,
};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// A hardware address.
pub type Mac = [u8; 6];

/// Two interfaces that are the ends of one wire, without ARP: whatever is sent to one's own hardware address
/// goes across. They are made down, since an end cannot come up before the other is there.
#[derive(Clone, Copy, Debug)]
pub struct VethPair<'a> {
    /// The end that stays here.
    pub name: &'a str,
    /// Its hardware address.
    pub mac: Mac,
    /// The other end.
    pub peer: &'a str,
    /// Its hardware address.
    pub peer_mac: Mac,
    /// The network namespace into which the other end goes.
    pub peer_network: BorrowedFd<'a>,
    /// Longest packet in bytes.
    pub mtu: u32,
}

/// What an interface has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets received; a super-packet is one.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets that were received and dropped.
    pub rx_dropped: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets that were to be sent and dropped.
    pub tx_dropped: u64,
}

impl Netlink {
    /// Makes a pair of interfaces.
    ///
    /// # Errors
    /// When a name is taken ([`Error::is_taken`]) or the kernel refuses.
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
    /// When there is none of that name.
    pub fn set_up(&mut self, name: &str) -> Result<(), Error> {
        let mut message = named(name);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.tell(RouteNetlinkMessage::SetLink(message), 0)
            .map_err(|source| Error { what: format!("interface {name} cannot be brought up"), source })
    }

    /// True when an interface carries packets. Until then the kernel throws away what is sent over it; a pair
    /// needs a moment after both its ends were told to come up.
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

    /// Removes an interface, and with it the other end of its pair.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn delete(&mut self, name: &str) -> Result<(), Error> {
        self.tell(RouteNetlinkMessage::DelLink(named(name)), 0)
            .map_err(|source| Error { what: format!("interface {name} cannot be removed"), source })
    }

    /// Names and numbers of all interfaces.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn interfaces(&mut self) -> Result<Vec<(u32, String)>, Error> {
        let mut all = Vec::new();
        self.links(|message| all.extend(name(&message).map(|name| (message.header.index, name.to_owned()))))?;
        Ok(all)
    }

    /// The number of an interface; `None` when there is none of that name.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn index(&mut self, wanted: &str) -> Result<Option<u32>, Error> {
        Ok(self.interfaces()?.into_iter().find(|(_, name)| name == wanted).map(|(index, _)| index))
    }

    /// As [`Netlink::index`], for one that must be there.
    pub(super) fn index_of(&mut self, name: &str) -> Result<u32, Error> {
        self.index(name)?.ok_or_else(|| Error {
            what: format!("there is no interface {name}"),
            source: io::ErrorKind::NotFound.into(),
        })
    }

    /// What an interface has counted.
    ///
    /// # Errors
    /// When there is none of that name.
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

/// One end of a pair.
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
