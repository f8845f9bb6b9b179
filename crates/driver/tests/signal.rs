//! Rate signalling in real packets: what is read is written again, in every form in which a node may send it.

#![allow(clippy::unwrap_used, reason = "a test")]

use bentpipe_advice::tia1039::{self, Kind, QOS_FLOW, QOS_SIGNAL, Structure, structures, write};
use bentpipe_base::{
    Cx, Dscp, Ecn, Flags, Input, IpVersion, Node, Packet, Port, Proto, Rate, Seq, Signal, Size, TcpHeader,
    Timestamps,
};
use bentpipe_driver::{
    Content, HEADER_SPACE, LiveNetwork, Parsed, StoredUnit, Unit, UnreadReason, emit, parse,
};
use bentpipe_network::Network;
use bentpipe_wire::offload::{VnetHeader, complete};
use bentpipe_wire::{
    AddressPair, Ipv4, Layout, OptionKind, Segment, Sum, add_hop_by_hop, hop_by_hop, pseudo_header,
};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// How the checksum of a unit stands.
#[derive(Clone, Copy, Debug)]
enum Checksum {
    Full,
    Partial,
}

/// A unit of a port: bytes, virtio header, and length of the link-layer header.
#[derive(Clone, Debug)]
struct Source {
    bytes: Vec<u8>,
    vnet: VnetHeader,
    link: usize,
}

fn structure(bps: u64, kind: Kind) -> Structure {
    let mut structure = Structure::request(Rate::from_bps(bps).unwrap());
    structure.set_kind(kind);
    structure
}

fn header(flags: Flags) -> TcpHeader {
    let timestamps = Some(Timestamps { value: 7, echo: 8 });
    TcpHeader { seq: Seq(1), ack: Seq(2), window: 3, flags, timestamps, ..TcpHeader::default() }
}

fn ends(v6: bool) -> AddressPair {
    if v6 {
        AddressPair::V6 { src: 1u128.into(), dst: 2u128.into() }
    } else {
        AddressPair::V4 { src: [10, 0, 0, 1].into(), dst: [10, 0, 0, 2].into() }
    }
}

/// A packet with `payload`, in IPv6 behind the header `hop`.
fn source(v6: bool, dscp: Dscp, flags: Flags, payload: &[u8], hop: &[u8], checksum: Checksum) -> Source {
    let (ends, tcp) = (ends(v6), header(flags));
    let segment = Segment { ends, sport: 5, dport: 6, hops: 60, dscp, ecn: Ecn::Ect0, tcp, payload };
    let mut ip = Vec::new();
    bentpipe_wire::emit(&segment, &mut ip).unwrap();
    if v6 && !hop.is_empty() {
        add_hop_by_hop(hop, &mut ip).unwrap();
    }
    let mut bytes = vec![2; 12];
    bytes.extend(if v6 { [0x86, 0xdd] } else { [8, 0] });
    let (link, transport) = (bytes.len(), Layout::of(&ip).unwrap().network.transport);
    let mut vnet = VnetHeader::default();
    if matches!(checksum, Checksum::Partial) {
        let sum = pseudo_header(&ends, 6, ip.len() - transport).fold();
        ip[transport + 16..transport + 18].copy_from_slice(&sum.to_be_bytes());
        vnet.flags = VnetHeader::NEEDS_CSUM;
        (vnet.csum_start, vnet.csum_offset) = ((link + transport) as u16, 16);
    }
    bytes.extend(ip);
    Source { bytes, vnet, link }
}

fn read(source: &Source) -> Parsed {
    let mut parsed = parse(&source.bytes, &source.vnet, Unit::Frame).unwrap();
    parsed.take_signal(&source.bytes);
    parsed
}

/// The packet as it leaves, with its checksums completed and checked.
fn sent(source: &Source, parsed: &Parsed, packet: &Packet) -> Source {
    let content = Content::Tcp(parsed.packet.clone(), parsed.shape);
    let held = StoredUnit { bytes: &source.bytes, vnet: &source.vnet, content: &content };
    let mut header = [0; HEADER_SPACE];
    let out = emit(&held, packet, &mut header);
    let mut bytes = [&header[..out.header_len], &source.bytes[out.payload.clone()], out.tail()].concat();
    complete(&mut bytes, &out.vnet);
    let ip = &bytes[source.link..];
    let layout = Layout::of(ip).unwrap();
    assert_eq!((layout.sum(ip).fold(), layout.network.end), (0xffff, ip.len()), "checksum and length");
    if ip[0] >> 4 == 4 {
        assert!(Ipv4::new(ip).unwrap().checksum_holds());
    }
    Source { vnet: VnetHeader::default(), bytes, link: source.link }
}

