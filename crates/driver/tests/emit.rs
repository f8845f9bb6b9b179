//! Whatever a node does to a packet, a strict receiver accepts the result, and unknown options are kept.

#![allow(clippy::unwrap_used, reason = "a test")]

use bentpipe_base::{Dscp, Ecn, Flags, OtherOptions, Packet, SackList, Seq, TcpHeader, Timestamps};
use bentpipe_driver::{Content, HEADER_SPACE, Parsed, StoredUnit, Unit, UnreadReason, emit, parse};
use bentpipe_wire::offload::{self, SuperPacket, VnetHeader, complete};
use bentpipe_wire::{AddressPair, Ipv4, Layout, OptionKind, Segment, pseudo_header, read_tcp};
use proptest::prelude::*;

/// The link-layer header, and how the kernel hands the packet over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    Ethernet,
    Tagged,
    Session,
}

#[derive(Clone, Copy, Debug)]
enum Offload {
    Full,
    Verified,
    Partial,
    Super(u16),
}

/// A packet as a port may read it.
#[derive(Clone, Debug)]
struct Source {
    bytes: Vec<u8>,
    vnet: VnetHeader,
    unit: Unit,
    link: usize,
    foreign: Option<(OptionKind, Vec<u8>)>,
}

const FOREIGN: OptionKind = OptionKind(222);

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn ends() -> impl Strategy<Value = AddressPair> {
    prop_oneof![
        any::<([u8; 4], [u8; 4])>()
            .prop_map(|(src, dst)| AddressPair::V4 { src: src.into(), dst: dst.into() }),
        any::<([u8; 16], [u8; 16])>()
            .prop_map(|(src, dst)| AddressPair::V6 { src: src.into(), dst: dst.into() }),
    ]
}

fn sack() -> impl Strategy<Value = SackList> {
    proptest::collection::vec(any::<(u32, u32)>(), 0..4).prop_map(|blocks| {
        let mut list = SackList::default();
        for (left, right) in blocks {
            list.push(Seq(left), Seq(right));
        }
        list
    })
}

fn header() -> impl Strategy<Value = TcpHeader> {
    let numbers = any::<(u32, u32, u16, u8)>();
    let syn_only = any::<(Option<u16>, Option<u8>, bool)>();
    (numbers, syn_only, any::<Option<(u32, u32)>>(), sack()).prop_map(|(n, on_syn, stamps, sack)| {
        let (mss, window_scale, sack_permitted) = if n.3 & 2 == 2 { on_syn } else { (None, None, false) };
        let timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
        let (seq, ack, window, flags) = (Seq(n.0), Seq(n.1), n.2, Flags(n.3));
        TcpHeader {
            seq,
            ack,
            window,
            flags,
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            sack,
            ..TcpHeader::default()
        }
    })
}

fn offload() -> impl Strategy<Value = Offload> {
    prop_oneof![
        Just(Offload::Full),
        Just(Offload::Verified),
        Just(Offload::Partial),
        (1u16..1500).prop_map(Offload::Super),
    ]
}

fn before() -> impl Strategy<Value = Before> {
    prop_oneof![Just(Before::Nothing), Just(Before::Ethernet), Just(Before::Tagged), Just(Before::Session)]
}

/// Adds an option, padded to whole words; `None` if it does not fit. Does not update checksums.
fn insert(packet: &mut Vec<u8>, kind: OptionKind, value: &[u8]) -> Option<()> {
    let Layout { network, options, .. } = Layout::of(packet).ok()?;
    let len = 2 + value.len();
    let more = len.next_multiple_of(4);
    (options.len() + more <= 40).then_some(())?;
    let option = [&[OptionKind::NOP.0; 3][..more - len], &[kind.0, len as u8], value].concat();
    packet.splice(options.end..options.end, option);
    packet[network.transport + 12] += (more as u8 / 4) << 4;
    let at = if matches!(network.ends, AddressPair::V4 { .. }) { 2 } else { 4 };
    let long = u16::from_be_bytes([packet[at], packet[at + 1]]).checked_add(more as u16)?;
    packet[at..at + 2].copy_from_slice(&long.to_be_bytes());
    Some(())
}

