//! Converts the packets that a node sends to bytes: the received bytes with the node's changes.
//!
//! An unchanged packet is sent as received, including its virtio header. For one that was changed, cut or
//! copied in part, the headers are rewritten from the old ones, and the payload is a slice of the old one:
//!
//! * Sequence and acknowledgment number, window, flags, options, DSCP, ECN and hop limit are taken from the
//!   packet; ports, addresses, the position of the urgent pointer, reserved bits, IP options and unknown TCP
//!   options are kept.
//! * A part that does not reach the end carries neither FIN nor PSH, one without the beginning no CWR, as
//!   when the kernel cuts super-packets (`tcp_gso_segment`). An urgent pointer (RFC 9293, section 3.8.5) is
//!   removed if it lies before the part.
//! * Signalling (`signal.rs`) is the packet's: in IPv4 it follows the payload, in IPv6 it is the hop-by-hop
//!   header, which is replaced, added or removed. A hop-by-hop header without a structure stays. Options of
//!   SCONE and Quick-Start are written to where they were received.
//! * A complete checksum is updated incrementally (RFC 1624) if the payload is whole. A part gets only the
//!   sum of its pseudo-header, which the kernel or the network card completes, so the payload is never read
//!   here; so does a packet whose end changed. [`crate::parse()`] rejects packets with wrong checksums, so no
//!   damage is hidden.

use crate::frame::Link;
use crate::options::{are_equal, rebuild};
use crate::parse::{HEADER_SPACE, TcpOffsets};
use crate::signal::{parts, write_options};
use crate::store::{Content, StoredUnit};
use bentpipe_base::{Ecn, Flags, Packet, Signal, TcpHeader};
use bentpipe_wire::offload::{Piece, SuperPacket, TCP_CHECKSUM, VnetHeader, read_word, write_word};
use bentpipe_wire::{HOP_BY_HOP, OPTION_SPACE, Sum};
use core::ops::Range;

/// Offsets in the TCP header, and its length without options.
mod field {
    pub(super) const SEQ: usize = 4;
    pub(super) const ACK: usize = 8;
    pub(super) const DATA_OFFSET: usize = 12;
    pub(super) const FLAGS: usize = 13;
    pub(super) const WINDOW: usize = 14;
    pub(super) const CHECKSUM: usize = super::TCP_CHECKSUM as usize;
    pub(super) const URGENT: usize = 18;
    pub(super) const FIXED: usize = 20;
}

/// Bytes of an IPv6 header without extension headers, and where it names the next header.
const V6_HEADER: usize = 40;
const V6_NEXT: usize = 6;

/// A packet ready to be sent: rewritten headers, then bytes of the slot, then perhaps signalling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The virtio header for the kernel.
    pub vnet: VnetHeader,
    /// Bytes written to the header buffer; 0 for an unchanged packet, whose headers are part of `payload`.
    pub header_len: usize,
    /// The bytes that follow, as a range of the slot.
    pub payload: Range<usize>,
    /// Signalling that follows them.
    pub(crate) tail: Option<Signal>,
    /// The node's options did not fit; the old ones were kept.
    pub is_short: bool,
}

impl Emitted {
    /// The bytes after those of the slot: signalling at the end of an IPv4 packet that was changed.
    pub fn tail(&self) -> &[u8] {
        self.tail.as_ref().map_or(&[], Signal::bytes)
    }
}

/// Prepares `packet`, which a node sends from the bytes `held`. Headers are written to `out`.
///
/// # Panics
/// When the packet's body is not a part of `held`: nodes send only what they received.
pub fn emit(held: &StoredUnit<'_>, packet: &Packet, out: &mut [u8; HEADER_SPACE]) -> Emitted {
    match held.content {
        Content::Udp(_, shape) => {
            if let Some(emitted) = shape.write_signal(held, packet, out) {
                return emitted;
            }
            let emitted = emit_headers(held, packet, out);
            shape.write_back(held, packet, (emitted, out))
        }
        _ => emit_headers(held, packet, out),
    }
}

