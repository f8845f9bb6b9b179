//! Segmentation of super-packets, also into smaller super-packets, as the kernel's `tcp_gso_segment`,
//! `__udp_gso_segment`, `inet_gso_segment` and `ipv6_gso_segment` do it (net/ipv4/tcp_offload.c,
//! udp_offload.c, af_inet.c, net/ipv6/ip6_offload.c).

use super::{TCP_CHECKSUM, UDP_CHECKSUM, VnetHeader, addresses, read_word, write_word};
use crate::checksum::{Sum, pseudo_header};
use crate::error::WireError;
use crate::layout::{AddressPair, Network};
use crate::tcp::Tcp;
use crate::{TCP, UDP};
use bentpipe_base::Flags;
use core::ops::Range;

/// Room for the headers of a piece. A super-packet whose headers are as long or longer counts as one packet,
/// because [`SuperPacket::shape`] gives their length in one byte.
pub const HEADER_SPACE: usize = 256;

/// Offsets of the fields that segmentation changes, each from the start of its own header, and lengths of
/// headers.
const V4_TOTAL_LEN: usize = 2;
const V4_ID: usize = 4;
const V4_CHECKSUM: usize = 10;
const V6_PAYLOAD_LEN: usize = 4;
const V6_HEADER: usize = 40;
/// Bytes that must be copied to change the traffic class of either IP version: the length of the shortest
/// IPv4 header.
const NETWORK_HEADER: usize = 20;
/// The ECN field in the first two bytes of an IP header.
const V4_CE: u16 = 0x0003;
const V6_CE: u16 = 0x0030;
const TCP_SEQ: usize = 4;
const TCP_FLAGS: usize = 13;
const UDP_LEN: usize = 4;
const UDP_HEADER: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A single wire packet, or one that cannot be segmented.
    Plain,
    Tcp,
    Udp,
}

/// A parsed super-packet: its number of wire packets and its offsets, for the bytes it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperPacket {
    vnet: VnetHeader,
    kind: Kind,
    v6: bool,
    /// Sum of the pseudo-header with length 0.
    pseudo: u16,
    transport: usize,
    header_len: usize,
    len: usize,
    pieces: usize,
}

/// Consecutive wire packets of a super-packet, to be sent: written headers, then bytes of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The header to give to the kernel.
    pub vnet: VnetHeader,
    /// Bytes written to the header buffer; 0 if the source is sent unchanged, with its own headers in
    /// `payload`.
    pub header_len: usize,
    /// The range of the source that follows the headers.
    pub payload: Range<usize>,
}

impl Piece {
    /// Sets CE (RFC 3168, section 5) in the IP header, and updates the header's checksum. `source` and `out`
    /// must be those given to [`SuperPacket::piece`]. Does nothing if CE is set already.
    pub fn mark_ce(&mut self, source: &[u8], out: &mut [u8; HEADER_SPACE]) {
        if self.header_len == 0 {
            // the headers are in the source: copy the first bytes to change them
            let bytes = source.get(self.payload.clone()).unwrap_or_default();
            let (Some(from), Some(to)) = (bytes.first_chunk::<NETWORK_HEADER>(), out.first_chunk_mut())
            else {
                return;
            };
            *to = *from;
            self.header_len = NETWORK_HEADER;
            self.payload.start += NETWORK_HEADER;
        }
        match out[0] >> 4 {
            4 => {
                let (old, sum) = (read_word(out, 0), read_word(out, V4_CHECKSUM));
                write_word(out, 0, old | V4_CE);
                let sum = Sum::ZERO.word(!sum).replace(Sum::ZERO.word(old), Sum::ZERO.word(old | V4_CE));
                write_word(out, V4_CHECKSUM, sum.finish());
            }
            6 => {
                let old = read_word(out, 0);
                write_word(out, 0, old | V6_CE);
            }
            _ => {}
        }
    }
}

