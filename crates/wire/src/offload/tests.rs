//! Compares segmented super-packets with packets that the test builds one by one.

use super::*;
use crate::{TCP, UDP};
use core::ops::Range;
use proptest::prelude::*;

/// What a sender wants to send, before any header is written.
#[derive(Clone, Debug)]
struct Wish {
    v6: bool,
    tcp: bool,
    /// IPv4 options or IPv6 extension headers, in units of 8 bytes (4 for IPv4).
    extra: usize,
    tcp_options: usize,
    id: u16,
    seq: u32,
    flags: u8,
    payload: Vec<u8>,
    size: usize,
    partial: bool,
}

/// RFC 1071, section 4.1, word by word.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

impl Wish {
    fn ip_len(&self) -> usize {
        if self.v6 { 40 + 8 * self.extra } else { 20 + 4 * self.extra }
    }
    fn transport_len(&self) -> usize {
        if self.tcp { 20 + 4 * self.tcp_options } else { 8 }
    }
    fn field(&self) -> usize {
        if self.tcp { 16 } else { 6 }
    }

    /// One packet: payload `part`, which begins `at` bytes into the stream as packet number `n`. `partial`
    /// leaves the checksum at the sum of the pseudo-header.
    fn packet(&self, part: &[u8], n: usize, at: usize, flags: u8, partial: bool) -> Vec<u8> {
        let protocol = if self.tcp { TCP } else { UDP };
        let segment_len = self.transport_len() + part.len();
        let mut p = Vec::new();
        let pseudo = if self.v6 {
            p.extend([0x6a, 0xbc, 0xde, 0xf1]);
            p.extend(((8 * self.extra + segment_len) as u16).to_be_bytes());
            p.extend([if self.extra > 0 { 60 } else { protocol }, 61]);
            p.extend((0..32).map(|i| i * 7));
            for i in 0..self.extra {
                let next = if i + 1 < self.extra { 60 } else { protocol };
                p.extend([next, 0, 1, 4, 0, 0, 0, 0]);
            }
            let mut pseudo = p[8..40].to_vec();
            pseudo.extend((segment_len as u32).to_be_bytes());
            pseudo.extend([0, 0, 0, protocol]);
            pseudo
        } else {
            p.extend([0x45 + self.extra as u8, 0xb9]);
            p.extend(((self.ip_len() + segment_len) as u16).to_be_bytes());
            p.extend(self.id.wrapping_add(n as u16).to_be_bytes());
            p.extend([0x40, 0, 63, protocol, 0, 0, 10, 55, 0, 1, 10, 55, 3, 2]);
            p.extend(vec![1; 4 * self.extra]);
            let check = !sum(&p);
            p[10..12].copy_from_slice(&check.to_be_bytes());
            let mut pseudo = p[12..20].to_vec();
            pseudo.extend([0, protocol]);
            pseudo.extend((segment_len as u16).to_be_bytes());
            pseudo
        };
        let transport = p.len();
        p.extend([0x9c, 0x40, 0x01, 0xbb]);
        if self.tcp {
            p.extend(self.seq.wrapping_add(at as u32).to_be_bytes());
            p.extend([1, 2, 3, 4, ((5 + self.tcp_options) << 4) as u8, flags, 0xfa, 0xf0, 0, 0, 0, 0]);
            p.extend(vec![1; 4 * self.tcp_options]);
        } else {
            p.extend((segment_len as u16).to_be_bytes());
            p.extend([0, 0]);
        }
        p.extend(part);
        let mut check = sum(&pseudo);
        if !partial {
            let covered: Vec<u8> = pseudo.iter().chain(&p[transport..]).copied().collect();
            check = match !sum(&covered) {
                0 if !self.tcp => 0xffff,
                check => check,
            };
        }
        let field = transport + self.field();
        p[field..field + 2].copy_from_slice(&check.to_be_bytes());
        p
    }

    /// The super-packet that a stack hands over.
    fn super_packet(&self) -> (Vec<u8>, VnetHeader) {
        let vnet = VnetHeader {
            flags: u8::from(self.partial),
            gso_type: match (self.tcp, self.v6) {
                (false, _) => VnetHeader::GSO_UDP_L4,
                (true, false) => VnetHeader::GSO_TCPV4 | VnetHeader::GSO_ECN,
                (true, true) => VnetHeader::GSO_TCPV6 | VnetHeader::GSO_ECN,
            },
            hdr_len: (self.ip_len() + self.transport_len()) as u16,
            gso_size: self.size as u16,
            csum_start: if self.partial { self.ip_len() as u16 } else { 0 },
            csum_offset: if self.partial { self.field() as u16 } else { 0 },
        };
        (self.packet(&self.payload, 0, 0, self.flags, self.partial), vnet)
    }