fn emit_headers(held: &StoredUnit<'_>, packet: &Packet, out: &mut [u8; HEADER_SPACE]) -> Emitted {
    let payload = 0..held.bytes.len();
    let whole = Emitted { vnet: *held.vnet, header_len: 0, payload, tail: None, is_short: false };
    match held.content {
        Content::Bytes | Content::Udp(None, _) => whole,
        // the whole packet, not marked: it leaves byte for byte, with any bytes beyond the length in its
        // header
        Content::Ip(cut, ecn) | Content::Udp(Some((cut, ecn)), _)
            if packet.body.offset() == 0
                && packet.body.len as usize == cut.shape().1
                && packet.ecn == *ecn =>
        {
            whole
        }
        Content::Ip(cut, _) | Content::Udp(Some((cut, _)), _) => {
            piece(held, cut, packet, out).unwrap_or(whole)
        }
        Content::Tcp(was, _) if packet == was => whole,
        Content::Tcp(was, shape) => {
            let skipped = packet.body.off.wrapping_sub(was.body.off);
            let end = skipped.saturating_add(u64::from(packet.body.len));
            assert!(end <= u64::from(was.body.len), "a node sends a part of what it received");
            let (start, end) = (skipped as usize, end as usize);
            let part = Part {
                was,
                shape,
                vnet: held.vnet,
                bytes: held.bytes,
                start,
                end,
                old: parts(was),
                new: parts(packet),
            };
            part.write(packet, out).unwrap_or(whole)
        }
    }
}

/// Emits a packet whose headers were not read: some wire packets of a super-packet, perhaps ECN-marked.
fn piece(
    held: &StoredUnit<'_>,
    cut: &SuperPacket,
    packet: &Packet,
    out: &mut [u8; HEADER_SPACE],
) -> Option<Emitted> {
    let size = u32::from(held.vnet.gso_size).max(1);
    let first = packet.body.offset() / size;
    let end = if cut.pieces() == 1 { 1 } else { first + packet.body.len.div_ceil(size) };
    let out = out.first_chunk_mut()?;
    let mut piece = cut.piece(held.bytes, first as usize..end as usize, out);
    if packet.ecn == Ecn::Ce {
        piece.mark_ce(held.bytes, out);
    }
    let Piece { vnet, header_len, payload } = piece;
    Some(Emitted { vnet, header_len, payload, tail: None, is_short: false })
}

/// Returns the segment size if `packet` and `next`, pieces of the super-packet `held`, can leave as one:
/// `next` follows `packet` directly, and the headers differ only as a super-packet allows.
pub(crate) fn joint(held: &StoredUnit<'_>, packet: &Packet, next: &Packet) -> Option<u16> {
    let segment = match held.content {
        Content::Bytes => return None,
        // each datagram of a super-packet may begin with a SCONE packet of its own
        Content::Udp(..) if packet.signal.is_some() || next.signal.is_some() => return None,
        Content::Ip(..) | Content::Udp(..) => {
            // all pieces share one header
            let alike = (packet.ecn, packet.dscp, packet.proto) == (next.ecn, next.dscp, next.proto)
                && packet.body.is_followed_by(next.body);
            let full = packet.body.len.is_multiple_of(u32::from(held.vnet.gso_size).max(1));
            return (alike && full && held.vnet.gso_size > 0).then_some(held.vnet.gso_size);
        }
        Content::Tcp(was, _) => was.segment,
    };
    let is_piece = |p: &Packet| p.segment == segment || p.body.len <= u32::from(segment);
    let (size, len) = (u32::from(segment), packet.body.len);
    let goes_on = packet.body.is_followed_by(next.body) && next.body.len > 0;
    // an end of its own is not in the payload
    let has_end = !parts(packet).1.is_empty() || !parts(next).1.is_empty();
    if segment == 0
        || has_end
        || len == 0
        || !len.is_multiple_of(size)
        || !goes_on
        || !is_piece(packet)
        || !is_piece(next)
    {
        return None;
    }
    let ends = Flags(Flags::FIN.0 | Flags::PSH.0);
    let alone = Flags::SYN.0 | Flags::RST.0 | Flags::URG.0;
    let flags = packet.tcp.flags.0;
    if flags & (ends.0 | alone) != 0 || flags & !Flags::CWR.0 != next.tcp.flags.0 & !ends.0 {
        return None;
    }
    let mut expected = packet.clone();
    (expected.body, expected.segment) = (next.body, next.segment);
    expected.tcp.seq = expected.tcp.seq.at(u64::from(len));
    expected.tcp.flags = next.tcp.flags;
    (expected == *next).then_some(segment)
}

/// A part of the kept payload, to be sent with a new header.
struct Part<'a> {
    was: &'a Packet,
    shape: &'a TcpOffsets,
    vnet: &'a VnetHeader,
    bytes: &'a [u8],
    /// Start and end of the part in the payload.
    start: usize,
    end: usize,
    /// Signalling in the hop-by-hop header and at the end of the payload: as received, and as sent.
    old: (&'a [u8], &'a [u8]),
    new: (&'a [u8], &'a [u8]),
}