impl SuperPacket {
    /// Parses `bytes`, an IP packet from its first byte.
    ///
    /// If `vnet` does not match the packet (another protocol, a fragment, a tunnel around it, impossible
    /// lengths), that is no error: the packet counts as one wire packet and passes unchanged.
    ///
    /// # Errors
    /// If the bytes are not an IP packet, or end before its addresses.
    pub fn parse(bytes: &[u8], vnet: &VnetHeader) -> Result<Self, WireError> {
        addresses(bytes)?;
        let network = Network::of(bytes).ok();
        // bytes after the end of the IP packet are link-layer padding
        let len = network.map_or(bytes.len(), |n| n.end);
        Ok(network.and_then(|n| Self::cuttable(bytes, vnet, &n)).unwrap_or(Self {
            vnet: *vnet,
            kind: Kind::Plain,
            v6: false,
            pseudo: 0,
            transport: 0,
            header_len: 0,
            len,
            pieces: 1,
        }))
    }

    fn cuttable(bytes: &[u8], vnet: &VnetHeader, network: &Network) -> Option<Self> {
        let v6 = matches!(network.ends, AddressPair::V6 { .. });
        let kind = match (vnet.gso_type & !VnetHeader::GSO_ECN, v6, network.protocol) {
            (VnetHeader::GSO_TCPV4, false, TCP) | (VnetHeader::GSO_TCPV6, true, TCP) => Kind::Tcp,
            (VnetHeader::GSO_UDP_L4, _, UDP) => Kind::Udp,
            _ => return None,
        };
        if network.fragment.is_some_and(|f| f.is_partial()) {
            return None;
        }
        let segment = bytes.get(network.transport..network.end)?;
        let transport_header = match kind {
            Kind::Tcp => Tcp::new(segment).ok()?.header.header_len(),
            _ => UDP_HEADER,
        };
        let header_len = network.transport + transport_header;
        let payload = network.end.checked_sub(header_len)?;
        let size = usize::from(vnet.gso_size);
        // "too small packets are not really GSO ones" (virtio_net_hdr_to_skb)
        if header_len >= HEADER_SPACE || size == 0 || payload <= size {
            return None;
        }
        let field = kind.checksum_offset();
        let note = (usize::from(vnet.csum_start), vnet.csum_offset);
        if vnet.is_partial() && note != (network.transport, field) {
            return None;
        }
        let pseudo = if vnet.is_partial() {
            // taken from the packet's checksum field: with a routing header the pseudo-header contains the
            // final destination, which is not the destination address of the IP header (RFC 8200, section
            // 8.1)
            let at = usize::from(field);
            let stands = Sum::of(segment.get(at..at + 2)?);
            stands.replace(Sum::ZERO.word(segment.len() as u16), Sum::ZERO).fold()
        } else {
            pseudo_header(&network.ends, network.protocol, 0).fold()
        };
        let pieces = payload.div_ceil(size);
        let (transport, len) = (network.transport, network.end);
        Some(Self { vnet: *vnet, kind, v6, pseudo, transport, header_len, len, pieces })
    }

    /// Number of wire packets; at least 1.
    pub const fn pieces(&self) -> usize {
        self.pieces
    }

    /// Returns the bytes of headers of each wire packet, the bytes of payload of all, and the bytes of
    /// payload of each. A packet that is not segmented counts as payload only, with 0 as first and last
    /// value.
    pub const fn shape(&self) -> (u8, usize, u16) {
        match self.kind {
            Kind::Plain => (0, self.len, 0),
            // fits: `cuttable` rejects longer headers
            Kind::Tcp | Kind::Udp => (self.header_len as u8, self.len - self.header_len, self.vnet.gso_size),
        }
    }

    /// The range of the payload of wire packets `first` to `end` (exclusive).
    fn payload(&self, first: usize, end: usize) -> Range<usize> {
        if self.kind == Kind::Plain {
            return 0..self.len;
        }
        let size = usize::from(self.vnet.gso_size);
        let at = |piece: usize| (self.header_len + piece * size).min(self.len);
        at(first.min(self.pieces))..at(end.min(self.pieces))
    }

