//! Hostile peers and attackers: nothing panics, memory stays bounded, and no data that has arrived changes.

use crate::duel::{Duel, End, FAIR, LEFT, RIGHT, addresses};
use crate::talk::Content;
use bentpipe_base::{
    Dscp, Duration, Ecn, Flags, Instant, ProbeOption, Purpose, Rng, SackList, Seq, Size, TcpHeader,
};
use bentpipe_base::{Phases, Timestamps};
use bentpipe_live::endpoint::{ConnId, EndpointError, Settings, SocketEvent};
use bentpipe_tcp::{Config, ReceiveBuffer};
use bentpipe_wire::offload::VnetHeader;
use bentpipe_wire::{AddressPair, Segment, emit, parse};
use core::net::IpAddr;
use proptest::prelude::*;

fn of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[(rng.bits() % all.len() as u64) as usize]
}

pub(crate) fn victim(seed: u64, receive: u64) -> End {
    let settings = Settings {
        addresses: addresses(RIGHT).to_vec(),
        max_connections: 64,
        max_time_wait: 8,
        ..Settings::default()
    };
    let mut end = End::new(seed, settings);
    let config = Config { receive_buffer: ReceiveBuffer::Fixed(Size(receive)), ..Config::default() };
    end.endpoint.listen(80, &config, 16).unwrap();
    end
}

pub(crate) fn packet(v6: bool, sport: u16, tcp: TcpHeader, payload: &[u8]) -> Vec<u8> {
    let ends = match (addresses(LEFT)[usize::from(v6)], addresses(RIGHT)[usize::from(v6)]) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => AddressPair::V4 { src, dst },
        (IpAddr::V6(src), IpAddr::V6(dst)) => AddressPair::V6 { src, dst },
        _ => unreachable!(),
    };
    let segment =
        Segment { ends, sport, dport: 80, hops: 64, dscp: Dscp::DEFAULT, ecn: Ecn::NotEct, tcp, payload };
    let mut bytes = Vec::new();
    emit(&segment, &mut bytes).unwrap();
    bytes
}

/// Returns all packets that the end sends now.
pub(crate) fn flush(end: &mut End, now: Instant) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    end.with(now, |endpoint, cx| {
        endpoint.timer(cx);
        let mut out = Vec::new();
        while endpoint.next_packet(cx, &mut out) {
            sent.push(out.clone());
            assert!(sent.len() < 200_000, "it never stops");
        }
        assert!(endpoint.next_at() > now, "a deadline stays due");
    });
    sent
}

/// The attacker's knowledge of a connection.
struct Known {
    sport: u16,
    v6: bool,
    /// Next sequence numbers: the attacker's, the victim's.
    seq: Seq,
    peer: Seq,
    id: Option<ConnId>,
}

fn header(rng: &mut Rng, known: &Known) -> TcpHeader {
    let off = |rng: &mut Rng| {
        of(rng, &[0, 0, 0, 0, 1, 2, 100, 101, 1000, 5000, 64_000, u64::from(u32::MAX) - 500, 1 << 31])
    };
    let mut sack = SackList::default();
    for _ in 0..of(rng, &[0, 0, 1, 3]) {
        sack.push(known.peer.at(off(rng)), known.peer.at(off(rng)));
    }
    let stamps = Timestamps { value: rng.bits() as u32 % 50, echo: rng.bits() as u32 };
    TcpHeader {
        seq: known.seq.at(off(rng)),
        ack: known.peer.at(off(rng)),
        window: of(rng, &[0, 1, 700, 65_535]),
        flags: Flags(of(rng, &[0x10, 0x10, 0x10, 0x18, 0x11, 0x10, 0x14, 0x12, 0x02, 0x00, 0xff, 0xc2])),
        mss: of(rng, &[None, Some(0), Some(1460)]),
        window_scale: of(rng, &[None, Some(14), Some(255)]),
        sack_permitted: true,
        timestamps: of(rng, &[None, None, Some(stamps)]),
        sack: if rng.unit() < 0.5 { sack } else { SackList::default() },
        probe: of(
            rng,
            &[ProbeOption::None, ProbeOption::Permitted, ProbeOption::Probe(7), ProbeOption::Echo(7)],
        ),
        phases: Phases::default(),
    }
}

