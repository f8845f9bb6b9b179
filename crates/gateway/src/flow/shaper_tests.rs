//! Tests of the pacer: shares, turns and precedence.

use super::super::priority::EF;
use super::*;
use bentpipe_base::{Body, Dscp, Proto};

fn shaper(bps: u64) -> Shaper {
    Shaper::new(&Config { rate: Rate::from_bps(bps), framing: Size(14), ..Config::default() })
}

/// Runs the pacer; each flow sends packets of its size. Returns the bytes of each flow and the end time.
fn run(shaper: &mut Shaper, sizes: &[u64], turns: usize) -> (Vec<u64>, Instant) {
    let (mut now, mut bytes) = (Instant(1_000_000_000), vec![0; sizes.len()]);
    for flow in 0..sizes.len() {
        shaper.request(flow as u32, Want::Data);
    }
    for _ in 0..turns {
        now = now.max(shaper.deadline().expect("somebody waits"));
        let Some(SendGrant::Flow(flow)) = shaper.next(now) else { panic!("it is a flow's turn") };
        bytes[flow as usize] += sizes[flow as usize];
        shaper.sent(now, flow, Size(sizes[flow as usize]), Some(Want::Data));
    }
    (bytes, now)
}

#[test]
fn the_rate_is_a_little_less_than_the_hops() {
    let (bytes, end) = run(&mut shaper(24_000_000), &[1514], 10_000);
    let took =
        end.since(Instant(1_000_000_000) + Duration::from_millis(0)).as_secs_f64() + 1514.0 * 8.0 / 24e6;
    let rate = bytes[0] as f64 * 8.0 / took;
    assert!((rate / (0.995 * 24e6) - 1.0).abs() < 2e-3, "{rate}");
}

/// A flow of small packets gets as many bytes as one of large ones.
#[test]
fn flows_share_by_bytes() {
    let (bytes, _) = run(&mut shaper(24_000_000), &[1514, 400, 900], 30_000);
    let mean = bytes.iter().sum::<u64>() as f64 / 3.0;
    assert!(bytes.iter().all(|b| (*b as f64 / mean - 1.0).abs() < 0.01), "{bytes:?}");
}

#[test]
fn repairs_go_first_and_what_passes_has_its_turn() {
    let mut shaper = shaper(24_000_000);
    let now = Instant(1_000_000_000);
    shaper.request(0, Want::Data);
    shaper.request(1, Want::Repair);
    let packet = Packet { header_len: 28, body: Body { off: 0, len: 1000 }, ..Packet::default() };
    assert!(shaper.pass(now, Box::new(packet)).is_none(), "it waits for its turn");
    assert!(matches!(shaper.next(now), Some(SendGrant::Flow(1))));
    shaper.sent(now, 1, Size(1514), None);
    assert!(matches!(shaper.next(now + Duration::from_millis(10)), Some(SendGrant::Flow(0))));
    shaper.sent(now + Duration::from_millis(10), 0, Size(6000), Some(Want::Data));
    assert!(shaper.next(now + Duration::from_millis(20)).is_some_and(|t| matches!(t, SendGrant::Pass(_))));
    assert!(matches!(shaper.next(now + Duration::from_millis(30)), Some(SendGrant::Flow(0))));
    shaper.forget(0);
    assert_eq!(shaper.deadline(), None);
}

/// Many waiting flows end, and their numbers are reused: each has one turn, and the queues do not grow.
#[test]
fn who_is_gone_has_no_turn() {
    let mut shaper = shaper(24_000_000);
    let mut now = Instant(1_000_000_000);
    for round in 0..50 {
        for flow in 0..1000 {
            shaper.request(flow, if flow % 3 == 0 { Want::Repair } else { Want::Data });
            shaper.request(flow, Want::Data);
        }
        for flow in 0..1000 {
            if (flow + round) % 10 != 0 {
                shaper.forget(flow);
            }
        }
        assert!(shaper.flows.len() + shaper.repairs.len() <= 2 * 1000 + 1400);
    }
    let mut turns = vec![0; 1000];
    while let Some(at) = shaper.deadline() {
        now = now.max(at);
        let Some(SendGrant::Flow(flow)) = shaper.next(now) else { continue };
        turns[flow as usize] += 1;
        shaper.sent(now, flow, Size(1514), None);
    }
    // the last round leaves flows 1, 11, 21 ...; one that requested a repair and data has two turns
    assert!(turns.iter().enumerate().all(|(i, n)| if i % 10 == 1 { (1..=2).contains(n) } else { *n == 0 }));
}

#[test]
fn a_super_packet_counts_every_header_and_is_cut_to_a_millisecond() {
    let shaper = shaper(24_000_000);
    let packet =
        Packet { header_len: 40, segment: 1460, body: Body { off: 0, len: 4000 }, ..Packet::default() };
    assert_eq!(shaper.cost(&packet), Size(4000 + 3 * 54));
    assert_eq!((shaper.largest(1460), shaper.largest(1)), (2920, 3000));
}

