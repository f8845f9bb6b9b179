//! Rate signalling end to end: two connections over a path with constant delay, and a network that lowers,
//! loses, strips, inserts and forges structures.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_advice::tia1039::{self, Kind, QOS_FLOW, QOS_SIGNAL, Structure};
use bentpipe_base::{Dscp, Duration, Flags, Instant, IpVersion, Packet, Rate, Size};
use bentpipe_tcp::{AskConfig, Config, Connection, RateState, ReceiveBuffer, Signalling};
use net::{ASK, ISN, MSS, Net, RTT, host, lower, mbps, ms, said, strip};
use std::cell::Cell;

#[path = "signalling/net.rs"]
mod net;
#[path = "signalling/rewritten.rs"]
mod rewritten;

const V4: IpVersion = IpVersion::V4;
const V6: IpVersion = IpVersion::V6;
/// Payload of a full segment: 12 bytes of timestamps, and room for a structure.
const PAYLOAD: u32 = MSS as u32 - 12 - 16;
const NOT_SIGNALLED: &str = "the path or the peer does not signal";

/// What 10 Gbit/s become in the rate field.
fn asked() -> Option<Rate> {
    Rate::from_bps(9_994_240_000)
}

/// State, granted rate, and the changes: time in ms, rate, cause.
type RateOutcome = (RateState, Option<Rate>, Vec<(u64, Rate, &'static str)>);

fn outcome(net: &Net<'_>, side: usize) -> RateOutcome {
    let view = net.end(side).rate().unwrap();
    let changes = view.changes.iter().map(|c| (c.at.0 / 1_000_000, c.rate, c.cause)).collect();
    (view.state, view.granted, changes)
}

/// The scheme after a fallback, and why.
fn fallback(net: &Net<'_>, side: usize) -> Option<(&'static str, &'static str)> {
    net.end(side).fallback().map(|f| (f.to, f.why))
}

fn is_about(measured: f64, rate: Rate) -> bool {
    (0.985..=1.015).contains(&(measured / rate.bps() as f64))
}

/// The code point for what a packet carries, if it is no SYN.
fn code_point(packet: &Packet) -> Dscp {
    let says_nothing = said(packet).iter().all(|s| s.0 == Kind::Forward);
    if says_nothing { QOS_FLOW } else { QOS_SIGNAL }
}

/// What a router puts into a packet.
fn reduction(rate: Rate) -> Structure {
    let mut structure = Structure::request(rate);
    structure.set_kind(Kind::Renegotiate);
    structure
}

/// No slow start: from the first segment on it sends at the granted rate, counted with headers.
#[test]
fn the_first_segment_goes_at_the_granted_rate() {
    for ip in [V4, V6] {
        let mut net = Net::new(host(ASK, ip), host(None, ip), |_, _, packet| {
            lower(packet, mbps(8));
            true
        });
        net.with(0, |c| c.write(50_000_000));
        net.run(ms(1100));
        let changes = vec![(100, mbps(8), "granted")];
        assert_eq!(outcome(&net, 0), (RateState::Granted, Some(mbps(8)), changes), "{ip:?}");
        assert_eq!((net.end(0).rate().map(|r| r.asked), fallback(&net, 0)), (ASK, None));
        assert!(net.end(1).rate().is_none(), "it asked for nothing");
        let rate = net.rate(0, ms(100));
        assert!(is_about(rate, mbps(8)), "{ip:?}: {rate}");
    }
}

#[test]
fn each_packet_has_its_code_point_and_its_structures() {
    for ip in [V4, V6] {
        let mut net = Net::new(host(ASK, ip), host(None, ip), |_, _, packet| {
            lower(packet, mbps(8));
            true
        });
        net.with(0, |c| c.write(100_000));
        net.run(ms(250));
        let first = |side: usize, n: usize| net.of(side).nth(n).unwrap();
        let (_, syn) = first(0, 0);
        assert_eq!((syn.dscp, said(syn)), (QOS_SIGNAL, vec![(Kind::Request, asked())]));
        assert_eq!((syn.ip, syn.seq_len()), (ip, 1));
        // 40 bytes of TCP header with the options of a SYN
        assert_eq!(syn.wire_len(), Size(u64::from(ip.header()) + 40 + 16));
        let (_, syn_ack) = first(1, 0);
        assert_eq!((syn_ack.dscp, said(syn_ack)), (QOS_SIGNAL, vec![(Kind::Response, Some(mbps(8)))]));
        // the window of a SYN is not scaled: an ACK with the real one follows
        let (at, window) = first(1, 1);
        assert_eq!((at, window.tcp.flags, window.dscp), (ms(50), Flags::ACK, QOS_FLOW));
        assert!(u64::from(window.tcp.window) << net.end(0).agreed().send_scale >= 4 << 20);
        let place = if ip == V6 { vec![(Kind::Forward, Some(mbps(8)))] } else { vec![] };
        let (at, data) = first(0, 1);
        assert_eq!((at, data.body.len, data.dscp, said(data)), (ms(100), PAYLOAD, QOS_FLOW, place));
        assert_eq!(data.wire_len(), Size(u64::from(PAYLOAD)) + net.end(0).agreed().headers());
        let longest = net.of(0).map(|(_, p)| p.wire_len()).max().unwrap();
        let room = if ip == V6 { 0 } else { 16 }; // a router inserts a structure
        assert!(longest.0 + room <= u64::from(MSS) + u64::from(ip.header()) + 20, "{ip:?}: {longest}");
        assert!(net.of(1).skip(1).all(|(_, p)| p.dscp == QOS_FLOW && p.signal.is_none()));
    }
}

#[test]
fn an_answer_that_nobody_lowered_is_not_believed() {
    let mut net = Net::new(host(ASK, V4), host(None, V4), |_, _, _| true);
    net.run(ms(200));
    assert_eq!(outcome(&net, 0), (RateState::Plain, None, vec![]));
    assert_eq!(fallback(&net, 0), Some(("cubic", NOT_SIGNALLED)));
    // unless the user says so
    let mut trusting = host(Some(mbps(5)), V4);
    let ask = AskConfig { ask: Some(mbps(5)), trust_path: true, ..AskConfig::default() };
    trusting.signalling = Some(Signalling::new(ask));
    let mut net = Net::new(trusting, host(None, V4), |_, _, _| true);
    net.run(ms(200));
    assert_eq!(outcome(&net, 0).1, Some(mbps(5)));
}

#[test]
fn a_receiver_lowers_the_rate_to_what_it_takes() {
    let mut answer = host(None, V4);
    answer.signalling = Some(Signalling::new(AskConfig { take: Some(mbps(3)), ..AskConfig::default() }));
    let mut net = Net::new(host(ASK, V4), answer, |_, _, packet| {
        lower(packet, mbps(8));
        true
    });
    net.run(ms(200));
    assert_eq!(outcome(&net, 0).1, Some(mbps(3)));
}

/// The peer does not signal, or a middlebox hides that it does: a standard TCP with its usual packets.
#[test]
fn without_a_signalling_peer_it_is_plain_tcp() {
    let silent = Config { signalling: None, ..host(None, V4) };
    for (answer, hides) in [(silent, false), (host(None, V4), true)] {
        let mut net = Net::new(host(ASK, V4), answer, |_, side, packet| {
            if side == 1 && hides {
                strip(packet);
                packet.dscp = Dscp::DEFAULT;
            }
            true
        });
        net.with(0, |c| c.write(10_000));
        net.run(ms(900));
        assert_eq!(outcome(&net, 0), (RateState::Plain, None, vec![]));
        assert_eq!(fallback(&net, 0), Some(("cubic", NOT_SIGNALLED)));
        assert_eq!((net.end(0).agreed().mss, net.end(1).received()), (MSS - 12, 10_000));
        assert!(net.of(0).skip(1).all(|(_, p)| p.dscp == Dscp::DEFAULT && p.signal.is_none()));
        if !hides {
            assert!(net.of(1).all(|(_, p)| p.dscp == Dscp::DEFAULT && p.signal.is_none()));
        }
    }
    // and nobody speaks of rates to a peer that does not
    let silent = Config { signalling: None, ..host(None, V4) };
    let mut net = Net::new(silent, host(ASK, V4), |_, _, _| true);
    net.run(ms(900));
    assert_eq!(outcome(&net, 1), (RateState::Plain, None, vec![]));
    assert_eq!(fallback(&net, 1), Some(("cubic", NOT_SIGNALLED)));
    assert!(net.sent.iter().all(|(_, _, p)| p.dscp == Dscp::DEFAULT && p.signal.is_none()));
}

/// The SYN that is resent has no structure; the request is in the ACK.
#[test]
fn after_a_lost_syn_the_ack_asks() {
    for ip in [V4, V6] {
        let mut net = Net::new(host(ASK, ip), host(None, ip), |now, side, packet| {
            lower(packet, mbps(8));
            side == 1 || now > Instant::ZERO
        });
        net.run(ms(2000));
        let sent: Vec<_> = net.of(0).map(|(at, p)| (at, p.tcp.flags.has(Flags::SYN), p.dscp)).collect();
        let expected = [(0, true), (1000, true), (1100, false)].map(|(at, syn)| (ms(at), syn, QOS_SIGNAL));
        assert_eq!(sent[..3], expected, "{ip:?}");
        let asks = [(ms(0), Kind::Request, asked()), (ms(1100), Kind::Request, asked())];
        assert_eq!(net.structures(0), asks);
        assert_eq!(net.structures(1), [(ms(1150), Kind::Response, Some(mbps(8)))], "at once");
        assert_eq!(outcome(&net, 0).2, [(1200, mbps(8), "granted")]);
    }
}

/// The answer in the SYN/ACK is lost: the first data packet asks again, and until it is answered the sender
/// is a standard TCP.
#[test]
fn after_a_lost_answer_the_first_data_asks() {
    let mut net = Net::new(host(ASK, V4), host(None, V4), |_, side, packet| {
        lower(packet, mbps(8));
        if side == 1 && packet.tcp.flags.has(Flags::SYN) {
            strip(packet);
        }
        true
    });
    net.with(0, |c| c.write(50_000_000));
    net.run(ms(150));
    assert_eq!((outcome(&net, 0).0, fallback(&net, 0)), (RateState::AskingAgain, None));
    assert_eq!(net.of(0).filter(|(_, p)| p.body.len > 0).count(), 10, "the initial window");
    net.run(ms(1400));
    assert_eq!(outcome(&net, 0).2, [(200, mbps(8), "granted")]);
    let rate = net.rate(0, ms(300));
    assert!(is_about(rate, mbps(8)), "{rate}");
}

/// Answers are lost for half a second: data asks again after two round trips each.
#[test]
fn requests_are_repeated_until_they_are_answered() {
    let mut net = Net::new(host(ASK, V4), host(None, V4), |now, side, packet| {
        lower(packet, mbps(8));
        if side == 1 && now < ms(500) {
            strip(packet);
        }
        true
    });
    net.with(0, |c| c.write(50_000_000));
    net.run(ms(1000));
    let asks: Vec<_> = net.structures(0).into_iter().filter(|s| s.1 == Kind::Request).map(|s| s.0).collect();
    assert!((4..=5).contains(&asks.len()), "{asks:?}");
    assert!(asks[1..].windows(2).all(|two| two[1].since(two[0]) >= RTT * 2), "{asks:?}");
    assert_eq!((outcome(&net, 0).0, fallback(&net, 0)), (RateState::Granted, None));
}

/// RFC 9673 allows routers to drop hop-by-hop headers, from the start or after a change of route.
#[test]
fn a_path_that_drops_hop_by_hop_headers_carries_the_stream_all_the_same() {
    for since in [0, 1000] {
        let mut net = Net::new(host(ASK, V6), host(None, V6), move |now, _, packet| {
            lower(packet, mbps(8));
            now < ms(since) || packet.signal.is_none()
        });
        net.with(0, |c| c.write(3_000_000));
        net.run(ms(1150));
        net.with(0, Connection::close);
        net.run(ms(30_000));
        assert_eq!(net.end(1).received(), 3_000_000, "since {since} ms");
        assert!(net.end(1).peer_closed(), "since {since} ms");
        let lost = net.of(0).filter(|(at, p)| *at >= ms(since) && p.body.len > 0 && p.signal.is_some());
        assert!(lost.count() < 400, "since {since} ms");
    }
}

#[test]
fn without_any_answer_it_gives_up() {
    let answer = Config { receive_buffer: ReceiveBuffer::Fixed(Size(60_000)), ..host(None, V4) };
    let mut net = Net::new(host(ASK, V4), answer, |_, side, packet| {
        if side == 1 {
            strip(packet);
        }
        true
    });
    net.with(0, |c| c.write(50_000_000));
    net.run(ms(5000));
    assert_eq!(net.structures(0).len(), 1 + 8);
    assert_eq!(outcome(&net, 0), (RateState::Plain, None, vec![]));
    assert_eq!(fallback(&net, 0), Some(("cubic", NOT_SIGNALLED)));
}

/// A router inserts a lower rate into a data packet (IPv4), or writes it into the place there (IPv6): the
/// receiver returns it at once, and the sender obeys after one round trip.
#[test]
fn a_reduction_is_obeyed_within_a_round_trip() {
    for ip in [V4, V6] {
        let inserted = Cell::new(None);
        let mut net = Net::new(host(ASK, ip), host(None, ip), |now, side, packet| {
            lower(packet, if inserted.get().is_some() { mbps(2) } else { mbps(8) });
            let free = said(packet).iter().all(|s| s.0 == Kind::Forward);
            if now >= ms(500) && side == 0 && packet.body.len > 0 && free && inserted.get().is_none() {
                inserted.set(Some(now));
                match ip {
                    IpVersion::V4 => tia1039::write(packet, &[reduction(mbps(2))]),
                    IpVersion::V6 => tia1039::replace(packet, 0, &reduction(mbps(2))),
                }
                assert!(packet.wire_len().0 <= u64::from(MSS) + u64::from(ip.header()) + 20, "it fits");
            }
            true
        });
        net.with(0, |c| c.write(50_000_000));
        net.run(ms(1900));
        let at: Instant = inserted.get().unwrap();
        let back: Vec<_> = net.structures(1).into_iter().filter(|s| s.2 == Some(mbps(2))).collect();
        assert_eq!(back[0], (at + RTT / 2, Kind::Response, Some(mbps(2))), "{ip:?}: at once");
        let (state, granted, changes) = outcome(&net, 0);
        assert_eq!((state, granted), (RateState::Reduced, Some(mbps(2))));
        let obeyed = (at + RTT).0 / 1_000_000;
        assert_eq!(changes, [(100, mbps(8), "granted"), (obeyed, mbps(2), "reduced")]);
        let rate = net.rate(0, at + RTT + Duration::from_millis(10));
        assert!(is_about(rate, mbps(2)), "{ip:?}: {rate}");
    }
}

/// A packet with data of its own still has room for the answer: the response waits for none.
#[test]
fn both_directions_have_their_own_rate() {
    let mut net = Net::new(host(ASK, V4), host(ASK, V4), |_, side, packet| {
        lower(packet, if side == 0 { mbps(8) } else { mbps(4) });
        true
    });
    net.backlog = 50_000_000;
    net.with(0, |c| c.write(50_000_000));
    net.run(ms(2300));
    let (_, _, syn_ack) = net.sent.iter().find(|(_, side, _)| *side == 1).unwrap();
    assert_eq!(said(syn_ack), [(Kind::Response, Some(mbps(8))), (Kind::Request, asked())]);
    assert_eq!(outcome(&net, 0).2, [(100, mbps(8), "granted")]);
    assert_eq!(outcome(&net, 1).2, [(150, mbps(4), "granted")], "with the first segment of the opener");
    let rates = [net.rate(0, ms(1200)), net.rate(1, ms(1200))];
    assert!(is_about(rates[0], mbps(8)) && is_about(rates[1], mbps(4)), "{rates:?}");
}

/// The end that accepts sends: its request is in the SYN/ACK, the answer in the ACK.
#[test]
fn an_acceptor_is_granted_before_its_first_segment() {
    let mut net = Net::new(host(None, V4), host(ASK, V4), |_, _, packet| {
        lower(packet, mbps(8));
        true
    });
    net.backlog = 50_000_000;
    net.run(ms(1200));
    assert_eq!(net.structures(0)[0], (ms(100), Kind::Response, Some(mbps(8))));
    assert_eq!((outcome(&net, 1).2, fallback(&net, 1)), (vec![(150, mbps(8), "granted")], None));
    let first = net.of(1).find(|(_, p)| p.body.len > 0).unwrap();
    assert_eq!((first.0, first.1.dscp), (ms(150), QOS_FLOW));
    let rate = net.rate(1, ms(150));
    assert!(is_about(rate, mbps(8)), "{rate}");
}

/// From 1 s on the network has 6 Mbit/s in place of 4: the sender asks with every 128th segment.
#[test]
fn more_is_given_to_who_asks_for_it() {
    let mut net = Net::new(host(ASK, V4), host(None, V4), |now, _, packet| {
        lower(packet, if now < ms(1000) { mbps(4) } else { mbps(6) });
        true
    });
    net.with(0, |c| c.write(50_000_000));
    net.run(ms(3000));
    let wishes: Vec<_> = net.structures(0).into_iter().skip(1).collect();
    assert!(wishes.iter().all(|w| w.1 == Kind::Renegotiate), "{wishes:?}");
    assert_eq!((wishes[0].2, wishes[wishes.len() - 1].2), (Some(mbps(8)), Some(mbps(12))), "twice the rate");
    let (state, granted, changes) = outcome(&net, 0);
    assert_eq!((state, granted, changes.len()), (RateState::Granted, Some(mbps(6)), 2));
    assert!((1100..1400).contains(&changes[1].0) && changes[1].2 == "raised", "{changes:?}");
    let rate = net.rate(0, ms(1800));
    assert!(is_about(rate, mbps(6)), "{rate}");
}

/// Answers above what was asked for, and answers that nobody asked for, raise nothing.
#[test]
fn forged_answers_do_not_raise_a_rate() {
    let mut net = Net::new(host(ASK, V4), host(None, V4), |_, side, packet| {
        lower(packet, mbps(4));
        if side == 1 && !packet.tcp.flags.has(Flags::SYN) {
            let mut forged = Structure::request(mbps(9));
            forged.set_kind(Kind::Response);
            tia1039::write(packet, &[forged]);
        }
        true
    });
    net.with(0, |c| c.write(50_000_000));
    net.run(ms(1500));
    // its wishes were for 8
    assert_eq!(outcome(&net, 0), (RateState::Granted, Some(mbps(4)), vec![(100, mbps(4), "granted")]));
}

/// Structures are in no stream: with losses, retransmissions, copies and structures in every direction, each
/// byte has its position and arrives, and all packets have a code point of a flow.
#[test]
fn no_byte_of_a_stream_is_signalling() {
    for ip in [V4, V6] {
        let mut count = 0_u32;
        let mut net = Net::new(host(ASK, ip), host(None, ip), |_, side, packet| {
            lower(packet, mbps(8));
            count += u32::from(side == 0);
            if side == 0 && ip == V4 && count.is_multiple_of(5) && packet.body.len > 0 {
                tia1039::write(packet, &[reduction(mbps(7))]);
            }
            side == 1 || count < 20 || !count.is_multiple_of(7)
        });
        net.with(0, |c| c.write(400_000));
        net.run(ms(150));
        net.with(0, bentpipe_tcp::Connection::close);
        net.run(ms(20_000));
        assert_eq!((net.end(1).received(), net.end(1).peer_closed()), (400_000, true), "{ip:?}");
        for (_, p) in net.of(0).filter(|(_, p)| p.body.len > 0) {
            assert_eq!(p.tcp.seq, ISN[0].at(1 + p.body.off));
            assert!(p.body.len <= PAYLOAD);
        }
        let odd = net.sent.iter().find(|(_, _, p)| !p.tcp.flags.has(Flags::SYN) && p.dscp != code_point(p));
        assert!(odd.is_none(), "{ip:?}: {odd:?}");
        if ip == V6 {
            assert!(net.of(0).all(|(_, p)| p.body.len == 0 || said(p).len() == 1), "each has a place");
        }
    }
}

/// Without signalling an IPv6 packet is 20 bytes longer, and that is all.
#[test]
fn the_ip_version_alone_changes_only_the_length() {
    let lengths = [V4, V6].map(|ip| {
        let quiet = || Config { signalling: None, ..host(None, ip) };
        let mut net = Net::new(quiet(), quiet(), |_, _, _| true);
        net.with(0, |c| c.write(30_000));
        net.run(ms(900));
        net.sent.iter().map(|(at, side, p)| (*at, *side, p.wire_len().0)).collect::<Vec<_>>()
    });
    let longer: Vec<_> = lengths[0].iter().map(|(at, side, len)| (*at, *side, len + 20)).collect();
    assert_eq!(longer, lengths[1]);
}

/// The SYN/ACK is lost, so the first RTT sample contains the timeout. The repeated request is lost too; it is
/// repeated after a round trip as later samples show it.
#[test]
fn after_a_lost_syn_ack_requests_are_not_repeated_late() {
    let lost = Cell::new(0);
    let mut net = Net::new(host(ASK, V4), host(None, V4), |_, side, packet| {
        let asks = side == 0 && !packet.tcp.flags.has(Flags::SYN) && !said(packet).is_empty();
        let drops = lost.get() < 2 && (side == 1 && lost.get() == 0 || asks);
        lost.set(lost.get() + u32::from(drops));
        lower(packet, mbps(8));
        !drops
    });
    net.with(0, |c| c.write(400_000));
    net.run(ms(2000));
    assert_eq!(lost.get(), 2);
    let established = net.end(0).stats().established_at.unwrap();
    assert_eq!(established, ms(1100));
    let granted = net.end(0).rate().unwrap().changes[0].at;
    assert!(granted <= established + RTT * 5, "{granted}");
}

/// The granted rate counts headers, also those of short segments.
#[test]
fn short_segments_keep_to_the_rate_with_their_headers() {
    for ip in [V4, V6] {
        let mut config = host(ASK, ip);
        config.nagle = false;
        let mut net = Net::new(config, host(None, ip), |_, _, packet| {
            lower(packet, mbps(1));
            true
        });
        // 100 bytes each millisecond are less than the rate, but not with headers
        for i in 100..1600 {
            net.run(ms(i));
            net.with(0, |c| c.write(100));
        }
        let data = net.of(0).filter(|(at, packet)| *at > ms(500) && packet.body.len > 0);
        let short = data.filter(|(_, packet)| packet.body.len <= 300).count();
        let rate = net.rate(0, ms(500));
        assert!(short > 300 && rate <= 1.02 * mbps(1).bps() as f64, "{ip:?}: {rate} bit/s, {short} short");
    }
}