    /// Writes the headers of wire packets `range` to `out`; several packets become one super-packet. `source`
    /// must be the bytes this was read from.
    ///
    /// The full range is sent unchanged, with its own headers. For a part, the lengths, IPv4's identification
    /// and checksum, TCP's sequence number and flags and the partial checksum are adapted; the transport
    /// checksum is completed after the last segmentation. An empty or invalid range gives an empty piece.
    pub fn piece(&self, source: &[u8], range: Range<usize>, out: &mut [u8; HEADER_SPACE]) -> Piece {
        let (first, end) = (range.start, range.end.min(self.pieces));
        if first >= end {
            return Piece { vnet: VnetHeader::default(), header_len: 0, payload: 0..0 };
        }
        let whole = Piece { vnet: self.vnet, header_len: 0, payload: 0..self.len.min(source.len()) };
        if end - first == self.pieces {
            return whole;
        }
        let (Some(header), Some(from)) = (out.get_mut(..self.header_len), source.get(..self.header_len))
        else {
            return whole;
        };
        header.copy_from_slice(from);
        let payload = self.payload(first, end);
        self.fit_network(header, payload.len(), first);
        self.fit_transport(header, payload.len(), first, end);
        let mut vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type: VnetHeader::GSO_NONE,
            hdr_len: self.header_len as u16,
            gso_size: 0,
            csum_start: self.transport as u16,
            csum_offset: self.kind.checksum_offset(),
        };
        if end - first > 1 {
            // only the first segment carries CWR, and only a super-packet with CWR needs the flag
            let ecn = if first == 0 { VnetHeader::GSO_ECN } else { 0 };
            vnet.gso_type = self.vnet.gso_type & (!VnetHeader::GSO_ECN | ecn);
            vnet.gso_size = self.vnet.gso_size;
        }
        Piece { vnet, header_len: self.header_len, payload }
    }

    fn fit_network(&self, header: &mut [u8], payload: usize, first: usize) {
        let len = header.len() + payload;
        if self.v6 {
            write_word(header, V6_PAYLOAD_LEN, (len - V6_HEADER) as u16);
            return;
        }
        write_word(header, V4_TOTAL_LEN, len as u16);
        let id = read_word(header, V4_ID).wrapping_add(first as u16);
        write_word(header, V4_ID, id);
        write_word(header, V4_CHECKSUM, 0);
        let sum = header.get(..self.transport).map_or(0, |ip| Sum::of(ip).finish());
        write_word(header, V4_CHECKSUM, sum);
    }

    fn fit_transport(&self, header: &mut [u8], payload: usize, first: usize, end: usize) {
        let len = (header.len() - self.transport + payload) as u16;
        let Some(transport) = header.get_mut(self.transport..) else { return };
        match self.kind {
            Kind::Tcp => {
                if let Some(seq) = transport.get_mut(TCP_SEQ..).and_then(|s| s.first_chunk_mut::<4>()) {
                    let skipped = (first * usize::from(self.vnet.gso_size)) as u32;
                    *seq = u32::from_be_bytes(*seq).wrapping_add(skipped).to_be_bytes();
                }
                if let Some(flags) = transport.get_mut(TCP_FLAGS) {
                    *flags &= if end < self.pieces { !(Flags::FIN.0 | Flags::PSH.0) } else { 0xff };
                    *flags &= if first > 0 { !Flags::CWR.0 } else { 0xff };
                }
            }
            Kind::Udp => write_word(transport, UDP_LEN, len),
            Kind::Plain => {}
        }
        let sum = Sum::ZERO.word(self.pseudo).word(len).fold();
        write_word(transport, usize::from(self.kind.checksum_offset()), sum);
    }
}

impl Kind {
    const fn checksum_offset(self) -> u16 {
        match self {
            Self::Udp => UDP_CHECKSUM,
            Self::Tcp | Self::Plain => TCP_CHECKSUM,
        }
    }
}