    /// The expected wire packets: FIN and PSH in the last packet only, CWR in the first only.
    fn on_the_wire(&self) -> Vec<Vec<u8>> {
        let last = self.payload.len().div_ceil(self.size) - 1;
        let parts = self.payload.chunks(self.size).enumerate();
        let packets = parts.map(|(n, part)| {
            let cleared = if n < last { 0x09 } else { 0 } | if n > 0 { 0x80 } else { 0 };
            self.packet(part, n, n * self.size, self.flags & !cleared, false)
        });
        packets.collect()
    }
}

fn wish() -> impl Strategy<Value = Wish> {
    let headers = (any::<bool>(), any::<bool>(), 0usize..5, 0usize..11);
    let numbers = (any::<u16>(), any::<u32>(), any::<u8>(), any::<bool>());
    let payload = (1usize..300)
        .prop_flat_map(|size| (Just(size), proptest::collection::vec(any::<u8>(), size + 1..size * 12 + 2)));
    (headers, numbers, payload).prop_map(|(h, n, (size, payload))| Wish {
        v6: h.0,
        tcp: h.1,
        extra: h.2,
        tcp_options: h.3,
        id: n.0,
        seq: n.1,
        flags: n.2,
        payload,
        size,
        partial: n.3,
    })
}

/// The headers and payload of a piece.
fn bytes(s: &SuperPacket, source: &[u8], range: Range<usize>) -> (Vec<u8>, VnetHeader) {
    let mut out = [0; HEADER_SPACE];
    let piece = s.piece(source, range, &mut out);
    let mut bytes = out[..piece.header_len].to_vec();
    bytes.extend(&source[piece.payload]);
    (bytes, piece.vnet)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn each_piece_is_the_packet_its_sender_would_have_built(wish in wish()) {
        let (source, vnet) = wish.super_packet();
        let s = SuperPacket::parse(&source, &vnet).unwrap();
        let expected = wish.on_the_wire();
        prop_assert_eq!(s.pieces(), expected.len());
        for (i, packet) in expected.iter().enumerate() {
            let (mut piece, vnet) = bytes(&s, &source, i..i + 1);
            prop_assert_eq!(vnet.gso_type, VnetHeader::GSO_NONE);
            prop_assert!(complete(&mut piece, &vnet));
            prop_assert_eq!(&piece, packet, "piece {}", i);
        }
    }

    #[test]
    fn neighbours_joined_and_cut_again_are_the_same(wish in wish(), a: prop::sample::Index, b: prop::sample::Index) {
        let (source, vnet) = wish.super_packet();
        let s = SuperPacket::parse(&source, &vnet).unwrap();
        let (a, b) = (a.index(s.pieces()), b.index(s.pieces()));
        let (first, last) = (a.min(b), a.max(b));
        let (joined, vnet) = bytes(&s, &source, first..last + 1);
        let again = SuperPacket::parse(&joined, &vnet).unwrap();
        prop_assert_eq!(again.pieces(), last + 1 - first);
        let expected = wish.on_the_wire();
        for i in 0..again.pieces() {
            let (mut piece, vnet) = bytes(&again, &joined, i..i + 1);
            complete(&mut piece, &vnet);
            prop_assert_eq!(&piece, &expected[first + i], "piece {} of {}..={}", i, first, last);
        }
    }

    #[test]
    fn a_mark_says_congestion_experienced_and_spoils_nothing(wish in wish(), a: prop::sample::Index, b: prop::sample::Index) {
        let (source, vnet) = wish.super_packet();
        let s = SuperPacket::parse(&source, &vnet).unwrap();
        let (a, b) = (a.index(s.pieces()), b.index(s.pieces()));
        let range = a.min(b)..a.max(b) + 1;
        let (plain, vnet) = bytes(&s, &source, range.clone());
        let mut out = [0; HEADER_SPACE];
        let mut piece = s.piece(&source, range, &mut out);
        piece.mark_ce(&source, &mut out);
        piece.mark_ce(&source, &mut out);
        let mut marked = out[..piece.header_len].to_vec();
        marked.extend(&source[piece.payload.clone()]);
        prop_assert_eq!(piece.vnet, vnet);
        // everything but the ECN field and the header's checksum is unchanged
        let field = if wish.v6 { 0x30 } else { 0x03 };
        prop_assert_eq!(marked[1], plain[1] | field);
        if !wish.v6 {
            prop_assert_eq!(sum(&marked[..wish.ip_len()]), 0xffff);
            marked[10..12].copy_from_slice(&plain[10..12]);
        }
        marked[1] = plain[1];
        prop_assert_eq!(marked, plain);
    }

    #[test]
    fn nothing_panics(
        mut source in proptest::collection::vec(any::<u8>(), 0..200),
        version in prop::sample::select(vec![0x45u8, 0x46, 0x60, 0x4f, 0x12]),
        note: [u8; 10], short in 0usize..200, from in 0usize..9, to in 0usize..9,
    ) {
        if let Some(first) = source.first_mut() {
            *first = version;
        }
        let vnet = VnetHeader::read_from_bytes(&note[..]).unwrap();
        let _ = addresses(&source);
        let mut out = [0; HEADER_SPACE];
        if let Ok(s) = SuperPacket::parse(&source, &vnet) {
            prop_assert!(s.pieces() >= 1);
            let mut piece = s.piece(&source[..short.min(source.len())], from..to, &mut out);
            piece.mark_ce(&source[..short.min(source.len())], &mut out);
            prop_assert!(piece.payload.end <= source.len());
        }
        complete(&mut source, &vnet);
    }

    /// Like `nothing_panics`, but passes the first checks: one byte of a valid super-packet is changed.
    #[test]
    fn a_spoilt_super_packet_is_cut_or_passes_whole(wish in wish(), at: prop::sample::Index, value: u8) {
        let (mut source, vnet) = wish.super_packet();
        let at = at.index(source.len().min(120));
        source[at] = value;
        if let Ok(s) = SuperPacket::parse(&source, &vnet) {
            let mut payload = 0;
            for i in 0..s.pieces() {
                let (piece, _) = bytes(&s, &source, i..i + 1);
                payload += piece.len();
            }
            prop_assert!(payload >= whole_len(&s));
        }
    }
}