fn payload_of(source: &Source) -> Vec<u8> {
    let ip = &source.bytes[source.link..];
    ip[Layout::of(ip).unwrap().payload].to_vec()
}

fn bytes(packet: &Packet) -> &[u8] {
    packet.signal.as_deref().map_or(&[], Signal::bytes)
}

/// Data, and a structure as the packet carries it.
fn with_structure(v6: bool, data: &[u8], one: Structure, checksum: Checksum) -> Source {
    let mut carrier = Packet { ip: if v6 { IpVersion::V6 } else { IpVersion::V4 }, ..Packet::default() };
    write(&mut carrier, &[one]);
    let end = if v6 { &[][..] } else { bytes(&carrier) };
    source(v6, QOS_SIGNAL, Flags::ACK, &[data, end].concat(), bytes(&carrier), checksum)
}

fn any_structure() -> impl Strategy<Value = Structure> {
    (any::<[u8; 16]>(), 0u8..8, 0u8..4, 1u64..4_000_000_000).prop_map(|(random, kind, of, kbps)| {
        let mut bytes = random;
        bytes[8] &= !3;
        bytes[9] &= !3;
        bytes[10] = kind << 4 | of;
        bytes[11] &= 0x1f;
        (bytes[12], bytes[13]) = (0, 0x10 | random[13] & 1);
        for at in [4, 6] {
            bytes[at] &= 0x7f;
        }
        let mut structure = Structure::from_bytes(bytes);
        structure.set_available(Rate::from_bps(kbps * 1000));
        structure
    })
}

fn any_checksum() -> impl Strategy<Value = Checksum> {
    prop_oneof![Just(Checksum::Full), Just(Checksum::Partial)]
}

proptest! {
    /// What is read is written again: unchanged byte for byte; changed, added or removed as the node says.
    #[test]
    fn what_a_node_sends_is_what_it_said(
        v6: bool, len in 0usize..1200, old in any_structure(), new in any_structure(), has: bool,
        says: bool, window: u16, checksum in any_checksum(),
    ) {
        let all = [new];
        let data: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        let source = if has {
            with_structure(v6, &data, old, checksum)
        } else {
            source(v6, QOS_FLOW, Flags::ACK, &data, &[], checksum)
        };
        let parsed = read(&source);
        let packet = &parsed.packet;
        prop_assert_eq!((packet.body.len as usize, packet.signal.is_some()), (len, has));
        prop_assert_eq!(packet.wire_len().0 as usize, source.bytes.len() - source.link);
        let read_back = structures(packet);
        prop_assert_eq!(read_back.as_slice().len(), usize::from(has));
        let whole = sent(&source, &parsed, packet);
        if matches!(checksum, Checksum::Full) {
            prop_assert_eq!(&whole.bytes, &source.bytes);
        }
        let mut changed = packet.clone();
        changed.tcp.window = window;
        write(&mut changed, if says { &all } else { &[] });
        let now = sent(&source, &parsed, &changed);
        let again = read(&now);
        prop_assert_eq!(bytes(&again.packet), bytes(&changed));
        prop_assert_eq!((again.packet.body.len as usize, again.packet.tcp), (len, changed.tcp));
        prop_assert_eq!(again.packet.dscp, changed.dscp);
        prop_assert_eq!(&payload_of(&now)[..len], &data[..]);
    }

    /// Whatever comes: no panic, nothing is lost, and an unchanged packet stays as it was.
    #[test]
    fn any_bytes_leave_as_they_came(
        v6: bool, payload in proptest::collection::vec(any::<u8>(), 0..80), flags: u8, dscp in 0u8..8,
        hop in proptest::collection::vec(any::<u8>(), 0..72), framed: bool, one in any_structure(),
    ) {
        let mut hop = hop;
        hop.resize(hop.len() / 8 * 8, 0);
        if framed && hop.len() >= 16 {
            (hop[2], hop[3]) = (0x3e, 12);
        }
        if let Some(units) = (hop.len() / 8).checked_sub(1) {
            hop[1] = units as u8;
        }
        let payload = if framed { [&payload[..], one.bytes()].concat() } else { payload };
        let source = source(v6, Dscp::new(dscp).unwrap(), Flags(flags), &payload, &hop, Checksum::Full);
        let parsed = read(&source);
        let same = sent(&source, &parsed, &parsed.packet);
        prop_assert_eq!(&same.bytes, &source.bytes);
        let mut changed = parsed.packet.clone();
        changed.tcp.window ^= 1;
        let now = sent(&source, &parsed, &changed);
        prop_assert_eq!(payload_of(&now), payload_of(&source));
        prop_assert_eq!(now.bytes.len(), source.bytes.len());
        write(&mut changed, &[one]);
        sent(&source, &parsed, &changed);
    }
}

