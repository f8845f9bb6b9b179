//! Options of SCONE and Quick-Start in real packets: a node reads and lowers them, and nothing else changes.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_advice::quick_start::packet::{of_ip, of_tcp, pass_in};
use bentpipe_advice::quick_start::{Carrier, Fields, Hop, RateCode};
use bentpipe_advice::scone::Advice;
use bentpipe_advice::scone_tcp::Advised;
use bentpipe_advice::scone_tcp::packet::{lower_in, of};
use bentpipe_base::{
    Cx, Dscp, Ecn, Flags, Input, Node, Packet, Port, Rate, Seq, Size, TcpHeader, Timestamps,
};
use bentpipe_driver::{LiveNetwork, Unit};
use bentpipe_network::Network;
use bentpipe_wire::offload::{HEADER_SPACE, SuperPacket, VnetHeader, complete, emit_super_packet};
use bentpipe_wire::{
    AddressPair, Ipv4, Layout, Segment, add_hop_by_hop, add_ipv4_options, add_tcp_options, emit,
};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Lowers what passes to 20 Mbit/s, and notes the packets as they came.
#[derive(Debug)]
struct Lowers {
    seen: Rc<RefCell<Vec<Packet>>>,
    reads: bool,
}

/// What it approves by Quick-Start: 10.24 Mbit/s.
const HOP: Hop = Hop {
    approved: match RateCode::new(8) {
        Some(code) => code,
        None => RateCode::NONE,
    },
    hops: 1,
    random: 0x1234_5678,
};

impl Node for Lowers {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        if let Input::Packet(port, mut packet) = input {
            self.seen.borrow_mut().push((*packet).clone());
            lower_in(&mut packet, Advice::at_most(Rate::from_bps(20_000_000).unwrap()).unwrap());
            pass_in(&mut packet, HOP);
            cx.send(Port(1 - port.0), packet);
        }
    }
    fn reads_signalling(&self) -> bool {
        self.reads
    }
    fn takes_super_packets(&self) -> bool {
        true
    }
}

/// The node between two ports.
struct Stage {
    net: LiveNetwork,
    seen: Rc<RefCell<Vec<Packet>>>,
}

impl Stage {
    fn new(reads: bool) -> Self {
        let seen = Rc::default();
        let node = Lowers { seen: Rc::clone(&seen), reads };
        let add = |network: &mut Network| vec![network.add(Box::new(node))];
        Self { net: LiveNetwork::chain(add, 1, Unit::Packet, Size(1 << 22)), seen }
    }

    /// Sends a unit through; returns it as it leaves, with its virtio header.
    fn pass(&mut self, bytes: &[u8], vnet: &VnetHeader) -> (Vec<u8>, VnetHeader) {
        assert!(self.net.store.borrow_mut().write(bytes));
        assert!(self.net.accept(0, bytes.len(), vnet));
        let arrival = self.net.take_arrival().unwrap();
        let sent =
            self.net.emit(&arrival, |out, header, rest| ([header, rest, out.tail()].concat(), out.vnet));
        self.net.done(arrival);
        assert!(!self.net.has_arrived());
        sent
    }

    /// The last packet that the node got.
    fn last(&self) -> Packet {
        self.seen.borrow().last().unwrap().clone()
    }
}

fn ends(v6: bool) -> AddressPair {
    if v6 {
        AddressPair::V6 { src: 1u128.into(), dst: 2u128.into() }
    } else {
        AddressPair::V4 { src: [10, 0, 0, 1].into(), dst: [10, 0, 0, 2].into() }
    }
}

fn tcp(flags: Flags) -> TcpHeader {
    let timestamps = Some(Timestamps { value: 7, echo: 8 });
    TcpHeader { seq: Seq(9), window: 3, flags, timestamps, mss: Some(1400), ..TcpHeader::default() }
}