/// Bytes of a super-packet, IP header included.
fn whole_len(s: &SuperPacket) -> usize {
    let (header, payload, _) = s.shape();
    usize::from(header) + payload
}

fn example() -> Wish {
    let payload = (0..3500u32).map(|i| i as u8).collect();
    let (id, seq, flags) = (0xffff, u32::MAX - 99, 0x99);
    Wish {
        v6: false,
        tcp: true,
        extra: 0,
        tcp_options: 3,
        id,
        seq,
        flags,
        payload,
        size: 1448,
        partial: true,
    }
}

#[test]
fn the_whole_goes_as_it_came() {
    let (source, vnet) = example().super_packet();
    let s = SuperPacket::parse(&source, &vnet).unwrap();
    let piece = s.piece(&source, 0..3, &mut [0; HEADER_SPACE]);
    assert_eq!(piece, Piece { vnet, header_len: 0, payload: 0..source.len() });
    let none = s.piece(&source, 3..9, &mut [0; HEADER_SPACE]);
    assert_eq!((none.header_len, none.payload), (0, 0..0));
}

#[test]
fn congestion_window_reduced_stays_with_the_first_segment() {
    let (source, vnet) = example().super_packet();
    let s = SuperPacket::parse(&source, &vnet).unwrap();
    let (front, note) = bytes(&s, &source, 0..2);
    assert_eq!((note.gso_type, front[33]), (VnetHeader::GSO_TCPV4 | VnetHeader::GSO_ECN, 0x90));
    let (back, note) = bytes(&s, &source, 1..3);
    assert_eq!((note.gso_type, back[33]), (VnetHeader::GSO_TCPV4, 0x19));
}