const MARKED: Dscp = match Dscp::new(EF) {
    Some(dscp) => dscp,
    None => panic!("a code point"),
};

/// A packet of a passing flow.
fn packet(flow: u16, number: u64, len: u32, is_marked: bool) -> Pkt {
    let dscp = if is_marked { MARKED } else { Dscp::DEFAULT };
    let body = Body { off: number, len };
    Box::new(Packet { sport: flow, proto: Proto::Udp, header_len: 28, dscp, body, ..Packet::default() })
}

/// Serves all until `until`. Collects passing packets with their times; returns the bytes of accelerated
/// flows, which always have 1514 more to send.
fn serve(shaper: &mut Shaper, now: &mut Instant, until: Instant, out: &mut Vec<(Instant, Pkt)>) -> u64 {
    let mut bytes = 0;
    while let Some(at) = shaper.deadline().filter(|at| *at <= until) {
        *now = (*now).max(at);
        match shaper.next(*now) {
            Some(SendGrant::Pass(packet)) => out.push((*now, packet)),
            Some(SendGrant::Flow(flow)) => {
                bytes += 1514;
                shaper.sent(*now, flow, Size(1514), Some(Want::Data));
            }
            None => return bytes,
        }
    }
    *now = until;
    bytes
}

/// The packets of each flow leave in order, whatever the flows send: marked or not, small or large, within
/// their share or beyond.
#[test]
fn no_packet_overtakes_another_of_its_flow() {
    let mut seed = 1_u64;
    let mut dice = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    for round in 0..40 {
        let mut shaper = shaper(2_000_000);
        let (mut now, mut out) = (Instant(1_000_000_000), Vec::new());
        if round % 2 == 0 {
            shaper.request(0, Want::Data);
        }
        let load = 1 + dice(40);
        let mut dropped = 0;
        for number in 0..3000 {
            let flow = dice(6) as u16;
            // flow 0 is small only, flow 1 large only; the others alternate
            let is_large = flow == 1 || flow > 1 && (number / (97 * u64::from(flow))) % 2 == 1;
            let len = if is_large { 1400 } else { 20 + dice(200) as u32 };
            let given = packet(flow, number, len, flow > 2 && dice(3) == 0);
            assert!(shaper.pass(now, given).is_none());
            while shaper.overflow().is_some() {
                dropped += 1;
            }
            let until = now + Duration::from_micros(dice(200) * load);
            serve(&mut shaper, &mut now, until, &mut out);
        }
        let end = now + Duration::from_secs(2);
        serve(&mut shaper, &mut now, end, &mut out);
        assert_eq!(out.len() + dropped, 3000, "round {round}");
        let mut last = [0; 6];
        for (_, packet) in &out {
            let last = &mut last[usize::from(packet.sport)];
            assert!(*last <= packet.body.off, "round {round}: {} after {last}", packet.body.off);
            *last = packet.body.off;
        }
    }
}

/// A flow of small packets sends a large one while its packets wait, since the share is used up: the large
/// one stays behind them, and once none is queued the flow joins the others.
#[test]
fn a_flow_that_is_known_later_stands_behind_its_own_packets() {
    let mut shaper = shaper(2_000_000);
    let mut now = Instant(1_000_000_000);
    for number in 0..40 {
        shaper.pass(now, packet(7, number, 180, false));
    }
    shaper.pass(now, packet(7, 40, 1400, false));
    shaper.pass(now, packet(7, 41, 60, false));
    shaper.pass(now, packet(8, 99, 60, false));
    assert_eq!(shaper.passing.len(EXPRESS), 43);
    let (mut out, end) = (Vec::new(), now + Duration::from_secs(5));
    serve(&mut shaper, &mut now, end, &mut out);
    let order: Vec<u64> = out.iter().filter(|p| p.1.sport == 7).map(|p| p.1.body.off).collect();
    assert_eq!(order, (0..42).collect::<Vec<_>>());
    shaper.pass(now, packet(7, 42, 60, false));
    assert!(shaper.passing.len(EXPRESS) == 0 && shaper.passing.bytes() > 0);
}

/// A call with 50 packets a second, beside accelerated data that fills the hop and a passing flow, waits only
/// for the packet that is being sent.
#[test]
fn a_call_waits_for_nobody() {
    let mut shaper = shaper(8_000_000);
    let (mut now, mut out) = (Instant(1_000_000_000), Vec::new());
    shaper.request(0, Want::Data);
    let mut bulk = 0;
    for number in 0..500_u64 {
        let begun = now;
        shaper.pass(now, packet(1, number, 172, false));
        for _ in 0..8 {
            bulk += 1;
            shaper.pass(now, packet(2, bulk, 1400, false));
        }
        serve(&mut shaper, &mut now, begun + Duration::from_millis(20), &mut out);
        let call = out.iter().rev().find(|p| p.1.sport == 1 && p.1.body.off == number).expect("it has left");
        assert!(call.0.since(begun) <= Duration::from_millis(4), "{number}: {:?}", call.0.since(begun));
    }
    // the packets of the other flow had to take turns with the accelerated flow
    assert!(out.iter().filter(|p| p.1.sport == 2).count() < 4000);
}

