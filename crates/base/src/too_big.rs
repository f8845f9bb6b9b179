//! The message of a link that a packet is longer than its MTU.

use crate::packet::{Body, Packet, Proto, TcpHeader};
use crate::seq::Seq;
use crate::units::Size;

/// What a router says about a packet that is longer than the MTU of a link: ICMP "fragmentation needed"
/// (RFC 1191) or "packet too big" (RFC 4443).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// The packet was a TCP segment.
    pub is_tcp: bool,
    /// Its sequence number.
    pub seq: Seq,
    /// Its length in bytes.
    pub len: Size,
    /// Longest packet of the link in bytes.
    pub mtu: u16,
}

impl Packet {
    /// Makes this the message to the sender of `refused` that it is longer than the MTU of a link.
    /// Addresses and ports are those of the packet, turned around. Unused header fields hold the rest.
    pub fn set_too_big(&mut self, refused: &Self, mtu: u16) {
        let is_tcp = u64::from(refused.proto == Proto::Tcp);
        *self = Self {
            src: refused.dst,
            dst: refused.src,
            sport: refused.dport,
            dport: refused.sport,
            proto: Proto::Icmp,
            ip: refused.ip,
            hops: 64,
            tcp: TcpHeader { seq: refused.tcp.seq, window: mtu, ..TcpHeader::default() },
            body: Body { off: refused.wire_len().0 << 1 | is_tcp, len: 0 },
            ..Self::default()
        };
        self.seal();
    }

    /// Returns what such a message says.
    pub fn too_big(&self) -> Option<TooBig> {
        let Self { tcp: TcpHeader { seq, window: mtu, .. }, body: Body { off, .. }, .. } = *self;
        let said = TooBig { is_tcp: off & 1 == 1, seq, len: Size(off >> 1), mtu };
        (self.proto == Proto::Icmp).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Addr, IpVersion};
    use crate::units::Dscp;

    #[test]
    fn a_message_about_a_packet_goes_back_to_its_sender() {
        for (proto, ip, len) in [(Proto::Tcp, IpVersion::V4, 56), (Proto::Udp, IpVersion::V6, 96)] {
            let tcp = TcpHeader { seq: Seq(u32::MAX), ..TcpHeader::default() };
            let (src, dst, sport, dport) = (Addr(1), Addr(2), 3, 4);
            let body = Body { off: 9, len: 1728 };
            let mut sent = Packet { body, src, dst, sport, dport, proto, ip, tcp, ..Packet::default() };
            sent.seal();
            let mut message = Packet { dscp: Dscp::default(), ..sent.clone() };
            message.set_too_big(&sent, 1500);
            let said =
                TooBig { is_tcp: proto == Proto::Tcp, seq: sent.tcp.seq, len: sent.wire_len(), mtu: 1500 };
            assert_eq!((message.too_big(), sent.too_big()), (Some(said), None));
            assert_eq!((message.src, message.dst, message.sport, message.dport), (dst, src, dport, sport));
            assert_eq!((message.wire_len(), message.ip, message.hops), (Size(len), ip, 64));
        }
    }
}