/// A random packet; `None` if its options do not fit.
fn build(
    (ends, tcp): (AddressPair, TcpHeader),
    len: usize,
    offload: Offload,
    before: Before,
    foreign: Option<(OptionKind, Vec<u8>)>,
    (urgent, id): (u16, u16),
) -> Option<Source> {
    let data = payload(len);
    let segment = Segment {
        ends,
        sport: 4000,
        dport: 80,
        hops: 61,
        dscp: Dscp::default(),
        ecn: Ecn::Ect0,
        tcp,
        payload: &data,
    };
    let mut packet = Vec::new();
    bentpipe_wire::emit(&segment, &mut packet).ok()?;
    if let Some((kind, value)) = &foreign {
        insert(&mut packet, *kind, value)?;
    }
    if matches!(ends, AddressPair::V4 { .. }) {
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        packet[10..12].fill(0);
        let sum = bentpipe_wire::Sum::of(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let layout = Layout::of(&packet).unwrap();
    let transport = layout.network.transport;
    let sum_at = transport + 16;
    packet[transport + 18..transport + 20].copy_from_slice(&urgent.to_be_bytes());
    packet[sum_at..sum_at + 2].fill(0);
    let sum = match offload {
        Offload::Partial | Offload::Super(_) => pseudo_header(&ends, 6, packet.len() - transport).fold(),
        Offload::Full | Offload::Verified => layout.sum(&packet).finish(),
    };
    packet[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
    let v6 = matches!(ends, AddressPair::V6 { .. });
    let mut bytes = vec![2; 12];
    bytes.extend(match (before, v6) {
        (Before::Nothing, _) => vec![],
        (Before::Ethernet, false) => vec![8, 0],
        (Before::Ethernet, true) => vec![0x86, 0xdd],
        (Before::Tagged, false) => vec![0x88, 0xa8, 0, 9, 0x81, 0, 0, 5, 8, 0],
        (Before::Tagged, true) => vec![0x81, 0, 0, 5, 0x86, 0xdd],
        (Before::Session, _) => {
            let mut session = vec![0x88, 0x64, 0x11, 0, 0, 7];
            session.extend((packet.len() as u16 + 2).to_be_bytes());
            session.extend([0, if v6 { 0x57 } else { 0x21 }]);
            session
        }
    });
    if before == Before::Nothing {
        bytes.clear();
    }
    let link = bytes.len();
    bytes.extend(packet);
    let mut vnet = VnetHeader::default();
    match offload {
        Offload::Full => {}
        Offload::Verified => vnet.flags = VnetHeader::DATA_VALID,
        Offload::Partial | Offload::Super(_) => {
            vnet.flags = VnetHeader::NEEDS_CSUM;
            (vnet.csum_start, vnet.csum_offset) = ((link + transport) as u16, 16);
        }
    }
    if let Offload::Super(size) = offload {
        vnet.gso_type = if v6 { VnetHeader::GSO_TCPV6 } else { VnetHeader::GSO_TCPV4 };
        (vnet.gso_size, vnet.hdr_len) = (size, (link + layout.payload.start) as u16);
    }
    let unit = if before == Before::Nothing { Unit::Packet } else { Unit::Frame };
    Some(Source { bytes, vnet, unit, link, foreign })
}

fn source() -> impl Strategy<Value = Option<Source>> {
    let foreign = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9));
    (ends(), header(), 0usize..9000, offload(), before(), foreign, any::<(u16, u16)>()).prop_map(
        |(ends, tcp, len, offload, before, foreign, ids)| {
            let is_super = matches!(offload, Offload::Super(_));
            // the kernel sends no super-packets in a PPPoE session
            let before = if is_super && before == Before::Session { Before::Tagged } else { before };
            build((ends, tcp), len, offload, before, foreign.map(|value| (FOREIGN, value)), ids)
        },
    )
}

/// The packet as it leaves: its bytes in one piece, and the virtio header.
fn sent(source: &Source, parsed: &Parsed, packet: &Packet) -> (Vec<u8>, VnetHeader, bool) {
    let content = Content::Tcp(parsed.packet.clone(), parsed.shape);
    let held = StoredUnit { bytes: &source.bytes, vnet: &source.vnet, content: &content };
    let mut header = [0; HEADER_SPACE];
    let out = emit(&held, packet, &mut header);
    ([&header[..out.header_len], &source.bytes[out.payload]].concat(), out.vnet, out.is_short)
}

/// Cuts a unit into wire packets with complete checksums, as the kernel does, and checks each.
fn wire_packets(bytes: &[u8], vnet: &VnetHeader, link: usize) -> Vec<Vec<u8>> {
    let (ip, vnet) = (&bytes[link..], vnet.without_prefix(link as u16));
    let all = SuperPacket::parse(ip, &vnet).unwrap();
    let mut headers = [0; offload::HEADER_SPACE];
    let end = all.piece(ip, all.pieces() - 1..all.pieces(), &mut headers).payload.end;
    assert_eq!(end, ip.len(), "lengths fit");
    (0..all.pieces())
        .map(|i| {
            let piece = all.piece(ip, i..i + 1, &mut headers);
            let mut packet = [&headers[..piece.header_len], &ip[piece.payload.clone()]].concat();
            complete(&mut packet, &piece.vnet);
            let layout = Layout::of(&packet).unwrap();
            assert_eq!(layout.sum(&packet).fold(), 0xffff, "the TCP checksum holds");
            if matches!(layout.network.ends, AddressPair::V4 { .. }) {
                assert!(Ipv4::new(&packet[..]).unwrap().checksum_holds(), "the IP checksum holds");
            }
            packet
        })
        .collect()
}

/// Changes that a gateway may make: new values, and options added or removed within the space.
fn change(was: &Packet, wish: &TcpHeader, keep: u8, class: (Dscp, Ecn, u8)) -> Packet {
    let mut now = was.clone();
    let tcp = &mut now.tcp;
    let keeps = |bit: u8| keep & 1 << bit != 0;
    if !keeps(0) {
        (tcp.seq, tcp.ack) = (wish.seq, wish.ack);
    }
    if !keeps(1) {
        tcp.window = wish.window;
    }
    if !keeps(2) && tcp.timestamps.is_some() {
        tcp.timestamps = wish.timestamps;
    }
    if !keeps(3) {
        tcp.sack = wish.sack.clone();
    }
    if !keeps(4) && tcp.flags.has(Flags::SYN) {
        tcp.window_scale = wish.window_scale;
    }
    if !keeps(5) {
        (now.dscp, now.ecn, now.hops) = class;
    }
    if usize::from(now.tcp.wire_len()) - 20 + usize::from(was.other_options.len) > 40 {
        now.tcp = was.tcp.clone();
    }
    now.header_len = now.header_len - was.tcp.wire_len() + now.tcp.wire_len();
    now
}

/// PROPTEST_CASES raises the number of cases, as for fuzzing.
fn soak() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: config.cases.max(1500), failure_persistence: None, ..config }
}

