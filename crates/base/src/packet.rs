//! The packet type that the simulator, the emulated link and the gateway share.
//!
//! Addresses are interned 32-bit numbers ([`Addr`]); a live driver keeps the table that maps them to IPv4 or
//! IPv6 addresses. A payload is a range of the sender's stream ([`Body`]): no bytes are copied, and a
//! receiver can still check that each byte arrives at its position. Packets are boxed: a hop moves 8 bytes.

mod moved;
mod stamps;

use crate::seq::Seq;
use crate::signal::Signal;
use crate::time::Instant;
use crate::units::{Dscp, Size};
pub use stamps::{Phase, Phases, Timestamps};

/// A boxed packet. Get one from [`crate::Cx::packet`] and return it with [`crate::Cx::recycle`].
pub type Pkt = Box<Packet>;

/// An interned network address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(pub u32);

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand ECN.
    #[default]
    NotEct = 0,
    /// ECN-capable transport, code point 1 (used by L4S).
    Ect1 = 1,
    /// ECN-capable transport, code point 0.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// TCP header flags (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// True if every flag of `f` is set.
    #[inline]
    pub const fn has(self, f: Self) -> bool {
        self.0 & f.0 == f.0
    }
    /// Returns the union of both sets.
    #[inline]
    #[must_use]
    pub const fn with(self, f: Self) -> Self {
        Self(self.0 | f.0)
    }
}

/// SACK blocks of one segment: at most four (RFC 2018, section 3), as `[left, right)` edges. They are boxed,
/// because most segments have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SackList(Option<Box<SackBlocks>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SackBlocks {
    len: u8,
    blocks: [(Seq, Seq); 4],
}

impl SackList {
    /// Appends a block; returns false if there are four already.
    #[inline]
    pub fn push(&mut self, left: Seq, right: Seq) -> bool {
        let SackBlocks { len, blocks } = &mut **self.0.get_or_insert_default();
        let Some(place) = blocks.get_mut(usize::from(*len)) else { return false };
        *place = (left, right);
        *len += 1;
        true
    }
    /// Returns the blocks in the order of the option.
    #[inline]
    pub fn as_slice(&self) -> &[(Seq, Seq)] {
        self.0.as_deref().map_or(&[], |list| &list.blocks[..usize::from(list.len)])
    }
    /// True if there are no blocks.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// The probe option: an experimental option (RFC 4727) with its own identifier (RFC 6994). A probe segment
/// carries a number, and the acknowledgment of it echoes that number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeOption {
    /// Absent.
    #[default]
    None,
    /// On a SYN: the sender supports probes.
    Permitted,
    /// This segment is the probe with this number, below 32768.
    Probe(u16),
    /// Acknowledges the probe with this number, below 32768.
    Echo(u16),
}

impl ProbeOption {
    /// Length in bytes on a segment without SYN, padding included.
    pub const LEN: u8 = 8;
}

/// A TCP header as a value, options included. The fields that every segment uses come first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TcpHeader {
    /// Sequence number of the first byte (of the SYN when SYN is set).
    pub seq: Seq,
    /// Next sequence number expected from the peer; significant with [`Flags::ACK`].
    pub ack: Seq,
    /// The window field, unscaled.
    pub window: u16,
    /// The flags.
    pub flags: Flags,
    /// SACK-permitted, on a SYN (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// The probe option.
    pub probe: ProbeOption,
    /// Selective acknowledgments.
    pub sack: SackList,
    /// The timestamps option.
    pub timestamps: Option<Timestamps>,
    /// Maximum segment size, on a SYN.
    pub mss: Option<u16>,
    /// Window scale shift count, on a SYN (RFC 7323, section 2).
    pub window_scale: Option<u8>,
    /// What the timestamps leave out.
    pub phases: Phases,
}