/// Sends a SYN from the attacker.
fn call(rng: &mut Rng, end: &mut End, now: Instant, sport: u16) -> Known {
    let (seq, v6) = (Seq(rng.bits() as u32), rng.unit() < 0.5);
    let known = Known { sport, v6, seq, peer: Seq(0), id: None };
    let tcp = TcpHeader { flags: Flags::SYN, seq, sack: SackList::default(), ..header(rng, &known) };
    let bytes = packet(v6, sport, tcp, &[]);
    end.with(now, |e, cx| e.packet(cx, &bytes, &VnetHeader::default()));
    known
}

/// Sends a segment from the attacker: mostly well-formed, and near the connection's state.
fn attack(rng: &mut Rng, end: &mut End, now: Instant, known: &Known) {
    let len = of(rng, &[0, 0, 1, 2, 500, 1460]);
    let mut tcp = header(rng, known);
    if tcp.wire_len() > 60 {
        tcp.sack = SackList::default();
    }
    let mut bytes = packet(known.v6, known.sport, tcp, &vec![rng.bits() as u8; len]);
    let vnet = VnetHeader {
        flags: of(rng, &[0, 1]),
        gso_type: of(rng, &[0, 0, 1, 4]),
        gso_size: of(rng, &[0, 1, 400]),
        ..VnetHeader::default()
    };
    if rng.unit() < 0.2 {
        let at = (rng.bits() % bytes.len() as u64) as usize;
        bytes[at] ^= 1 << (rng.bits() % 8);
        bytes.truncate(of(rng, &[bytes.len(), bytes.len() - 1, at]));
    }
    end.with(now, |e, cx| e.packet(cx, &bytes, &vnet));
}

/// Makes a random call of an application; returns the bytes read.
fn apply(rng: &mut Rng, end: &mut End, now: Instant, id: ConnId) -> usize {
    // send buffer of 4 MiB, and the receive window rounded by its scale, each up to the next power of two
    assert!(end.endpoint.memory(id).unwrap_or_default() <= (4 << 20) + (2 << 20));
    match rng.bits() % 40 {
        0..10 => return end.endpoint.read(now, id, &mut [0; 3000]).unwrap_or_default(),
        10..15 => _ = end.endpoint.write(id, &[1; 3000]),
        15 => _ = end.endpoint.shutdown(id),
        16 => end.endpoint.close(id),
        17 => end.endpoint.abort(id),
        _ => {}
    }
    0
}

/// Sends hundreds of segments to each of a few connections, as an attacker who sees everything can. Returns
/// the connections that opened and the bytes that were read.
fn torment(seed: u64) -> (u64, usize) {
    let mut rng = Rng::new(seed, "attacker", Purpose::Errors);
    let mut end = victim(seed, [1, 3000, 65_536, 1_000_000][seed as usize % 4]);
    let mut now = Instant::ZERO;
    let mut all: Vec<Known> = Vec::new();
    let mut sum = (0, 0);
    for _ in 0..600 {
        if all.len() < 4 && rng.unit() < 0.1 {
            all.push(call(&mut rng, &mut end, now, 1000 + all.len() as u16));
        }
        let Some(i) = rng.bits().checked_rem(all.len() as u64) else { continue };
        attack(&mut rng, &mut end, now, &all[i as usize]);
        for sent in if rng.unit() < 0.7 { flush(&mut end, now) } else { Vec::new() } {
            let segment = parse(&sent).unwrap();
            if let Some(known) = all.iter_mut().find(|k| k.sport == segment.dport) {
                known.peer = segment.tcp.seq;
            }
        }
        while let Some((id, news)) = end.endpoint.next_event() {
            if news == SocketEvent::Calling && end.endpoint.accept(80).is_some() {
                sum.0 += 1;
                let port = end.endpoint.addresses(id).map(|a| a.1.port());
                all.iter_mut().filter(|k| Some(k.sport) == port).for_each(|k| k.id = Some(id));
            }
        }
        for id in all.iter().filter_map(|k| k.id) {
            sum.1 += apply(&mut rng, &mut end, now, id);
        }
        now += Duration(of(&mut rng, &[0, 1, 1_000_000, 50_000_000, 3_000_000_000]));
    }
    flush(&mut end, now);
    assert!(end.endpoint.connections() <= 64);
    sum
}