fn segment(v6: bool, flags: Flags, payload: &[u8]) -> Segment<'_> {
    let (dscp, ecn) = (Dscp::DEFAULT, Ecn::Ect0);
    Segment { ends: ends(v6), sport: 5, dport: 6, hops: 60, dscp, ecn, tcp: tcp(flags), payload }
}

/// A packet with these options behind those of its TCP header, and these in its IP header: in IPv6 a whole
/// hop-by-hop header.
fn packet(v6: bool, flags: Flags, payload: &[u8], network: &[u8], transport: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit(&segment(v6, flags, payload), &mut bytes).unwrap();
    add_tcp_options(transport, &mut bytes).unwrap();
    if !network.is_empty() && v6 {
        add_hop_by_hop(network, &mut bytes).unwrap();
    } else if !network.is_empty() {
        add_ipv4_options(network, &mut bytes).unwrap();
    }
    bytes
}

/// Puts right the checksums of a packet whose header was changed.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let layout = Layout::of(&bytes).unwrap();
    let at = layout.network.transport + 16;
    bytes[at..at + 2].fill(0);
    let sum = layout.sum(&bytes).finish();
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    if bytes[0] >> 4 == 4 {
        bytes[10..12].fill(0);
        let header = bytes[..layout.network.transport].to_vec();
        bytes[10..12].copy_from_slice(&bentpipe_wire::Sum::of(&header).finish().to_be_bytes());
    }
    bytes
}

fn has_good_checksums(bytes: &[u8]) -> bool {
    let header = bytes[0] >> 4 == 6 || Ipv4::new(bytes).unwrap().checksum_holds();
    header && Layout::of(bytes).unwrap().sum(bytes).fold() == 0xffff
}

/// The experimental option with signal and echo unknown, and as it leaves: 19.95 Mbit/s is signal 46.
const ADVISED: [u8; 8] = [1, 1, 254, 6, 0x6F, 0x7D, 0x3F, 0xFF];
const LOWERED: [u8; 8] = [1, 1, 254, 6, 0x6F, 0x7D, 0x3F, 0x80 | 0x2E];

/// Requests for 1.31 Gbit/s with QS TTL 200 in IPv4, and in an IPv6 hop-by-hop header.
const NONCE: u32 = 0x2AAA_AAAA;
fn asked() -> Fields {
    Fields::request(RateCode::MAX, 200, NONCE)
}
fn request(v6: bool, fields: Fields) -> Vec<u8> {
    if v6 {
        [&[6, 1][..], &fields.option(Carrier::Ipv6), &[1, 4, 0, 0, 0, 0]].concat()
    } else {
        fields.option(Carrier::Ipv4).to_vec()
    }
}

/// On a SYN, a SYN/ACK, data and an acknowledgment, in both IP versions, wherever the option stands: the
/// field and the checksum change, and nothing else.
#[test]
fn advice_is_lowered_in_place() {
    let mut stage = Stage::new(true);
    // the draft's own form, with other options before and after it, and with the other experimental kind
    let draft = [2, 4, 5, 0xB4, 253, 6, 0x6F, 0x7D, 0, 127, 1, 3];
    let among = [&draft[..], &[3, 7, 222, 2]].concat();
    let mut lower = among.clone();
    lower[9] = 46;
    for (v6, payload) in [(false, &b""[..]), (true, b""), (false, b"odd"), (true, b"even")] {
        for flags in [Flags::SYN, Flags::SYN.with(Flags::ACK), Flags::ACK] {
            for (before, after) in [(&ADVISED[..], &LOWERED[..]), (&among, &lower)] {
                let came = packet(v6, flags, payload, &[], before);
                // a SYN that has its MSS twice is not read
                if flags.has(Flags::SYN) && before.len() > 8 {
                    assert_eq!(stage.pass(&came, &VnetHeader::default()).0, came);
                    continue;
                }
                let (left, vnet) = stage.pass(&came, &VnetHeader::default());
                assert_eq!(left, packet(v6, flags, payload, &[], after), "{flags:?} IPv6 {v6}");
                assert!(has_good_checksums(&left) && !vnet.is_partial());
                let seen = stage.last();
                assert_eq!(of(&seen).map(Advised::advice), Some(Advice::UNKNOWN));
                assert_eq!((seen.wire_len().0 as usize, seen.body.len as usize), (came.len(), payload.len()));
            }
        }
    }
}