impl TcpHeader {
    /// Length on the wire in bytes, options padded to a multiple of four as common stacks do.
    pub fn wire_len(&self) -> u8 {
        let mut options = 0;
        if self.flags.has(Flags::SYN) {
            options += if self.mss.is_some() { 4 } else { 0 };
            options += if self.window_scale.is_some() { 4 } else { 0 }; // 3 and a NOP
            // SACK-permitted replaces the two padding bytes of the timestamps
            options += if self.sack_permitted && self.timestamps.is_none() { 4 } else { 0 };
        }
        options += match self.probe {
            ProbeOption::None => 0,
            ProbeOption::Permitted => 4,
            ProbeOption::Probe(_) | ProbeOption::Echo(_) => ProbeOption::LEN,
        };
        options += if self.timestamps.is_some() { 12 } else { 0 };
        options += match self.sack.as_slice().len() as u8 {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        20 + options
    }
}

/// The position and length of a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// For a simulated segment, the position of its first byte in the sender's stream (0 is the first byte
    /// after the SYN). For a simulated datagram, its number. For a real packet, where the driver stores the
    /// bytes ([`Body::kept`]).
    pub off: u64,
    /// Length in bytes.
    pub len: u32,
}

impl Body {
    /// The body of a real packet: `len` bytes at `offset` in the payload that the driver stores in `slot`.
    pub const fn kept(slot: u32, offset: u32, len: u32) -> Self {
        Self { off: (slot as u64) << 32 | offset as u64, len }
    }

    /// The driver's slot that stores a real packet's payload.
    pub const fn slot(self) -> u32 {
        (self.off >> 32) as u32
    }

    /// Offset of a real packet's payload within its slot.
    pub const fn offset(self) -> u32 {
        self.off as u32
    }

    /// True if `next` begins where this ends.
    pub const fn is_followed_by(self, next: Self) -> bool {
        self.off + self.len as u64 == next.off
    }
}

/// Relevant TCP options of a real packet that [`TcpHeader`] does not hold. A simulated packet has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherOptions {
    /// Bit set of the kinds present.
    pub kinds: u8,
    /// Their length in bytes.
    pub len: u8,
}

impl OtherOptions {
    /// MD5 signature (RFC 2385) or authentication option (RFC 5925): nothing in the header may change.
    pub const SIGNED: u8 = 1;
    /// MPTCP (RFC 8684).
    pub const MULTIPATH: u8 = 2;
    /// TCP fast open (RFC 7413).
    pub const FAST_OPEN: u8 = 4;
    /// Any other.
    pub const UNKNOWN: u8 = 128;

    /// True if there is an option of this kind.
    #[inline]
    pub const fn has(self, kind: u8) -> bool {
        self.kinds & kind != 0
    }
}

/// Transport protocol of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proto {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// A real packet that only its driver can read.
    Opaque,
    /// A simulated ICMP message that a packet was too long for a link.
    Icmp,
}

/// IP version: how long the header is, and where in-band signalling is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl IpVersion {
    /// Bytes of the header without options or extension headers.
    pub const fn header(self) -> u8 {
        match self {
            Self::V4 => IPV4_HEADER,
            Self::V6 => IPV6_HEADER,
        }
    }
}

/// One packet. What a hop needs comes first, then what every TCP segment has: with thousands of connections a
/// packet is in no cache when it arrives, and a hop then waits for one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Packet {
    /// Payload.
    pub body: Body,
    /// Source address.
    pub src: Addr,
    /// Destination address.
    pub dst: Addr,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Transport protocol.
    pub proto: Proto,
    /// IP version of a simulated packet.
    pub ip: IpVersion,
    /// Bytes of IP and transport header and of signalling; set by [`Packet::seal`].
    pub header_len: u8,
    /// Remaining hops; a router drops a packet with 0 instead of forwarding it.
    pub hops: u8,
    /// Differentiated-services code point.
    pub dscp: Dscp,
    /// ECN field.
    pub ecn: Ecn,
    /// Who is served first in a queue that looks at it: a mark that a router leaves for its own link, not a
    /// field of any header. 0 is ordinary traffic, and the highest is first.
    pub priority: u8,
    /// For a super-packet (several wire packets that the kernel hands over as one): payload bytes of each
    /// wire packet except the last. 0 for a single wire packet.
    pub segment: u16,
    /// TCP options that `tcp` does not hold.
    pub other_options: OtherOptions,
    /// TCP header.
    pub tcp: TcpHeader,
    /// In-band signalling, outside TCP's sequence space.
    pub signal: Option<Box<Signal>>,
}