/// The rules of the handshake, of signed packets, of fast open, and of the code point.
#[test]
fn only_what_is_surely_a_structure_leaves_the_body() {
    let one = *structure(64_000, Kind::Request).bytes();
    let two = [one, one].concat();
    let has = |dscp, flags, payload: &[u8]| {
        let parsed = read(&source(false, dscp, flags, payload, &[], Checksum::Full));
        (bytes(&parsed.packet).len(), parsed.packet.body.len)
    };
    let data = [&[9; 100][..], &one].concat();
    assert_eq!(has(QOS_SIGNAL, Flags::SYN, &one), (16, 0));
    assert_eq!(has(QOS_SIGNAL, Flags::SYN.with(Flags::ACK), &two), (32, 0));
    assert_eq!(has(QOS_SIGNAL, Flags::SYN, &data), (0, 116), "data with a SYN");
    assert_eq!(has(QOS_SIGNAL, Flags::ACK, &one), (16, 0));
    assert_eq!(has(QOS_SIGNAL, Flags::ACK, &data), (16, 100));
    assert_eq!(has(QOS_SIGNAL, Flags::ACK, &two), (16, 16));
    assert_eq!(has(QOS_SIGNAL, Flags::ACK, &data[..115]), (0, 115));
    for dscp in [QOS_FLOW, Dscp::DEFAULT] {
        assert_eq!(has(dscp, Flags::ACK, &data), (0, 116));
        assert_eq!(has(dscp, Flags::SYN, &one), (0, 16));
    }
}

/// Options behind the timestamps: a signature covers the payload, and data follow a fast-open SYN.
#[test]
fn signed_packets_and_fast_open_keep_their_payload() {
    let one = *structure(64_000, Kind::Request).bytes();
    let fast_open = OptionKind(34);
    for (option, len, flags, stays) in [
        (OptionKind(19), 18, Flags::ACK, true),
        (OptionKind(29), 16, Flags::ACK, true),
        (fast_open, 10, Flags::SYN, true),
        (fast_open, 10, Flags::ACK, false),
        (OptionKind(222), 4, Flags::ACK, false),
    ] {
        let mut source = source(false, QOS_SIGNAL, flags, &one, &[], Checksum::Full);
        let room = usize::from(len).next_multiple_of(4);
        let mut bytes = vec![1; room - usize::from(len)];
        bytes.extend([option.0, len]);
        bytes.resize(room, 0);
        let ip = source.link;
        let at = ip + 20 + 32;
        source.bytes.splice(at..at, bytes);
        source.bytes[ip + 32] += (room as u8 / 4) << 4;
        let total = (source.bytes.len() - ip) as u16;
        source.bytes[ip + 2..ip + 4].copy_from_slice(&total.to_be_bytes());
        for (field, from, to) in [(ip + 10, ip, ip + 20), (ip + 36, ip + 20, source.bytes.len())] {
            source.bytes[field..field + 2].fill(0);
            let mut sum = Sum::of(&source.bytes[from..to]);
            if to > ip + 20 {
                sum = Sum::ZERO.word(sum.fold()).word(pseudo_header(&ends(false), 6, to - from).fold());
            }
            source.bytes[field..field + 2].copy_from_slice(&sum.finish().to_be_bytes());
        }
        let parsed = read(&source);
        assert_eq!(parsed.packet.signal.is_none(), stays, "{option:?}");
        assert_eq!(parsed.packet.body.len, if stays { 16 } else { 0 });
    }
}

/// Notes what it gets, and passes it on.
#[derive(Debug)]
struct Passes(bool, Rc<RefCell<Vec<Packet>>>);

impl Node for Passes {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        if let Input::Packet(port, packet) = input {
            self.1.borrow_mut().push((*packet).clone());
            cx.send(Port(1 - port.0), packet);
        }
    }
    fn reads_signalling(&self) -> bool {
        self.0
    }
}

