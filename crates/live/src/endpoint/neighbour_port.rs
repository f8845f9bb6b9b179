//! A packet socket that puts the next hop's hardware address into each frame.
//!
//! A client knows the next hop's address beforehand ([`NeighbourPort::set_next_hop`]). A server does not, and
//! must answer without address resolution: that could block for long, and a SYN with a forged address would
//! delay all others. So it answers a SYN to the hardware address it came from
//! ([`NeighbourPort::learn_next_hops`]); when the peer completes the handshake, that address is kept
//! ([`NeighbourPort::keep_next_hop`]).

use bentpipe_os::netlink::Mac;
use bentpipe_os::port::{PortDrops, Received};
use bentpipe_os::{PacketPort, VethPort};
use bentpipe_wire::Layout;
use bentpipe_wire::offload::{VnetHeader, addresses};
use core::net::IpAddr;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

/// Most peers whose hardware address is remembered; the oldest is dropped first. Enough for all half-open
/// connections and some that just ended.
const MOST: usize = 512;
/// Bit of a multicast hardware address, which no host sends from.
const GROUP: u8 = 1;

/// A packet socket with the hardware addresses of its peers.
#[derive(Debug)]
pub struct NeighbourPort {
    port: VethPort,
    own: Mac,
    /// Learned addresses, while it listens.
    neighbours: Option<NeighbourTable>,
}

/// Hardware addresses of the peers of a port, learned from their packets.
#[derive(Debug)]
struct NeighbourTable {
    port: u16,
    known: VecDeque<(IpAddr, Mac)>,
}

impl NeighbourPort {
    /// A socket on the interface with address `own`, to which packets go until another is set or learned.
    pub(super) const fn new(port: VethPort, own: Mac) -> Self {
        Self { port, own, neighbours: None }
    }

    /// Sends all packets to `next` from now on.
    pub(super) fn set_next_hop(&mut self, next: Mac) {
        self.neighbours = None;
        self.port.set_mac_addresses(self.own, next);
    }

    /// Sends each packet to the hardware address from which its receiver last sent to our TCP port `port`.
    pub(super) fn learn_next_hops(&mut self, port: u16) {
        self.neighbours = Some(NeighbourTable { port, known: VecDeque::new() });
    }

    /// Sends all packets to the hardware address of `peer` from now on, and stops learning.
    pub(crate) fn keep_next_hop(&mut self, peer: IpAddr) {
        if let Some(next) = self.neighbours.take().and_then(|known| known.to(peer)) {
            self.port.set_mac_addresses(self.own, next);
        }
    }
}

impl NeighbourTable {
    /// Learns from a packet that a neighbour sent.
    fn learn(&mut self, packet: &[u8], from: Mac) {
        let Ok(layout) = Layout::of(packet) else { return };
        let at = layout.network.transport + 2;
        if packet.get(at..at + 2) != Some(&self.port.to_be_bytes()) || from[0] & GROUP != 0 {
            return;
        }
        let (source, _) = layout.network.ends.addresses();
        if let Some(entry) = self.known.iter_mut().find(|entry| entry.0 == source) {
            entry.1 = from;
            return;
        }
        if self.known.len() >= MOST {
            self.known.pop_front();
        }
        self.known.push_back((source, from));
    }

    fn to(&self, host: IpAddr) -> Option<Mac> {
        self.known.iter().find(|entry| entry.0 == host).map(|entry| entry.1)
    }
}

impl PacketPort for NeighbourPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.port.fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let received = self.port.receive(buffer)?;
        if let (Some(neighbours), Some(received)) = (&mut self.neighbours, &received)
            && let Some(packet) = buffer.get(..received.len)
        {
            neighbours.learn(packet, self.port.source_mac());
        }
        Ok(received)
    }

    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        if let Some(neighbours) = &self.neighbours {
            let header = parts.iter().find(|p| !p.is_empty());
            let destination = header.and_then(|h| addresses(h).ok()).map(|(_, to)| to);
            let Some(next) = destination.and_then(|to| neighbours.to(to)) else {
                return Ok(false); // unknown peer: it retransmits its SYN
            };
            self.port.set_mac_addresses(self.own, next);
        }
        self.port.send(vnet, parts)
    }

    fn drops(&mut self) -> io::Result<PortDrops> {
        self.port.drops()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Dscp, Ecn, Flags, TcpHeader};
    use bentpipe_wire::{AddressPair, Segment, emit};
    use core::net::{Ipv4Addr, Ipv6Addr};

    fn call(ends: AddressPair, dport: u16) -> Vec<u8> {
        let tcp = TcpHeader { flags: Flags::SYN, ..TcpHeader::default() };
        let (dscp, ecn, payload) = (Dscp::DEFAULT, Ecn::NotEct, &[][..]);
        let mut bytes = Vec::new();
        emit(&Segment { ends, sport: 1, dport, hops: 64, dscp, ecn, tcp, payload }, &mut bytes).unwrap();
        bytes
    }

    fn v4(last: u16) -> AddressPair {
        AddressPair::V4 {
            src: Ipv4Addr::from(0x0a00_0000 + u32::from(last)),
            dst: Ipv4Addr::new(10, 55, 0, 2),
        }
    }

    #[test]
    fn the_way_back_is_the_way_that_the_last_packet_came() {
        let mut neighbours = NeighbourTable { port: 5000, known: VecDeque::new() };
        let six = AddressPair::V6 { src: Ipv6Addr::LOCALHOST, dst: Ipv6Addr::UNSPECIFIED };
        neighbours.learn(&call(v4(1), 5000), [2, 0, 0, 0, 0, 1]);
        neighbours.learn(&call(six, 5000), [2, 0, 0, 0, 0, 6]);
        neighbours.learn(&call(v4(2), 5001), [2, 0, 0, 0, 0, 2]); // to another port
        neighbours.learn(&call(v4(3), 5000), [0xff; 6]); // from a multicast address
        neighbours.learn(&call(v4(1), 5000)[..30], [2, 0, 0, 0, 0, 9]); // truncated
        let host = |last| IpAddr::from([10, 0, 0, last]);
        assert_eq!(neighbours.to(host(1)), Some([2, 0, 0, 0, 0, 1]));
        assert_eq!(neighbours.to(IpAddr::V6(Ipv6Addr::LOCALHOST)), Some([2, 0, 0, 0, 0, 6]));
        assert_eq!((neighbours.to(host(2)), neighbours.to(host(3))), (None, None));
        neighbours.learn(&call(v4(1), 5000), [2, 0, 0, 0, 0, 7]);
        assert_eq!((neighbours.to(host(1)), neighbours.known.len()), (Some([2, 0, 0, 0, 0, 7]), 2));
        let destination = |packet: &[u8]| addresses(packet).ok().map(|(_, to)| to);
        assert_eq!(destination(&call(six, 5000)), Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
        assert_eq!(destination(&call(v4(1), 5000)), Some(IpAddr::from([10, 55, 0, 2])));
        assert_eq!((destination(&[]), destination(&[0x45; 9])), (None, None));
    }

    #[test]
    fn a_flood_of_forged_callers_is_bounded_and_the_last_are_known() {
        let mut neighbours = NeighbourTable { port: 5000, known: VecDeque::new() };
        for last in 0..2000 {
            neighbours.learn(&call(v4(last), 5000), [2, 0, 0, 0, (last >> 8) as u8, last as u8]);
        }
        assert_eq!(neighbours.known.len(), MOST);
        let host = |n: u16| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
        assert_eq!((neighbours.to(host(0)), neighbours.to(host(1999))), (None, Some([2, 0, 0, 0, 7, 0xcf])));
    }
}