/// Mixes the bits of a number: the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub const fn mix(number: u64) -> u64 {
    let x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER: u8 = 20;
/// Bytes of an IPv6 header without extension headers.
pub const IPV6_HEADER: u8 = 40;
/// Bytes of a UDP header (RFC 768).
pub const UDP_HEADER: u8 = 8;
/// Bytes of an ICMP message before the packet that it quotes (RFC 792, RFC 4443).
pub const ICMP_HEADER: u8 = 8;

impl Packet {
    /// Recomputes `header_len` after the header was filled in.
    #[inline]
    pub fn seal(&mut self) {
        let signal = self.signal.as_ref().map_or(0, |signal| signal.len());
        self.header_len = match self.proto {
            Proto::Tcp => self.ip.header() + self.tcp.wire_len() + self.other_options.len + signal,
            Proto::Udp => self.ip.header() + UDP_HEADER + signal,
            Proto::Opaque => 0,
            // the message and the packet that it quotes, each with an IP header and eight bytes
            Proto::Icmp => 2 * (self.ip.header() + ICMP_HEADER),
        };
    }

    /// Makes this a datagram with `payload` bytes, which carries a counter and the time of sending as those
    /// of measurement tools do. Unused header fields hold the two values. Call [`Packet::seal`] afterwards.
    pub fn set_datagram(&mut self, index: u64, sent: Instant, payload: u32) {
        self.proto = Proto::Udp;
        self.body = Body { off: index, len: payload };
        self.tcp.timestamps = Some(Timestamps { value: sent.0 as u32, echo: (sent.0 >> 32) as u32 });
    }

    /// Returns the counter and the time of sending of a datagram.
    pub fn datagram(&self) -> Option<(u64, Instant)> {
        let stamp = self.tcp.timestamps.filter(|_| self.proto == Proto::Udp)?;
        Some((self.body.off, Instant(u64::from(stamp.echo) << 32 | u64::from(stamp.value))))
    }

    /// Makes this a real packet that only its driver can read: `header_len` bytes that each of its wire
    /// packets repeats, then `body`, of which each wire packet has `segment` bytes (0 for a single wire
    /// packet). The driver frees the bytes when the packet has arrived or was dropped.
    pub fn set_opaque(&mut self, header_len: u8, body: Body, segment: u16) {
        *self = Self { proto: Proto::Opaque, hops: 64, header_len, body, segment, ..Self::default() };
    }

    /// Notes the IPv6 flow label of a packet that only its driver can read, as of one with an encrypted
    /// payload (RFC 4303): label and addresses are then all that tells its flow. An unused field holds it.
    pub const fn set_flow_label(&mut self, label: u32) {
        self.tcp.ack = Seq(label & 0xF_FFFF);
    }

    /// Returns the flow label of an IPv6 packet that only its driver can read; `None` without one.
    pub fn flow_label(&self) -> Option<u32> {
        let is_hidden = self.proto == Proto::Opaque && self.ip == IpVersion::V6;
        Some(self.tcp.ack.0).filter(|label| is_hidden && *label > 0)
    }

    /// Number of wire packets in this packet; at least 1.
    #[inline]
    pub const fn pieces(&self) -> u32 {
        match self.segment {
            0 => 1,
            segment if self.body.len == 0 || self.body.len <= segment as u32 => 1,
            segment => self.body.len.div_ceil(segment as u32),
        }
    }

    /// Reduces a super-packet to its wire packet `i`: the first keeps CWR, the last FIN and PSH.
    pub fn cut_to_segment(&mut self, i: u32) {
        let (skipped, last) = (i * u32::from(self.segment), i + 1 == self.pieces());
        self.body.off += u64::from(skipped);
        self.body.len = if last { self.body.len - skipped } else { u32::from(self.segment) };
        self.segment = 0;
        self.tcp.seq = self.tcp.seq.at(u64::from(skipped));
        let flags = self.tcp.flags.0;
        let flags = if i > 0 { flags & !Flags::CWR.0 } else { flags };
        self.tcp.flags = Flags(if last { flags } else { flags & !(Flags::FIN.0 | Flags::PSH.0) });
    }