#[test]
fn whatever_a_peer_sends_nothing_panics_and_memory_is_bounded() {
    let mut sum = (0, 0);
    for seed in 0..600 {
        let outcome = std::panic::catch_unwind(|| torment(seed));
        let Ok((opened, read)) = outcome else { panic!("failed with seed {seed}") };
        sum = (sum.0 + opened, sum.1 + read);
    }
    assert!(sum.0 > 500 && sum.1 > 100_000, "it got far enough to do harm: {sum:?}");
}

proptest! {
    #[test]
    fn no_bytes_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), first in 0u8..4, flags: u8, gso in 0u8..6, size in 0u16..300,
    ) {
        let mut end = victim(1, 65_536);
        let mut bytes = bytes;
        if let Some(b) = bytes.first_mut() {
            *b = [0x45, 0x60, 0x4f, *b][usize::from(first)];
        }
        let vnet = VnetHeader { flags, gso_type: gso, gso_size: size, ..VnetHeader::default() };
        end.with(Instant::ZERO, |e, cx| e.packet(cx, &bytes, &vnet));
        flush(&mut end, Instant::ZERO);
    }
}

#[test]
fn a_flood_of_calls_and_strangers_is_bounded() {
    let mut end = victim(1, 65_536);
    for i in 0..20_000u16 {
        let syn = TcpHeader { flags: Flags::SYN, seq: Seq(u32::from(i)), ..TcpHeader::default() };
        let ack = TcpHeader { flags: Flags::ACK, ..syn.clone() };
        for tcp in [syn, ack] {
            let bytes = packet(i % 2 == 0, 1000 + i, tcp, &[]);
            end.with(Instant::ZERO, |e, cx| e.packet(cx, &bytes, &VnetHeader::default()));
        }
    }
    assert_eq!(end.endpoint.connections(), 16, "the backlog");
    let sent = flush(&mut end, Instant::ZERO).len();
    assert!(sent <= 256 + 16 * 3, "{sent}");
    // half-open connections are forgotten
    let mut now = Instant::ZERO;
    while now < Instant::ZERO + Duration::from_secs(200) {
        now = end.endpoint.next_at().min(now + Duration::from_secs(1));
        flush(&mut end, now);
    }
    assert_eq!(end.endpoint.connections(), 0);
}

/// In a flood of SYNs, forged or abandoned, a real client still gets in, even over a long path, and the
/// half-open connections are dropped silently.
#[test]
fn half_open_callers_keep_nobody_out() {
    let mut end = victim(1, 65_536);
    let mut now = Instant::ZERO;
    let flood = |end: &mut End, now: Instant, ports: core::ops::Range<u16>| {
        for sport in ports {
            let syn = TcpHeader { flags: Flags::SYN, seq: Seq(u32::from(sport)), ..TcpHeader::default() };
            end.with(now, |e, cx| e.packet(cx, &packet(false, sport, syn, &[]), &VnetHeader::default()));
        }
    };
    flood(&mut end, now, 1000..1100);
    flush(&mut end, now);
    assert_eq!((end.endpoint.connections(), end.endpoint.counters().overflowed), (16, 84));
    let syn = TcpHeader { flags: Flags::SYN, seq: Seq(99), window: 65_535, ..TcpHeader::default() };
    end.with(now, |e, cx| e.packet(cx, &packet(false, 7, syn, &[]), &VnetHeader::default()));
    let answers = flush(&mut end, now);
    let answer = answers.iter().map(|a| parse(a).unwrap()).find(|s| s.dport == 7).unwrap();
    assert_eq!((answer.tcp.flags, answer.tcp.ack), (Flags(0x12), Seq(100)));
    // an RTT later, with the flood going on
    now += Duration::from_millis(600);
    flood(&mut end, now, 2000..2015);
    let peer = answer.tcp.seq.at(1);
    let ack =
        TcpHeader { seq: Seq(100), ack: peer, flags: Flags(0x18), window: 65_535, ..TcpHeader::default() };
    end.with(now, |e, cx| e.packet(cx, &packet(false, 7, ack, b"hello"), &VnetHeader::default()));
    flush(&mut end, now);
    // an open connection is never dropped, however many SYNs arrive
    flood(&mut end, now, 3000..4000);
    flush(&mut end, now);
    let id = end.endpoint.accept(80).unwrap();
    let mut heard = [0; 9];
    assert_eq!(end.endpoint.read(now, id, &mut heard), Ok(5));
    assert_eq!((&heard[..5], end.endpoint.accept(80)), (&b"hello"[..], None));
    assert_eq!(end.endpoint.connections(), 16, "it counted as one who waits");
}