/// Preferred flows take at most a tenth of the rate from the others; beyond that they take turns with them.
#[test]
fn who_goes_first_takes_a_tenth() {
    for (is_marked, len) in [(false, 200), (true, 1200)] {
        let mut shaper = shaper(8_000_000);
        let (mut now, mut out) = (Instant(1_000_000_000), Vec::new());
        shaper.request(0, Want::Data);
        let (mut number, mut bytes) = (0, 0);
        for _ in 0..1000 {
            // as much as the hop carries; the packets of the accelerated flow come on top
            for _ in 0..10_000 / (len + 42) {
                number += 1;
                shaper.pass(now, packet(1, number, len as u32, is_marked));
                while shaper.overflow().is_some() {}
            }
            let until = now + Duration::from_millis(10);
            bytes += serve(&mut shaper, &mut now, until, &mut out);
        }
        let others = bytes as f64 * 8.0 / 10.0 / (0.995 * 8e6);
        let first =
            out.iter().map(|p| p.1.wire_len().0 + 14).sum::<u64>() as f64 * 8.0 / 10.0 / (0.995 * 8e6);
        // beyond the tenth both share byte by byte
        let wanted = 0.45;
        assert!((others - wanted).abs() < 0.02, "{is_marked}: {others}, not {wanted}");
        assert!((first + others - 1.0).abs() < 0.01, "{first} {others}");
    }
}

/// An accelerated flow of keystrokes goes before a bulk flow, until it sends a large packet.
#[test]
fn an_accelerated_flow_of_small_packets_goes_first() {
    let mut shaper = shaper(8_000_000);
    let now = Instant(1_000_000_000);
    let turn = |shaper: &mut Shaper, at: Instant| match shaper.next(at) {
        Some(SendGrant::Flow(flow)) => flow,
        other => panic!("{other:?}"),
    };
    shaper.request(0, Want::Data);
    shaper.request(1, Want::Data);
    let later = |n: u64| now + Duration::from_millis(10 * n);
    // both flows are still unknown
    assert_eq!(turn(&mut shaper, later(0)), 0);
    shaper.sent(later(0), 0, Size(8000), Some(Want::Data));
    assert_eq!(turn(&mut shaper, later(1)), 1);
    shaper.sent(later(1), 1, Size(114), None);
    for n in 2..10 {
        shaper.request(1, Want::Data);
        assert_eq!(turn(&mut shaper, later(n)), 1, "it goes first");
        shaper.sent(later(n), 1, Size(if n == 9 { 1514 } else { 114 }), None);
    }
    shaper.request(1, Want::Data);
    assert_eq!(turn(&mut shaper, later(20)), 0, "it is one of many");
    shaper.forget(1);
    shaper.mark(1, true);
    shaper.request(1, Want::Data);
    assert_eq!(turn(&mut shaper, later(30)), 1, "marked, it goes first whatever it sends");
}

/// Passing flows get turns as accelerated flows do: one that sends more than its share queues and loses
/// packets, one that sends less does not.
#[test]
fn flows_that_pass_share_the_hop_with_all_others() {
    let mut shaper = shaper(8_000_000);
    let (mut now, mut out) = (Instant(1_000_000_000), Vec::new());
    shaper.request(0, Want::Data);
    let (mut bytes, mut dropped) = (0, Vec::new());
    for number in 0..2000 {
        // 1 sends 1.2 Mbit/s; 2 and 3 more than the hop carries, 3 as super-packets
        for flow in [1, 2, 2, 2, 2, 2, 2, 2, 2, 3] {
            let mut given = packet(flow, number, 1400, false);
            if flow == 3 {
                (given.segment, given.body.len) = (1400, 14_000);
            }
            shaper.pass(now, given);
            dropped.extend(core::iter::from_fn(|| shaper.overflow()).map(|packet| packet.sport));
        }
        let until = now + Duration::from_millis(10);
        bytes += serve(&mut shaper, &mut now, until, &mut out);
    }
    let rate = |flow: u16| {
        let of = out.iter().filter(|p| p.1.sport == flow);
        of.map(|p| shaper.cost(&p.1).0).sum::<u64>() as f64
    };
    let shares = [bytes as f64, rate(1), rate(2), rate(3)].map(|bytes| bytes * 8.0 / 20.0 / (0.995 * 8e6));
    let small = 1442.0 * 8.0 * 100.0 / (0.995 * 8e6);
    let part = (1.0 - small) / 3.0;
    for (share, wanted) in shares.into_iter().zip([part, small, part, part]) {
        assert!((share - wanted).abs() < 0.02, "{shares:?}");
    }
    assert!(!dropped.is_empty() && !dropped.contains(&1));
}