proptest! {
    #![proptest_config(soak())]

    #[test]
    fn what_leaves_is_the_packet_and_is_accepted(
        source in source(), wish in header(), keep: u8, class in (0u8..64, any::<u8>()), cut in (0usize..9000, 0usize..9000),
    ) {
        let Some(source) = source else { return Ok(()) };
        let parsed = parse(&source.bytes, &source.vnet, source.unit).unwrap();
        let ecn = bentpipe_wire::ecn(class.1);
        let mut now = change(&parsed.packet, &wish, keep, (Dscp::new(class.0).unwrap(), ecn, class.1));
        let len = parsed.packet.body.len as usize;
        let (a, b) = (cut.0.min(len), cut.1.min(len));
        let (from, to) = if keep & 64 == 0 { (a.min(b), a.max(b)) } else { (0, len) };
        now.body.off += from as u64;
        now.body.len = (to - from) as u32;
        let (bytes, vnet, is_short) = sent(&source, &parsed, &now);
        prop_assert!(!is_short);
        // parsed again it is the same packet
        let again = parse(&bytes, &vnet, source.unit).unwrap();
        let mut expected = now.clone();
        expected.body.off = 0;
        if to < len {
            expected.tcp.flags.0 &= !(Flags::FIN.0 | Flags::PSH.0);
        }
        if from > 0 {
            expected.tcp.flags.0 &= !Flags::CWR.0;
        }
        expected.tcp.flags.0 &= again.packet.tcp.flags.0 | !Flags::URG.0;
        if to - from <= usize::from(now.segment) {
            expected.segment = 0;
        }
        // removing an option without padding of its own may leave the header longer than expected
        prop_assert!(again.packet.header_len >= expected.header_len);
        expected.header_len = again.packet.header_len;
        prop_assert_eq!(&again.packet, &expected);
        prop_assert_eq!(again.ends, parsed.ends);
        // every wire packet is valid
        let mut stream = Vec::new();
        for packet in wire_packets(&bytes, &vnet, source.link) {
            let layout = Layout::of(&packet).unwrap();
            let (_, _, tcp) = read_tcp(&packet, &layout).unwrap();
            prop_assert_eq!(tcp.seq, now.tcp.seq.at(stream.len() as u64));
            prop_assert_eq!((tcp.ack, tcp.window, &tcp.sack), (now.tcp.ack, now.tcp.window, &now.tcp.sack));
            if let Some((_, value)) = &source.foreign {
                let options = bentpipe_wire::Options::new(&packet[layout.options.clone()]);
                let found = options.filter_map(Result::ok).find(|o| o.kind() == FOREIGN);
                prop_assert_eq!(found.map(|o| o.value().to_vec()), Some(value.clone()));
            }
            stream.extend_from_slice(&packet[layout.payload]);
        }
        prop_assert_eq!(stream, &payload(len)[from..to]);
        // the link-layer header is unchanged, except for PPPoE's length
        let mut front = source.bytes[..source.link].to_vec();
        if source.link == 22 && front[12] == 0x88 && front[13] == 0x64 {
            let ip_len = (bytes.len() - source.link) as u16;
            front[18..20].copy_from_slice(&(ip_len + 2).to_be_bytes());
        }
        prop_assert_eq!(&bytes[..source.link], &front[..]);
    }

    #[test]
    fn an_untouched_packet_leaves_as_it_came(source in source(), padding in 0usize..9) {
        let Some(mut source) = source else { return Ok(()) };
        let before = source.bytes.len();
        source.bytes.resize(before + padding, 0xee); // a short frame is padded
        let parsed = parse(&source.bytes, &source.vnet, source.unit).unwrap();
        let (bytes, vnet, _) = sent(&source, &parsed, &parsed.packet);
        prop_assert_eq!((bytes, vnet), (source.bytes, source.vnet));
    }

    /// Damaged bytes: nothing panics, and packets that are parsed as TCP are valid when they leave.
    #[test]
    fn no_bytes_make_it_panic(
        source in source(), wounds in proptest::collection::vec((0usize..140, any::<u8>()), 0..6),
        note in proptest::option::of(any::<(u8, u8, u16, u16, u16)>()), end in 0usize..9000, wish in header(), keep: u8,
    ) {
        let Some(mut source) = source else { return Ok(()) };
        for (at, byte) in wounds {
            let at = at % source.bytes.len();
            source.bytes[at] ^= byte;
        }
        source.bytes.truncate(end.max(1));
        if let Some((flags, gso_type, gso_size, csum_start, csum_offset)) = note {
            source.vnet = VnetHeader { flags, gso_type, hdr_len: 9, gso_size, csum_start, csum_offset };
        }
        let Ok(parsed) = parse(&source.bytes, &source.vnet, source.unit) else { return Ok(()) };
        let mut now = change(&parsed.packet, &wish, keep, (Dscp::default(), Ecn::Ce, 1));
        let half = now.body.len / 2;
        now.body.off += u64::from(half);
        now.body.len -= half;
        let (bytes, vnet, _) = sent(&source, &parsed, &now);
        // a partial checksum is whatever the sender wrote, and DATA_VALID means the kernel vouches for it
        if source.vnet == VnetHeader::default() && now != parsed.packet {
            wire_packets(&bytes, &vnet, parsed.shape.ip());
        }
    }
}