#[test]
fn what_the_note_does_not_fit_is_one_packet() {
    let (source, vnet) = example().super_packet();
    let one = |source: &[u8], vnet: VnetHeader| {
        let s = SuperPacket::parse(source, &vnet).unwrap();
        let piece = s.piece(source, 0..1, &mut [0; HEADER_SPACE]);
        assert_eq!(piece, Piece { vnet, header_len: 0, payload: 0..whole_len(&s) });
        s.pieces()
    };
    assert_eq!(one(&source, VnetHeader { gso_type: 3, ..vnet }), 1); // UDP fragmentation
    assert_eq!(one(&source, VnetHeader { gso_type: VnetHeader::GSO_TCPV6, ..vnet }), 1);
    assert_eq!(one(&source, VnetHeader { gso_size: 0, ..vnet }), 1);
    assert_eq!(one(&source, VnetHeader { csum_start: 60, ..vnet }), 1); // a tunnel's inner packet
    let mut fragment = source.clone();
    fragment[6] = 0x20;
    assert_eq!(one(&fragment, vnet), 1);
    let mut cut_short = source.clone();
    cut_short.truncate(100);
    assert_eq!(one(&cut_short, vnet), 1);
    let mut padded = source.clone();
    padded.extend([0; 6]);
    assert_eq!(whole_len(&SuperPacket::parse(&padded, &vnet).unwrap()), source.len());
}

#[test]
fn only_ip_is_a_super_packet() {
    let arp = [0u8, 1, 8, 0, 6, 4, 0, 1];
    let fault = |bytes: &[u8]| SuperPacket::parse(bytes, &VnetHeader::default()).unwrap_err().fault;
    assert_eq!(fault(&arp), Fault::Version(0));
    assert_eq!(fault(&[0x45; 19]), Fault::Truncated);
    assert_eq!(fault(&[0x60; 39]), Fault::Truncated);
    assert_eq!(fault(&[]), Fault::Truncated);
}

#[test]
fn a_full_checksum_passes_untouched() {
    let wish = Wish { partial: false, payload: vec![7; 1000], tcp: false, ..example() };
    let packet = wish.packet(&wish.payload, 0, 0, 0, false);
    let vnet = VnetHeader { flags: VnetHeader::DATA_VALID, ..VnetHeader::default() };
    let s = SuperPacket::parse(&packet, &vnet).unwrap();
    let (mut out, note) = bytes(&s, &packet, 0..1);
    assert_eq!((&out, note), (&packet, vnet));
    assert!(!complete(&mut out, &note));
    assert_eq!(out, packet);
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_ones() {
    // the payload is chosen so that everything sums up to 0xffff
    let wish = Wish { tcp: false, payload: vec![0; 2], ..example() };
    let bare = wish.packet(&[0, 0], 0, 0, 0, false);
    let check = [bare[26], bare[27]];
    let mut packet = wish.packet(&check, 0, 0, 0, true);
    let vnet = VnetHeader { flags: 1, csum_start: 20, csum_offset: 6, ..VnetHeader::default() };
    assert!(complete(&mut packet, &vnet));
    assert_eq!(packet[26..28], [0xff, 0xff]);
    let mut tcp = [0u8; 24];
    tcp[20..22].copy_from_slice(&[0xff, 0xff]);
    let vnet = VnetHeader { flags: 1, csum_start: 0, csum_offset: 16, ..VnetHeader::default() };
    assert!(complete(&mut tcp, &vnet));
    assert_eq!(tcp[16..18], [0, 0]);
}

#[test]
fn a_note_that_points_outside_completes_nothing() {
    let mut packet = [1u8; 40];
    for (csum_start, csum_offset) in [(41, 0), (39, 0), (20, 19), (0xffff, 0xffff)] {
        let vnet = VnetHeader { flags: 1, csum_start, csum_offset, ..VnetHeader::default() };
        assert!(!complete(&mut packet, &vnet));
    }
    assert_eq!(packet, [1; 40]);
}

#[test]
fn addresses_are_read_in_both_versions() {
    let (source, _) = example().super_packet();
    let (src, dst) = addresses(&source).unwrap();
    assert_eq!((src.to_string(), dst.to_string()), ("10.55.0.1".into(), "10.55.3.2".into()));
    let wish = Wish { v6: true, extra: 2, tcp: false, ..example() };
    let (src, _) = addresses(&wish.super_packet().0).unwrap();
    assert_eq!(src.to_string(), "7:e15:1c23:2a31:383f:464d:545b:6269");
    assert!(addresses(&source[..19]).is_err());
}

#[test]
fn the_note_moves_with_a_link_layer_header() {
    let (_, vnet) = example().super_packet();
    let behind = vnet.with_prefix(14);
    assert_eq!((behind.csum_start, behind.csum_offset, behind.hdr_len), (34, 16, vnet.hdr_len + 14));
    assert_eq!(behind.without_prefix(14), vnet);
    let none = VnetHeader::default();
    assert_eq!((none.with_prefix(14), none.without_prefix(14)), (none, none));
}
