//! Rate signalling in real packets, in simulated time: the engine as a real TCP at both ends of the relay of
//! a scenario with flow routers.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod encodings;
mod lab;

use bentpipe_advice::tia1039::{QOS_FLOW, QOS_SIGNAL, Structure, at_end};
use bentpipe_base::{Dscp, Duration, Flags, Rate, Size};
use bentpipe_scenario::Scenario;
use bentpipe_tcp::RateState;
use bentpipe_wire::parse;
use lab::{LEFT, Lab, RIGHT, rule, scenario};

const SECOND: Duration = Duration::from_secs(1);
/// 30 Mbit/s in the field of a structure.
const GRANTED: Option<Rate> = Rate::from_bps(29_984_000);

fn figure_1() -> Scenario {
    scenario(include_str!("../../../../scenarios/rate-negotiation.toml"))
}

/// Two hosts and one link of 100 Mbit/s, with a flow router.
fn one_link(more: &str) -> Scenario {
    scenario(&format!(
        "schema = 1\ntitle = \"t\"\nduration = \"10 s\"\n[host]\nencoding = \"tia-1039\"\n{more}\n\
         [[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n\
         [[links]]\nname = \"link\"\nfrom = \"a\"\nto = \"b\"\nrate = \"100 Mbit/s\"\ndelay = \"20 ms\"\n\
         buffer = \"1000 packets\"\n[[flow_routers]]\nname = \"router\"\nlink = \"link\"\n\
         [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n"
    ))
}

/// Each router lowers the request, and the sender starts at what the last one gives.
#[test]
fn three_routers_answer_a_real_request() {
    for v6 in [false, true] {
        let mut lab = Lab::new(&figure_1(), v6);
        lab.talk(8_000_000);
        lab.run(SECOND * 6);
        assert_eq!(lab.heard, 8_000_000, "v6 {v6}");
        let sender = lab.sender();
        let rate = sender.rate().unwrap();
        assert_eq!((rate.asked, rate.granted), (Rate::from_bps(100_000_000).unwrap(), GRANTED));
        assert_eq!((rate.state, rate.changes.len()), (RateState::Granted, 1));
        // 8 MB at the rate take 2.2 s
        assert!((2.1..2.6).contains(&lab.now.as_secs_f64()), "{}", lab.now);
        let counters = lab.routers();
        let requests = counters.iter().map(|r| (r.requests > 0, r.policed)).collect::<Vec<_>>();
        assert_eq!(requests, [(true, 0), (true, 0)], "{counters:?}");
    }
}

/// What is on the wire: code points, places of structures, and headers that a strict receiver accepts.
#[test]
fn the_packets_are_those_of_the_source() {
    let mut lab = Lab::new(&figure_1(), false);
    lab.talk(400_000);
    lab.run(SECOND * 3);
    let to = |side: usize| lab.seen.iter().filter(move |(at, _)| *at == side).map(|(_, bytes)| bytes);
    let structure = |bytes: &[u8]| Structure::from_bytes(*bytes.last_chunk().unwrap());
    let (syn, answer) = (to(RIGHT).next().unwrap(), to(LEFT).next().unwrap());
    let segment = parse(syn).unwrap();
    assert_eq!((segment.dscp, segment.payload.len(), segment.tcp.flags), (QOS_SIGNAL, 16, Flags::SYN));
    assert_eq!((structure(syn).available(), structure(syn).is_changed()), (GRANTED, true));
    let segment = parse(answer).unwrap();
    assert_eq!((segment.dscp, segment.payload.len()), (QOS_SIGNAL, 16));
    assert_eq!(structure(answer).available(), GRANTED);
    let data: Vec<_> = to(RIGHT).skip(1).map(|bytes| parse(bytes).unwrap()).collect();
    assert!(data.len() > 270 && data.iter().all(|s| [QOS_FLOW, QOS_SIGNAL].contains(&s.dscp)));
    assert!(data.iter().any(|s| s.dscp == QOS_SIGNAL && at_end(Flags::ACK, s.payload) == 16));
    assert!(data.iter().all(|s| s.payload.len() <= 1448), "with a structure it is a full segment");
}