    /// Hash of addresses, ports and protocol, for flow queueing (RFC 8290, section 4.1).
    pub fn flow(&self) -> u64 {
        let ports = u64::from(self.sport) << 32 | u64::from(self.dport) << 16 | self.proto as u64;
        mix(mix(u64::from(self.src.0) << 32 | u64::from(self.dst.0)) ^ ports)
    }

    /// Bytes of one wire packet, IP header included.
    #[inline]
    pub fn wire_len(&self) -> Size {
        Size(u64::from(self.header_len) + u64::from(self.body.len))
    }

    /// Length in sequence space: payload, plus one each for SYN and FIN.
    #[inline]
    pub fn seq_len(&self) -> u64 {
        let flags = self.tcp.flags;
        u64::from(self.body.len) + u64::from(flags.has(Flags::SYN)) + u64::from(flags.has(Flags::FIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_stays_small() {
        assert!(size_of::<Packet>() <= 96, "{}", size_of::<Packet>());
    }

    #[test]
    fn a_datagram_carries_its_number_and_time() {
        let mut p = Packet::default();
        p.set_datagram(7, Instant(5 << 33 | 1), 200);
        p.seal();
        assert_eq!((p.datagram(), p.wire_len()), (Some((7, Instant(5 << 33 | 1))), Size(228)));
        assert_eq!(Packet::default().datagram(), None);
    }

    #[test]
    fn only_a_hidden_ipv6_packet_has_a_flow_label() {
        let mut p = Packet { proto: Proto::Opaque, ip: IpVersion::V6, ..Packet::default() };
        assert_eq!(p.flow_label(), None);
        p.set_flow_label(0xFFF1_2345);
        assert_eq!(p.flow_label(), Some(0x1_2345), "20 bits");
        for (proto, ip) in [(Proto::Tcp, IpVersion::V6), (Proto::Opaque, IpVersion::V4)] {
            assert_eq!(Packet { proto, ip, ..p.clone() }.flow_label(), None);
        }
    }

    #[test]
    fn a_super_packet_is_cut_as_a_kernel_does() {
        let flags = Flags(Flags::ACK.0 | Flags::PSH.0 | Flags::FIN.0 | Flags::CWR.0);
        let tcp = TcpHeader { seq: Seq(u32::MAX), flags, ..TcpHeader::default() };
        let whole = Packet { segment: 1000, body: Body::kept(7, 0, 2100), tcp, ..Packet::default() };
        let pieces: Vec<Packet> = (0..whole.pieces())
            .map(|i| {
                let mut piece = whole.clone();
                piece.cut_to_segment(i);
                piece
            })
            .collect();
        let bodies: Vec<_> = pieces.iter().map(|p| (p.body.slot(), p.body.offset(), p.body.len)).collect();
        assert_eq!(bodies, [(7, 0, 1000), (7, 1000, 1000), (7, 2000, 100)]);
        assert!(
            pieces[0].body.is_followed_by(pieces[1].body) && !pieces[0].body.is_followed_by(pieces[2].body)
        );
        assert_eq!(pieces.iter().map(|p| p.tcp.seq.0).collect::<Vec<_>>(), [u32::MAX, 999, 1999]);
        let has = |flag| pieces.iter().map(|p| p.tcp.flags.has(flag)).collect::<Vec<_>>();
        assert_eq!((has(Flags::CWR), has(Flags::PSH)), (vec![true, false, false], vec![false, false, true]));
        for (segment, len) in [(0, 5000), (1000, 1000), (1000, 0)] {
            let one = Packet { segment, body: Body::kept(0, 0, len), ..Packet::default() };
            assert_eq!(one.pieces(), 1);
        }
    }

    #[test]
    fn header_lengths_match_common_stacks() {
        let mut h = TcpHeader::default();
        assert_eq!(h.wire_len(), 20);
        h.timestamps = Some(Timestamps::default());
        assert_eq!(h.wire_len(), 32);
        h.sack.push(Seq(1), Seq(2));
        assert_eq!(h.wire_len(), 44); // one block with timestamps
        // Linux's SYN: MSS, SACK-permitted, timestamps, window scale
        let syn = TcpHeader {
            flags: Flags::SYN,
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps::default()),
            ..TcpHeader::default()
        };
        assert_eq!(syn.wire_len(), 40);
    }
}