/// A signal that is not higher stays, byte for byte, as does a packet where no node reads options.
#[test]
fn what_need_not_change_leaves_as_it_came() {
    let low = [1, 1, 254, 6, 0x6F, 0x7D, 0x3F, 0x80 | 0x28];
    for (reads, options) in [(true, low), (false, ADVISED)] {
        let mut stage = Stage::new(reads);
        for v6 in [false, true] {
            let came = packet(v6, Flags::ACK, b"data", &[], &options);
            assert_eq!(stage.pass(&came, &VnetHeader::default()).0, came);
            assert_eq!(stage.last().signal.is_some(), reads);
        }
    }
}

/// A request in either IP version, alone and beside other options; an answer passes as it came.
#[test]
fn a_request_is_lowered_in_place() {
    let mut stage = Stage::new(true);
    let (other, alert) = ([148, 4, 0, 0], [5, 2, 0, 0]);
    let after = asked().after(HOP);
    assert_eq!((after.rate(), after.ttl()), (HOP.approved, 199));
    let beside = |v6: bool, fields: Fields| {
        if v6 {
            [&[6, 1][..], &alert, &fields.option(Carrier::Ipv6), &[1, 0]].concat()
        } else {
            [&other[..], &fields.option(Carrier::Ipv4), &[1, 1, 1, 0]].concat()
        }
    };
    let answer = asked().answer(57).option(Carrier::Tcp);
    for v6 in [false, true] {
        for (flags, tcp_options) in
            [(Flags::SYN, &[][..]), (Flags::SYN.with(Flags::ACK), &answer), (Flags::ACK, &ADVISED)]
        {
            let forms = [request(v6, asked()), beside(v6, asked())];
            for (before, after) in forms.into_iter().zip([request(v6, after), beside(v6, after)]) {
                let came = packet(v6, flags, b"x", &before, tcp_options);
                let (left, _) = stage.pass(&came, &VnetHeader::default());
                let then = if tcp_options == ADVISED { &LOWERED } else { tcp_options };
                assert_eq!(left, packet(v6, flags, b"x", &after, then));
                assert!(has_good_checksums(&left));
                let seen = stage.last();
                assert_eq!(of_ip(&seen), Some(asked()));
                assert_eq!(of_tcp(&seen).is_some(), tcp_options == answer);
            }
        }
    }
}

/// A partial checksum, which the kernel completes, stays partial; what it completes to is right.
#[test]
fn a_partial_checksum_stays_partial() {
    let mut stage = Stage::new(true);
    for v6 in [false, true] {
        let mut came = packet(v6, Flags::ACK, b"data", &request(v6, asked()), &ADVISED);
        let layout = Layout::of(&came).unwrap();
        let start = layout.network.transport;
        let sum = bentpipe_wire::pseudo_header(&ends(v6), 6, came.len() - start).fold();
        came[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            csum_start: start as u16,
            csum_offset: 16,
            ..VnetHeader::default()
        };
        let (mut left, vnet) = stage.pass(&came, &vnet);
        assert!(complete(&mut left, &vnet));
        assert_eq!(left, packet(v6, Flags::ACK, b"data", &request(v6, asked().after(HOP)), &LOWERED));
    }
}