/// Where no node reads structures, what opens a connection that signals passes unread, so a gateway lets the
/// whole connection pass. Nothing is taken from a body.
#[test]
fn without_a_node_that_reads_structures_nothing_is_stripped() {
    let one = *structure(64_000, Kind::Request).bytes();
    for reads in [false, true] {
        let seen = Rc::default();
        let node = Passes(reads, Rc::clone(&seen));
        let add = |network: &mut Network| vec![network.add(Box::new(node))];
        let mut net = LiveNetwork::chain(add, 1, Unit::Frame, Size(1 << 20));
        for flags in [Flags::SYN, Flags::SYN.with(Flags::ACK), Flags::ACK] {
            let source = source(false, QOS_SIGNAL, flags, &one, &[], Checksum::Full);
            assert!(net.store.borrow_mut().write(&source.bytes));
            assert!(net.accept(0, source.bytes.len(), &source.vnet));
            let arrival = net.take_arrival().unwrap();
            let sent = net.emit(&arrival, |out, header, bytes| [header, bytes, out.tail()].concat());
            net.done(arrival);
            assert_eq!(sent, source.bytes);
        }
        let seen: Vec<_> =
            seen.borrow().iter().map(|p: &Packet| (p.proto, p.body.len, p.signal.is_some())).collect();
        let passes = (Proto::Opaque, 68, false);
        let expected =
            if reads { [(Proto::Tcp, 0, true); 3] } else { [passes, passes, (Proto::Tcp, 16, false)] };
        assert_eq!(seen, expected);
        let unread = net.counters.other[UnreadReason::Signalling as usize];
        assert_eq!(unread, if reads { 0 } else { 2 });
    }
}

/// Notes the ends that it sees.
#[derive(Debug)]
struct SeesEnds(Passes);

impl Node for SeesEnds {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        self.0.handle(cx, input);
    }
    fn reads_signalling(&self) -> bool {
        self.0.reads_signalling()
    }
    fn reads_all_ends(&self) -> bool {
        true
    }
}

/// Beside a host that knows of no structures each end counts, also within a super-packet, whatever the DSCP.
#[test]
fn a_node_that_asks_for_it_sees_all_ends() {
    let one = *structure(64_000, Kind::Renegotiate).bytes();
    let piece = [&[7; 84][..], &one].concat();
    for joined in [false, true] {
        let seen = Rc::default();
        let node = SeesEnds(Passes(true, Rc::clone(&seen)));
        let add = |network: &mut Network| vec![network.add(Box::new(node))];
        let mut net = LiveNetwork::chain(add, 1, Unit::Frame, Size(1 << 20));
        let payload = if joined { [&[9; 100][..], &piece, &[8; 50]].concat() } else { piece.clone() };
        let mut source = source(false, Dscp::DEFAULT, Flags::ACK, &payload, &[], Checksum::Partial);
        if joined {
            (source.vnet.gso_type, source.vnet.gso_size) = (VnetHeader::GSO_TCPV4, 100);
            source.vnet.hdr_len = (source.bytes.len() - payload.len()) as u16;
        }
        assert!(net.store.borrow_mut().write(&source.bytes));
        assert!(net.accept(0, source.bytes.len(), &source.vnet));
        let mut sent = Vec::new();
        while let Some(arrival) = net.take_arrival() {
            sent.push(net.emit(&arrival, |out, header, bytes| [header, bytes, out.tail()].concat()));
            net.done(arrival);
        }
        let lens: Vec<_> = seen.borrow().iter().map(|p: &Packet| (p.body.len, p.signal.is_some())).collect();
        assert_eq!(lens, if joined { vec![(100, false), (84, true), (50, false)] } else { vec![(84, true)] });
        let data: Vec<u8> = sent.iter().flat_map(|bytes| bytes[14 + 52..].to_vec()).collect();
        assert_eq!(data, payload, "what is not changed leaves as it came");
    }
}

/// Other options beside the structure stay; a header without a structure is not ours, and none is put beside
/// it.
#[test]
fn a_foreign_hop_by_hop_header_stays() {
    let alert = [6, 0, 5, 2, 0, 0, 1, 0];
    let source = source(true, QOS_FLOW, Flags::ACK, &[7; 50], &alert, Checksum::Full);
    let parsed = read(&source);
    assert!(parsed.packet.signal.is_none());
    let mut changed = parsed.packet.clone();
    write(&mut changed, &[structure(1000, Kind::Request)]);
    let now = sent(&source, &parsed, &changed);
    assert_eq!(now.bytes, source.bytes, "there is no room for it");
    let mut both = vec![6, 2, 5, 2, 0, 0, 1, 0];
    both.extend([0x20, 12]);
    both.extend(&structure(2000, Kind::Forward).bytes()[4..]);
    both.extend([1, 0]);
    let source = self::source(true, QOS_FLOW, Flags::ACK, &[7; 50], &both, Checksum::Partial);
    let parsed = read(&source);
    let mut lower = structures(&parsed.packet).as_slice()[0];
    lower.set_kind(Kind::Renegotiate);
    let mut changed = parsed.packet.clone();
    tia1039::replace(&mut changed, 0, &lower);
    let now = sent(&source, &parsed, &changed);
    let header = hop_by_hop(&now.bytes[now.link..]).unwrap();
    assert_eq!((&header[..10], header[16]), (&both[..10], 0x50));
    assert_eq!(payload_of(&now), [7; 50]);
}