/// A second flow halves the share of the first, and a request later raises it again: no byte is wrong, in
/// either IP version.
#[test]
fn a_stream_is_exact_while_routers_insert_reductions() {
    for v6 in [false, true] {
        let mut lab = Lab::new(&one_link(""), v6);
        lab.talk(12_000_000);
        lab.run_until(SECOND / 2);
        lab.talk(3_000_000);
        lab.run(SECOND * 20);
        assert_eq!((lab.heard, lab.all_heard()), (15_000_000, true), "v6 {v6}");
        let rate = lab.sender().rate().unwrap();
        let causes: Vec<_> = rate.changes.iter().map(|c| c.cause).collect();
        assert!(causes.starts_with(&["granted", "reduced"]) && causes.contains(&"raised"), "{causes:?}");
        let inserted = |bytes: &Vec<u8>| rule(bytes).is_some_and(|s| s.is_changed());
        let reductions = lab.seen.iter().filter(|(side, bytes)| *side == RIGHT && inserted(bytes)).count();
        assert!(reductions >= 2, "{reductions}");
    }
}

/// Bytes that look like structures, in data of every code point: none of them is lost or taken for one.
#[test]
fn data_that_looks_like_structures_is_data() {
    let one = *Structure::request(Rate::from_bps(64_000).unwrap()).bytes();
    for (more, asks) in [("", true), ("ask = \"none\"", false)] {
        let mut lab = Lab::new(&one_link(more), false);
        lab.says = one.repeat(100_000);
        lab.talk(1_600_000);
        lab.run(SECOND * 20);
        assert_eq!((lab.heard, lab.all_heard()), (1_600_000, true), "asks {asks}");
        let rest = lab.seen.iter().filter(|(_, bytes)| parse(bytes).unwrap().payload.len() == 1).count();
        assert!(rest > 10, "segments that end like a structure are cut: {rest}");
    }
}

/// The path takes the code points away from some time on, or sets that of structures.
#[test]
fn rewritten_code_points_corrupt_no_stream() {
    let one = *Structure::request(Rate::from_bps(64_000).unwrap()).bytes();
    for (to, data) in [(Dscp::DEFAULT, vec![]), (Dscp::DEFAULT, one.repeat(4096)), (QOS_FLOW, vec![])] {
        let mut lab = Lab::new(&one_link(""), false);
        if !data.is_empty() {
            lab.says = data;
        }
        lab.rewrites = Some((SECOND / 5, to));
        lab.talk(6_000_000);
        lab.run(SECOND * 60);
        assert_eq!((lab.heard, lab.all_heard()), (6_000_000, true), "{to:?}");
    }
}

/// A super-packet of packets with structures is read packet by packet, and an unchanged packet leaves as it
/// came.
#[test]
fn super_packets_with_structures_are_cut_before_they_are_read() {
    let mut lab = Lab::new(&one_link("ask = \"none\""), false);
    let (bytes, vnet) = lab::signalling_super_packet(5);
    let sent = lab.pass(&bytes, &vnet);
    assert_eq!(sent.len(), 5);
    for (i, packet) in sent.iter().enumerate() {
        let segment = parse(packet).unwrap();
        assert_eq!((segment.payload.len(), segment.dscp), (1000, QOS_SIGNAL));
        assert_eq!(segment.tcp.seq.0, 77 + 1000 * i as u32);
        assert_eq!(segment.payload, &bytes[40 + 1000 * i..40 + 1000 * (i + 1)]);
    }
}

/// The rate that a user sets for a link is that of the flow router before it, until the link is reset.
#[test]
fn a_link_s_new_rate_is_divided() {
    let mut lab = Lab::new(&one_link(""), false);
    lab.talk(20_000_000);
    lab.run_until(SECOND / 2);
    let before = lab.sender().rate().unwrap().granted.unwrap().bps();
    assert!((94_000_000..=95_000_000).contains(&before), "{before}");
    lab.set_link_rate(Rate::from_bps(20_000_000));
    lab.run_until(SECOND);
    let after = lab.sender().rate().unwrap().granted.unwrap().bps();
    assert!((18_900_000..=19_000_000).contains(&after), "{after}");
    lab.set_link_rate(None);
    lab.run(SECOND * 20);
    assert_eq!((lab.heard, Size(lab.heard)), (20_000_000, Size(20_000_000)));
    assert!(lab.sender().rate().unwrap().changes.iter().any(|c| c.cause == "raised"));
}

/// A firewall drops SYNs with a structure: only the first connection waits for the timeout of its SYN.
#[test]
fn a_peer_that_structures_in_syns_do_not_reach_is_remembered() {
    let wall = "[[middleboxes]]\nname = \"wall\"\nlink = \"link\"\ndrop = \"syn-with-data\"\n";
    let mut lab = Lab::new(&one_link(wall), false);
    let times = [(); 3].map(|()| {
        let start = lab.now;
        lab.talk(20_000);
        lab.run(SECOND * 3);
        lab.now.since(start).as_secs_f64()
    });
    assert!(times[0] > 1.0 && times[1..].iter().all(|s| *s < 0.3), "{times:?}");
}