/// A super-packet has one set of options, which each of its wire packets repeats.
#[test]
fn a_change_to_a_super_packet_is_in_each_wire_packet() {
    let data: Vec<u8> = (0..4500).map(|i| i as u8).collect();
    for v6 in [false, true] {
        let mut stage = Stage::new(true);
        let mut came = Vec::new();
        let mut vnet = emit_super_packet(&segment(v6, Flags::ACK, &[]), data.len(), 1000, &mut came).unwrap();
        // options as the kernel leaves them in a super-packet that it joined
        let base = if v6 { 40 } else { 20 };
        let (network, end) = (request(v6, asked()), came.len());
        came.splice(end..end, ADVISED);
        came[base + 12] += 2 << 4;
        came.splice(base..base, network.iter().copied());
        came.extend(&data);
        let len = came.len() as u16;
        if v6 {
            came[6] = 0;
            came[4..6].copy_from_slice(&(len - 40).to_be_bytes());
        } else {
            came[0] = 0x47;
            came[2..4].copy_from_slice(&len.to_be_bytes());
            came[10..12].fill(0);
            let sum = bentpipe_wire::Sum::of(&came[..28]).finish();
            came[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let transport = base + network.len();
        let sum = bentpipe_wire::pseudo_header(&ends(v6), 6, came.len() - transport).fold();
        came[transport + 16..transport + 18].copy_from_slice(&sum.to_be_bytes());
        (vnet.csum_start, vnet.hdr_len) = (transport as u16, (came.len() - data.len()) as u16);
        let (left, vnet) = stage.pass(&came, &vnet);
        assert_eq!((vnet.gso_size, left.len()), (1000, came.len()), "it stays one");
        assert_eq!(stage.seen.borrow().len(), 1);
        let all = SuperPacket::parse(&left, &vnet).unwrap();
        assert_eq!(all.pieces(), 5);
        for (i, chunk) in data.chunks(1000).enumerate() {
            let mut header = [0; HEADER_SPACE];
            let piece = all.piece(&left, i..i + 1, &mut header);
            let mut bytes = [&header[..piece.header_len], &left[piece.payload.clone()]].concat();
            complete(&mut bytes, &piece.vnet);
            assert!(has_good_checksums(&bytes));
            let layout = Layout::of(&bytes).unwrap();
            assert_eq!(bytes[layout.payload], *chunk);
            assert_eq!(bytes[base..transport], request(v6, asked().after(HOP)));
            assert_eq!(bytes[layout.options][12..], LOWERED);
        }
    }
}

/// Doubled options, impossible lengths, fragments, signatures, fast open: nothing is read, nothing changes.
#[test]
fn hostile_and_signed_packets_stay_as_they_are() {
    let mut stage = Stage::new(true);
    let mut stays = |bytes: &[u8], what: &str| {
        assert_eq!(stage.pass(bytes, &VnetHeader::default()).0, bytes, "{what}");
        assert!(stage.last().signal.is_none(), "{what}");
    };
    let twice = [ADVISED, ADVISED].concat();
    let md5 = [&[1, 1, 19, 18][..], &[7; 16], &ADVISED].concat();
    let ao = [&[29, 12][..], &[7; 10], &ADVISED, &[1, 1, 1, 1]].concat();
    let open = [&[34, 10][..], &[7; 8], &[1, 1], &ADVISED].concat();
    let short = [254, 5, 0x6F, 0x7D, 1, 1, 1, 1];
    let past = [254, 6, 0x6F, 0x7D, 0, 127, 8, 9];
    let ended = [0, 254, 6, 0x6F, 0x7D, 0, 127, 0];
    for v6 in [false, true] {
        for (options, what) in [
            (&twice[..], "two options"),
            (&md5, "an MD5 signature"),
            (&ao, "an authentication option"),
            (&short, "a short option"),
            (&past, "an option past the end"),
            (&ended, "an option behind the end of the list"),
        ] {
            stays(&packet(v6, Flags::ACK, b"data", &[], options), what);
        }
        stays(&packet(v6, Flags::SYN, b"data", &[], &open), "a fast-open SYN");
        stays(&packet(v6, Flags::ACK, b"data", &request(v6, asked()), &md5), "a signed request");
    }
    let two = request(false, asked()).repeat(2);
    stays(&packet(false, Flags::SYN, &[], &two, &[]), "two requests");
    let both = [&[6, 2][..], &asked().option(Carrier::Ipv6).repeat(2), &[1, 4, 0, 0, 0, 0]].concat();
    stays(&packet(true, Flags::SYN, &[], &both, &[]), "two requests in IPv6");
    let header = [&[6, 1][..], &asked().option(Carrier::Ipv6), &[1, 9, 0, 0, 0, 0]].concat();
    stays(&packet(true, Flags::SYN, &[], &header, &[]), "padding past the end");
    // a whole first fragment, and one behind an IPv6 fragment header
    let mut first = packet(false, Flags::ACK, b"eight by", &request(false, asked()), &ADVISED);
    first[6] = 0x20;
    first[10..12].fill(0);
    let sum = bentpipe_wire::Sum::of(&first[..28]).finish();
    first[10..12].copy_from_slice(&sum.to_be_bytes());
    stays(&first, "a fragment");
    let mut spoilt = packet(false, Flags::ACK, b"data", &request(false, asked()), &ADVISED);
    let last = spoilt.len() - 1;
    spoilt[last] ^= 1;
    stays(&spoilt, "a wrong checksum");
}

/// Bytes that may hold options.
fn any_options(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(ADVISED.to_vec()),
        Just(asked().option(Carrier::Ipv4).to_vec()),
        Just(asked().option(Carrier::Tcp).to_vec()),
        Just(vec![1, 1, 1, 1]),
        proptest::collection::vec(any::<u8>(), 4),
        (0u8..=255, 0u8..12).prop_map(|(kind, len)| vec![kind, len, 0x6F, 0x7D]),
    ];
    proptest::collection::vec(part, 0..4).prop_map(move |parts| {
        let mut all = parts.concat();
        all.truncate(most);
        all
    })
}

proptest! {
    /// Whatever the options are: only fields of SCONE and Quick-Start change, they never rise, and checksums
    /// stay right.
    #[test]
    fn only_the_fields_change(
        v6: bool, network in any_options(24), transport in any_options(28), hop in any_options(22),
        flags in prop_oneof![Just(Flags::SYN), Just(Flags::ACK), Just(Flags(0x1a))], len in 0usize..40,
    ) {
        let mut header = [&[6, 0][..], &hop].concat();
        header.resize(header.len().next_multiple_of(8), 0);
        header[1] = (header.len() / 8 - 1) as u8;
        let payload = vec![5; len];
        let room = if flags.has(Flags::SYN) { 24 } else { 28 };
        let transport = &transport[..transport.len().min(room)];
        let came = summed(packet(v6, flags, &payload, if v6 { &header } else { &network }, transport));
        let mut stage = Stage::new(true);
        let (left, _) = stage.pass(&came, &VnetHeader::default());
        prop_assert_eq!(left.len(), came.len());
        let seen = stage.last();
        if seen.signal.is_none() {
            prop_assert_eq!(&left, &came);
            return Ok(());
        }
        prop_assert!(has_good_checksums(&left));
        let again = { stage.pass(&left, &VnetHeader::default()); stage.last() };
        prop_assert!(of(&again).map(Advised::advice) <= of(&seen).map(Advised::advice));
        prop_assert!(of_ip(&again).map(Fields::rate) <= of_ip(&seen).map(Fields::rate));
        prop_assert_eq!(of_tcp(&again), of_tcp(&seen));
        // two bytes of advice, six of a request, and two checksums
        let changed = left.iter().zip(&came).filter(|(a, b)| a != b).count();
        prop_assert!(changed <= 1 + 6 + 4, "{}", changed);
        let layout = Layout::of(&came).unwrap();
        prop_assert_eq!(&left[layout.payload.clone()], &came[layout.payload]);
    }
}