fn plain(tcp: TcpHeader, len: usize, offload: Offload, urgent: u16) -> Source {
    let ends = AddressPair::V4 { src: [192, 0, 2, 1].into(), dst: [198, 51, 100, 2].into() };
    build((ends, tcp), len, offload, Before::Nothing, None, (urgent, 100)).unwrap()
}

#[test]
fn what_is_not_whole_and_sound_tcp_passes_unread() {
    let good = plain(TcpHeader::default(), 100, Offload::Full, 0);
    let why = |wound: fn(&mut Source)| {
        let mut bad = good.clone();
        wound(&mut bad);
        parse(&bad.bytes, &bad.vnet, bad.unit).map(|p| p.packet.body.len).unwrap_err()
    };
    let fixed = |s: &mut Source| {
        s.bytes[10..12].fill(0);
        let len = usize::from(s.bytes[0] & 15) * 4;
        let sum = bentpipe_wire::Sum::of(&s.bytes[..len]).finish();
        s.bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    };
    assert_eq!(why(|s| s.bytes[90] ^= 1), UnreadReason::Checksum);
    assert_eq!(why(|s| s.bytes[8] ^= 1), UnreadReason::Checksum);
    assert_eq!(why(|s| s.bytes[9] = 17), UnreadReason::Protocol);
    assert_eq!(why(|s| s.bytes[6] = 0x20), UnreadReason::Fragment);
    assert_eq!(why(|s| s.bytes[0] = 0x55), UnreadReason::NotIp);
    assert_eq!(why(|s| s.bytes[32] = 0x40), UnreadReason::Malformed);
    assert_eq!(why(|s| s.bytes.truncate(100)), UnreadReason::Malformed);
    assert_eq!(why(|s| s.vnet.gso_type = VnetHeader::GSO_UDP_L4), UnreadReason::Offload);
    assert_eq!(why(|s| (s.vnet.flags, s.vnet.csum_start) = (1, 24)), UnreadReason::Offload);
    // a super-packet whose checksum was not verified
    assert_eq!(why(|s| (s.vnet.gso_type, s.vnet.gso_size) = (1, 50)), UnreadReason::Offload);
    // a source route: the checksum covers another destination
    let mut routed = good.clone();
    routed.bytes.splice(20..20, [131, 7, 4, 10, 0, 0, 1, 0]);
    (routed.bytes[0], routed.bytes[3]) = (0x47, routed.bytes[3] + 8);
    fixed(&mut routed);
    assert_eq!(parse(&routed.bytes, &routed.vnet, routed.unit).map(|_| ()), Err(UnreadReason::Header));
    routed.bytes[20] = 148; // router alert is kept
    routed.bytes[21] = 4;
    routed.bytes[24] = 0;
    fixed(&mut routed);
    assert_eq!(parse(&routed.bytes, &routed.vnet, routed.unit).map(|p| p.packet.header_len), Ok(48));
}