impl Part<'_> {
    /// `None` if the shape does not match the bytes, or signalling was added that has no room: the node
    /// checks that.
    fn write(&self, packet: &Packet, out: &mut [u8; HEADER_SPACE]) -> Option<Emitted> {
        let TcpOffsets { link, transport, payload } = *self.shape;
        let tcp = self.flags(&packet.tcp);
        let old = self.bytes.get(transport..payload)?;
        let (options, is_short) = self.options(&tcp, old.get(field::FIXED..)?);
        let transport = self.before(out)?;
        let header_len = transport + field::FIXED + options.1;
        let len = self.end - self.start;

        out.get_mut(transport..transport + field::FIXED)?.copy_from_slice(old.get(..field::FIXED)?);
        out.get_mut(transport + field::FIXED..header_len)?.copy_from_slice(options.0.get(..options.1)?);
        let (before, header) = out.get_mut(..header_len)?.split_at_mut(transport);
        write_options(packet, before.get_mut(link.len..)?, header.get_mut(field::FIXED..)?);
        self.network(before, packet, header.len() + len + self.new.1.len())?;
        self.fixed(header, &tcp);

        let is_super = packet.segment > 0 && len > usize::from(packet.segment);
        let is_whole = len == self.was.body.len as usize && self.old.1 == self.new.1;
        let in_full = !self.vnet.is_partial() && is_whole && !is_super;
        let ip = before.get(link.len..)?;
        self.checksum(old, header, len, ip, in_full)?;
        let vnet = VnetHeader {
            flags: if in_full { self.vnet.flags } else { VnetHeader::NEEDS_CSUM },
            gso_type: if is_super { gso_type(ip, tcp.flags) } else { VnetHeader::GSO_NONE },
            hdr_len: header_len as u16,
            gso_size: if is_super { packet.segment } else { 0 },
            csum_start: if in_full { 0 } else { transport as u16 },
            csum_offset: if in_full { 0 } else { TCP_CHECKSUM },
        };
        let payload = payload + self.start..payload + self.end;
        Some(Emitted { vnet, header_len, payload, tail: Signal::new(self.new.1), is_short })
    }

    /// Copies what is before the TCP header, with the packet's signalling as hop-by-hop header. Returns where
    /// the TCP header begins.
    fn before(&self, out: &mut [u8; HEADER_SPACE]) -> Option<usize> {
        let (old, new) = (self.old.0, self.new.0);
        let before = self.bytes.get(..self.shape.transport)?;
        if old == new {
            out.get_mut(..before.len())?.copy_from_slice(before);
            return Some(before.len());
        }
        let fixed = self.shape.link.len + V6_HEADER;
        let next = fixed - V6_HEADER + V6_NEXT;
        // a hop-by-hop header that is not ours, beside which no other may be
        if old.is_empty() && *before.get(next)? == HOP_BY_HOP {
            return None;
        }
        let end = self.shape.transport - old.len() + new.len();
        let (head, behind) = (out.get_mut(..end)?, before.get(fixed + old.len()..)?);
        head.get_mut(..fixed)?.copy_from_slice(before.get(..fixed)?);
        head.get_mut(fixed..fixed + new.len())?.copy_from_slice(new);
        head.get_mut(fixed + new.len()..)?.copy_from_slice(behind);
        let protocol = old.first().copied().unwrap_or(*before.get(next)?);
        match head.get_mut(fixed).filter(|_| !new.is_empty()) {
            Some(first) => (*first, head[next]) = (protocol, HOP_BY_HOP),
            None => head[next] = protocol,
        }
        Some(end)
    }

    /// Returns the header with the flags that this part may carry.
    fn flags(&self, tcp: &TcpHeader) -> TcpHeader {
        let mut flags = tcp.flags.0;
        if self.end < self.was.body.len as usize {
            flags &= !(Flags::FIN.0 | Flags::PSH.0);
        }
        if self.start > 0 {
            flags &= !Flags::CWR.0;
        }
        if usize::from(self.urgent()) < self.start {
            flags &= !Flags::URG.0;
        }
        TcpHeader { flags: Flags(flags), ..tcp.clone() }
    }

    fn urgent(&self) -> u16 {
        read_word(self.bytes, self.shape.transport + field::URGENT)
    }

    /// Returns the padded options and their length, and true if the requested ones did not fit.
    fn options(&self, tcp: &TcpHeader, old: &[u8]) -> (([u8; OPTION_SPACE], usize), bool) {
        let mut kept = [0; OPTION_SPACE];
        let len = old.len().min(OPTION_SPACE);
        kept[..len].copy_from_slice(&old[..len]);
        if are_equal(&self.was.tcp, tcp) {
            return ((kept, len), false);
        }
        let ip = self.shape.transport - self.shape.link.len + field::FIXED + (self.end - self.start);
        let ip = ip + self.new.0.len() + self.new.1.len();
        match rebuild(old, &self.was.tcp, tcp).filter(|(_, new)| u16::try_from(ip + new).is_ok()) {
            Some(new) => (new, false),
            None => ((kept, len), true),
        }
    }

    /// Updates the fields before the TCP header; header and payload of TCP have `segment` bytes. `None` if
    /// that is too long for IP.
    fn network(&self, before: &mut [u8], packet: &Packet, segment: usize) -> Option<()> {
        let link: Link = self.shape.link;
        let traffic_class = packet.dscp.get() << 2 | packet.ecn as u8;
        let (frame, ip) = before.split_at_mut(link.len);
        let len = u16::try_from(ip.len() + segment).ok()?;
        link.fit(frame, len);
        if is_v6(ip) {
            write_word(ip, 4, len - V6_HEADER as u16);
            let first = read_word(ip, 0) & 0xf00f | u16::from(traffic_class) << 4;
            write_word(ip, 0, first);
            if let Some(hops) = ip.get_mut(7) {
                *hops = packet.hops;
            }
            return Some(());
        }
        write_word(ip, 2, len);
        // a part of a super-packet gets the identification that the kernel would give it
        let packets_before = self.start.checked_div(usize::from(self.was.segment)).unwrap_or(0);
        write_word(ip, 4, read_word(ip, 4).wrapping_add(packets_before as u16));
        if let Some([_, class, .., hops, _]) = ip.get_mut(..10) {
            (*class, *hops) = (traffic_class, packet.hops);
        }
        write_word(ip, 10, 0);
        let sum = Sum::of(ip).finish();
        write_word(ip, 10, sum);
        Some(())
    }

    /// Writes the fixed part of the TCP header except the checksum.
    fn fixed(&self, header: &mut [u8], tcp: &TcpHeader) {
        let words = (header.len() / 4) as u8;
        write_word(header, field::SEQ, (tcp.seq.0 >> 16) as u16);
        write_word(header, field::SEQ + 2, tcp.seq.0 as u16);
        write_word(header, field::ACK, (tcp.ack.0 >> 16) as u16);
        write_word(header, field::ACK + 2, tcp.ack.0 as u16);
        write_word(header, field::WINDOW, tcp.window);
        if let Some(byte) = header.get_mut(field::DATA_OFFSET) {
            *byte = words << 4 | *byte & 0x0f;
        }
        if let Some(byte) = header.get_mut(field::FLAGS) {
            *byte = tcp.flags.0;
        }
        if self.start > 0 {
            write_word(header, field::URGENT, usize::from(self.urgent()).saturating_sub(self.start) as u16);
        }
    }

    /// Writes the checksum field: complete, or the sum of the pseudo-header.
    fn checksum(&self, old: &[u8], header: &mut [u8], len: usize, ip: &[u8], in_full: bool) -> Option<()> {
        let stands = read_word(old, field::CHECKSUM);
        let length =
            |header: &[u8], payload: usize| Sum::of(&((header.len() + payload) as u32).to_be_bytes());
        let was = length(old, self.was.body.len as usize + self.old.1.len());
        let is = length(header, len + self.new.1.len());
        let new = if in_full {
            let before = was.bytes(old.get(..field::CHECKSUM)?).bytes(old.get(field::URGENT..)?);
            let after = is.bytes(header.get(..field::CHECKSUM)?).bytes(header.get(field::URGENT..)?);
            Sum::ZERO.word(!stands).replace(before, after).finish()
        } else if self.vnet.is_partial() {
            Sum::ZERO.word(stands).replace(was, is).fold()
        } else {
            let addresses = if is_v6(ip) { ip.get(8..40)? } else { ip.get(12..20)? };
            is.bytes(addresses).word(u16::from(bentpipe_wire::TCP)).fold()
        };
        write_word(header, field::CHECKSUM, new);
        Some(())
    }
}

fn is_v6(ip: &[u8]) -> bool {
    ip.first().is_some_and(|first| first >> 4 == 6)
}

fn gso_type(ip: &[u8], flags: Flags) -> u8 {
    let kind = if is_v6(ip) { VnetHeader::GSO_TCPV6 } else { VnetHeader::GSO_TCPV4 };
    // CWR belongs to the first of the packets only
    if flags.has(Flags::CWR) { kind | VnetHeader::GSO_ECN } else { kind }
}