/// An attacker sends segments with wrong bytes between two honest ends: those that the engine rejects, or
/// that repeat data, change nothing.
#[test]
fn bytes_that_had_arrived_cannot_be_changed() {
    let mut rng = Rng::new(1, "forger", Purpose::Errors);
    let mut duel = Duel::new(1, FAIR);
    let config = Config {
        options: bentpipe_tcp::Options { timestamps: false, ..Config::default().options },
        ..Config::default()
    };
    duel.ends[RIGHT].endpoint.listen(80, &config, 1).unwrap();
    let id = duel.connect(LEFT, Duel::at(RIGHT, false, 80), &config).unwrap();
    duel.pass(Duration::from_millis(50));
    let right = duel.ends[RIGHT].talks.log[0].0;
    let sport = duel.ends[LEFT].endpoint.addresses(id).unwrap().0.port();
    let mut said = vec![0; 40_000];
    Content(3).fill(0, &mut said);
    for part in said.chunks(1000) {
        assert_eq!(duel.ends[LEFT].endpoint.write(id, part), Ok(part.len()));
        duel.pass(Duration::from_millis(20));
        let conn = duel.ends[RIGHT].endpoint.connection(right).unwrap();
        let (next, peer) = (
            conn.receiver().ack_field(),
            duel.ends[LEFT].endpoint.connection(id).unwrap().receiver().ack_field(),
        );
        let wrong = [0xee; 700];
        for _ in 0..20 {
            let tcp = TcpHeader {
                seq: Seq(next.0.wrapping_sub(700 + (rng.bits() % 3000) as u32)),
                ack: of(&mut rng, &[peer, peer.at(1 << 30), peer]),
                flags: of(&mut rng, &[Flags::ACK, Flags::SYN, Flags(0)]),
                window: 65_535,
                ..TcpHeader::default()
            };
            // beyond the data that has arrived, only with an acknowledgment or flags that the engine rejects
            let bad = TcpHeader {
                seq: next.at(rng.bits() % 2000),
                ack: peer.at(1 << 30),
                flags: Flags::ACK,
                ..tcp.clone()
            };
            for tcp in [tcp, bad] {
                let bytes = packet(false, sport, tcp, &wrong);
                let now = duel.now;
                duel.ends[RIGHT].with(now, |e, cx| e.packet(cx, &bytes, &VnetHeader::default()));
            }
        }
    }
    duel.pass(Duration::from_millis(500));
    let (mut heard, mut buffer) = (0, [0; 9000]);
    let now = duel.now;
    while let Ok(len @ 1..) = duel.ends[RIGHT].endpoint.read(now, right, &mut buffer) {
        Content(3).check(heard, &buffer[..len]);
        heard += len as u64;
    }
    assert_eq!(heard, 40_000);
    assert_eq!(duel.ends[RIGHT].endpoint.read(now, right, &mut buffer), Err(EndpointError::WouldBlock));
}

/// The SYN of a host on Ethernet.
pub(crate) fn syn_of_a_host() -> TcpHeader {
    TcpHeader { flags: Flags::SYN, seq: Seq(99), mss: Some(1460), window: 65_535, ..TcpHeader::default() }
}