#[test]
fn options_are_told_by_kind() {
    let told = |kind: u8, value: &[u8]| {
        let ends = AddressPair::V4 { src: [192, 0, 2, 1].into(), dst: [198, 51, 100, 2].into() };
        let (foreign, tcp) = (Some((OptionKind(kind), value.to_vec())), TcpHeader::default());
        let source = build((ends, tcp), 10, Offload::Full, Before::Nothing, foreign, (0, 100)).unwrap();
        let foreign = parse(&source.bytes, &source.vnet, source.unit).unwrap().packet.other_options;
        (foreign.kinds, foreign.len)
    };
    assert_eq!(told(19, &[0; 16]), (OtherOptions::SIGNED, 20));
    assert_eq!(told(29, &[0; 14]), (OtherOptions::SIGNED, 16));
    assert_eq!(told(30, &[0; 10]), (OtherOptions::MULTIPATH, 12));
    assert_eq!(told(34, &[1; 8]), (OtherOptions::FAST_OPEN, 12));
    assert_eq!(told(254, &[0xf9, 0x89, 1, 2]), (OtherOptions::FAST_OPEN, 8));
    assert_eq!(told(253, &[1]), (OtherOptions::UNKNOWN, 4));
    // window scale outside a SYN has no meaning
    assert_eq!(told(3, &[7]), (OtherOptions::UNKNOWN, 4));
    assert_eq!(told(8, &[0; 8]), (0, 0));
}

