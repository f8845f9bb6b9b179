//! One connection that the agent has taken, its addresses, and the link headers of its packets.

use super::admission::Grant;
use super::{HOST, NETWORK};
use bentpipe_base::{Flags, Instant};
use bentpipe_live::endpoint::{ConnId, HeldOffer};
use bentpipe_wire::offload::addresses;
use bentpipe_wire::{Network, TCP};
use core::net::{IpAddr, SocketAddr};

/// Longest link header: Ethernet with three VLAN tags.
pub const LONGEST_LINK: usize = 26;

/// Addresses and ports of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// The host's.
    pub host: SocketAddr,
    /// Those of its peer in the network.
    pub remote: SocketAddr,
}

impl FlowKey {
    /// Address and port of the end at `side`.
    pub const fn end(&self, side: usize) -> SocketAddr {
        if side == HOST { self.host } else { self.remote }
    }

    /// The connection of a packet that comes from `side`.
    pub(super) const fn of(side: usize, from: SocketAddr, to: SocketAddr) -> Self {
        if side == HOST { Self { host: from, remote: to } } else { Self { host: to, remote: from } }
    }
}

/// A link header, as the frames of a connection have it in one direction; empty where packets have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    bytes: [u8; LONGEST_LINK],
    len: u8,
}

impl Link {
    /// Takes a header; `None` if it is too long.
    pub fn new(header: &[u8]) -> Option<Self> {
        let mut bytes = [0; LONGEST_LINK];
        bytes.get_mut(..header.len())?.copy_from_slice(header);
        Some(Self { bytes, len: header.len() as u8 })
    }

    /// The header.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The header of a frame in the other direction.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        if self.len >= 12 {
            let (to, from) = self.bytes.split_at_mut(6);
            to.swap_with_slice(&mut from[..6]);
        }
        self
    }
}

/// What is read of a packet that may belong to a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Head {
    /// A whole TCP packet: source, destination, flags, DSCP.
    Tcp(SocketAddr, SocketAddr, Flags, u8),
    /// A fragment of a TCP packet: its addresses.
    Fragment(IpAddr, IpAddr),
    /// Something else, or damaged.
    Other,
}

impl Head {
    pub(super) fn of(packet: &[u8]) -> Self {
        let Ok(network) = Network::of(packet) else { return Self::Other };
        let (from, to) = network.ends.addresses();
        if network.protocol != TCP {
            return Self::Other;
        }
        if network.fragment.is_some_and(|f| f.is_partial()) {
            return Self::Fragment(from, to);
        }
        let tcp = packet.get(network.transport..network.end.min(packet.len()));
        let Some([a, b, c, d, .., flags]) = tcp.and_then(|tcp| tcp.first_chunk::<14>()) else {
            return Self::Other;
        };
        let (from_port, to_port) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
        let (from, to) = (SocketAddr::new(from, from_port), SocketAddr::new(to, to_port));
        Self::Tcp(from, to, Flags(*flags), network.traffic_class >> 2)
    }
}

/// Source and destination of a TCP packet of which only the headers are here.
pub(super) fn ends_of_headers(headers: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let (from, to) = addresses(headers).ok()?;
    let at = match headers.first()? >> 4 {
        4 => usize::from(headers.first()? & 15) * 4,
        _ => transport_of_v6(headers)?,
    };
    let [a, b, c, d] = *headers.get(at..)?.first_chunk::<4>()?;
    let (from_port, to_port) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Some((SocketAddr::new(from, from_port), SocketAddr::new(to, to_port)))
}

/// Where the TCP header of an IPv6 packet of ours begins: behind hop-by-hop options, if there are some.
fn transport_of_v6(headers: &[u8]) -> Option<usize> {
    const FIXED: usize = 40;
    match *headers.get(6)? {
        TCP => Some(FIXED),
        0 => Some(FIXED + 8 + 8 * usize::from(*headers.get(FIXED + 1)?)),
        _ => None,
    }
}

/// Where a connection is in its life.
#[derive(Debug)]
pub(super) enum Phase {
    /// The end that opens it waits for the answer of the other one.
    Opening(HeldOffer),
    /// Data flows.
    Open,
    /// One end was reset or is gone. The other gets what came before, and then a RST, at the latest at this
    /// time.
    Failing(Instant),
    /// Both streams were delivered; the endpoints remember the connection (TIME-WAIT).
    Closing,
}

/// A connection that the agent has taken.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) phase: Phase,
    /// The side that opened it.
    pub(super) opener: usize,
    /// Our two connections.
    pub(super) ids: [Option<ConnId>; 2],
    /// The stream from this side has ended, and its FIN is carried to the other.
    pub(super) ended: [bool; 2],
    /// All that was written towards this side, and the FIN, is acknowledged.
    pub(super) delivered: [bool; 2],
    /// Bytes read from this side and written to the other.
    pub(super) carried: [u64; 2],
    /// Header of frames to this side.
    pub(super) links: [Link; 2],
    /// Memory that is set aside for it, until both streams were delivered.
    pub(super) grant: Option<Grant>,
    pub(super) rule: usize,
    pub(super) since: Instant,
}

impl Flow {
    /// Notes the link header of a frame that came from `side`: answers go back to its sender, and what it
    /// says is said on with the same header.
    pub(super) fn note_link(&mut self, side: usize, link: Link) {
        let other = if side == HOST { NETWORK } else { HOST };
        self.links[other] = link;
        if self.links[side].bytes().is_empty() {
            self.links[side] = link.reversed();
        }
    }
}