/// A super-packet is handled as its segments, acknowledgments included.
#[test]
fn uncut_packets_count_as_their_pieces() {
    let mut end = victim(1, 200_000);
    let syn = syn_of_a_host();
    end.with(Instant::ZERO, |e, cx| e.packet(cx, &packet(false, 1000, syn, &[]), &VnetHeader::default()));
    let answer = flush(&mut end, Instant::ZERO);
    let peer = parse(&answer[0]).unwrap().tcp.seq.at(1);
    let mut said = vec![0; 29_200];
    Content(8).fill(0, &mut said);
    let tcp =
        TcpHeader { flags: Flags(0x19), seq: Seq(100), ack: peer, window: 65_535, ..TcpHeader::default() };
    let vnet =
        VnetHeader { flags: 1, gso_type: VnetHeader::GSO_TCPV4, gso_size: 1460, ..VnetHeader::default() };
    let mut bytes = packet(false, 1000, tcp, &said);
    bytes[37] ^= 0xff; // offloaded checksum
    end.with(Instant::ZERO, |e, cx| e.packet(cx, &bytes, &vnet));
    let answer = flush(&mut end, Instant::ZERO);
    assert_eq!(answer.len(), 1, "one answer to all pieces");
    assert_eq!(parse(&answer[0]).unwrap().tcp.ack, Seq(100).at(29_201), "the FIN counts once, at the end");
    let id = end.endpoint.accept(80).unwrap();
    let mut heard = vec![0; 40_000];
    assert_eq!(end.endpoint.read(Instant::ZERO, id, &mut heard), Ok(29_200));
    Content(8).check(0, &heard[..29_200]);
    assert_eq!(end.endpoint.read(Instant::ZERO, id, &mut heard), Ok(0));
}

/// ICMP "packet too big" from a router for `packet` (RFC 792, RFC 4443).
pub(crate) fn too_big(packet: &[u8], mtu: u16) -> Vec<u8> {
    let v6 = packet[0] >> 4 == 6;
    let quoted = &packet[..if v6 { 60 } else { 28 }];
    let mut bytes = if v6 { vec![0; 48] } else { vec![0; 28] };
    let len = (bytes.len() + quoted.len()) as u16;
    if v6 {
        (bytes[0], bytes[6], bytes[7]) = (0x60, 58, 64);
        bytes[4..6].copy_from_slice(&(len - 40).to_be_bytes());
        bytes[24..40].copy_from_slice(&packet[8..24]);
        bytes[40] = 2;
        bytes[46..48].copy_from_slice(&mtu.to_be_bytes());
    } else {
        (bytes[0], bytes[8], bytes[9]) = (0x45, 64, 1);
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        bytes[16..20].copy_from_slice(&packet[12..16]);
        (bytes[20], bytes[21]) = (3, 4);
        bytes[26..28].copy_from_slice(&mtu.to_be_bytes());
    }
    bytes.extend_from_slice(quoted);
    bytes
}

/// A path with a smaller MTU: packets that a router rejects are sent again as smaller ones; a message from
/// someone who cannot know what is in flight is ignored.
#[test]
fn a_path_for_shorter_packets_is_followed() {
    for (v6, forged) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut end = victim(1, 65_536);
        let mut now = Instant::ZERO;
        let syn = syn_of_a_host();
        end.with(now, |e, cx| e.packet(cx, &packet(v6, 7, syn, &[]), &VnetHeader::default()));
        let peer = parse(&flush(&mut end, now)[0]).unwrap().tcp.seq.at(1);
        let ack =
            TcpHeader { seq: Seq(100), ack: peer, flags: Flags::ACK, window: 65_535, ..TcpHeader::default() };
        end.with(now, |e, cx| e.packet(cx, &packet(v6, 7, ack, &[]), &VnetHeader::default()));
        flush(&mut end, now);
        let id = end.endpoint.accept(80).unwrap();
        assert_eq!(end.endpoint.write(id, &vec![3; 20_000]), Ok(20_000));
        let mut sent = flush(&mut end, now);
        if forged {
            let seq = if v6 { 44 } else { 24 };
            sent[0][seq] ^= 0x40; // a sequence number that is not in flight
        }
        let says = too_big(&sent[0], 1400);
        end.with(now, |e, cx| e.packet(cx, &says, &VnetHeader::default()));
        for cut in 0..says.len() {
            end.with(now, |e, cx| e.packet(cx, &says[..cut], &VnetHeader::default()));
        }
        let again: Vec<_> = flush(&mut end, now).iter().map(Vec::len).collect();
        assert_eq!(again.is_empty(), forged, "v6 {v6}");
        assert!(again.iter().all(|len| *len <= 1400), "{again:?}");
        now = end.endpoint.next_at();
        let longest = flush(&mut end, now).iter().map(Vec::len).max().unwrap();
        assert_eq!((longest > 1400, end.endpoint.ending(id)), (forged, None), "v6 {v6}, forged {forged}");
    }
}