#[test]
fn a_part_carries_what_belongs_to_it() {
    let all = Flags(Flags::ACK.0 | Flags::PSH.0 | Flags::FIN.0 | Flags::CWR.0 | Flags::URG.0);
    let source = plain(TcpHeader { flags: all, ..TcpHeader::default() }, 3000, Offload::Super(1000), 1500);
    let parsed = parse(&source.bytes, &source.vnet, source.unit).unwrap();
    let part = |from: u32, to: u32| {
        let mut now = parsed.packet.clone();
        now.body.off += u64::from(from);
        now.body.len = to - from;
        now.tcp.seq = now.tcp.seq.at(u64::from(from));
        let (bytes, vnet, _) = sent(&source, &parsed, &now);
        let flags = parse(&bytes, &vnet, source.unit).unwrap().packet.tcp.flags;
        let urgent = u16::from_be_bytes([bytes[38], bytes[39]]);
        (flags.0 & !Flags::ACK.0, urgent, u16::from_be_bytes([bytes[4], bytes[5]]), vnet.gso_type)
    };
    let (psh_fin, cwr, urg) = (Flags::PSH.0 | Flags::FIN.0, Flags::CWR.0, Flags::URG.0);
    assert_eq!(part(0, 1000), (cwr | urg, 1500, 100, VnetHeader::GSO_NONE));
    assert_eq!(part(0, 2000), (cwr | urg, 1500, 100, VnetHeader::GSO_TCPV4 | VnetHeader::GSO_ECN));
    assert_eq!(part(1000, 3000), (psh_fin | urg, 500, 101, VnetHeader::GSO_TCPV4));
    assert_eq!(part(2000, 3000), (psh_fin, 0, 102, VnetHeader::GSO_NONE));
}

#[test]
#[should_panic(expected = "a node sends a part of what it received")]
fn a_node_that_makes_up_bytes_is_a_bug() {
    let source = plain(TcpHeader::default(), 10, Offload::Full, 0);
    let parsed = parse(&source.bytes, &source.vnet, source.unit).unwrap();
    let mut now = parsed.packet.clone();
    now.body.off += 8;
    now.body.len = 3;
    sent(&source, &parsed, &now);
}

#[test]
fn extension_headers_that_lead_nowhere_else_go_along() {
    let ends = AddressPair::V6 { src: [7; 16].into(), dst: [9; 16].into() };
    let tcp = TcpHeader { flags: Flags::SYN, mss: Some(1440), ..TcpHeader::default() };
    let plain = build((ends, tcp), 100, Offload::Full, Before::Nothing, None, (0, 0)).unwrap();
    let with = |kind: u8, header: [u8; 8]| {
        let mut source = plain.clone();
        source.bytes[6] = kind;
        source.bytes[5] += 8;
        source.bytes.splice(40..40, header);
        source
    };
    let read = |source: &Source| parse(&source.bytes, &source.vnet, source.unit);
    // hop-by-hop and destination options: here only padding
    for kind in [0, 60] {
        let source = with(kind, [6, 0, 1, 4, 0, 0, 0, 0]);
        let parsed = read(&source).unwrap();
        assert_eq!(parsed.packet.header_len, 40 + 8 + 24);
        let mut now = parsed.packet.clone();
        (now.tcp.window_scale, now.ecn, now.hops) = (Some(7), Ecn::Ce, 3);
        now.body.len = 60;
        let (bytes, vnet, _) = sent(&source, &parsed, &now);
        let [packet] = &wire_packets(&bytes, &vnet, 0)[..] else { panic!("one packet") };
        assert_eq!(packet[40..48], source.bytes[40..48]);
        let again = parse(packet, &VnetHeader::default(), Unit::Packet).unwrap().packet;
        let now = (again.tcp.window_scale, again.ecn, again.hops, again.body.len);
        assert_eq!(now, (Some(7), Ecn::Ce, 3, 60));
    }
    // a routing header names another destination, a fragment header needs reassembly
    assert_eq!(read(&with(43, [6, 0, 4, 1, 0, 0, 0, 0])).map(|_| ()), Err(UnreadReason::Header));
    assert_eq!(read(&with(44, [6, 0, 0, 0, 0, 0, 0, 1])).map(|_| ()), Err(UnreadReason::Header));
    assert_eq!(read(&with(44, [6, 0, 0, 1, 0, 0, 0, 1])).map(|_| ()), Err(UnreadReason::Fragment));
    assert_eq!(read(&with(50, [6, 0, 0, 0, 0, 0, 0, 1])).map(|_| ()), Err(UnreadReason::Protocol));
}
