//! What a flow router does not give: rates beyond the grant, reservations that do not fit, rates that a
//! source may not have, and shares for requests that nobody answers.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod rig;

use bentpipe_advice::tia1039::{Kind, RateType, Structure, structures, write};
use bentpipe_base::{Flags, IpVersion, OtherOptions, Packet, Prefix, Rate};
use bentpipe_flow_router::{ClassConfig, MANAGED, Policy, RouterConfig, Rule, SENDERS};
use rig::{ACK, BOTH, Rig, SYN, SYN_ACK, Talk, field, guaranteed, mbps, rates};

const A: Talk = Talk { ip: IpVersion::V4, port: 1 };
const B: Talk = Talk { ip: IpVersion::V4, port: 2 };
const C: Talk = Talk { ip: IpVersion::V4, port: 3 };

/// Sends data of 1040 B every 4 ms (2.08 Mbit/s) times `speed`; returns how many packets passed.
fn send_for(rig: &mut Rig, talk: Talk, ms: u64, speed: u64) -> u64 {
    let mut passed = 0;
    for _ in 0..ms / 4 {
        for _ in 0..speed {
            passed += u64::from(rig.put(SENDERS, talk.data()).is_some());
        }
        rig.wait(4);
    }
    passed
}

/// A router of 10 Mbit/s whose class may reserve 8, all of which host 1 may have.
fn reserving(rule: impl FnOnce(&mut Rule)) -> Rig {
    let mut only = Rule::new(Prefix::new([10, 0, 1, 0].into(), 24).unwrap());
    (only.guaranteed, only.preemption) = (Some(mbps(10)), 63);
    rule(&mut only);
    Rig::with(RouterConfig {
        utilisation: 1.0,
        classes: vec![ClassConfig { reservable: 0.8, ..ClassConfig::default() }],
        policy: Policy { rules: vec![only] },
        ..RouterConfig::new(mbps(10))
    })
}

#[test]
fn a_flow_is_held_to_its_grant_after_the_burst_time() {
    let mut rig = Rig::new(mbps(8));
    rig.open(A);
    // 2.08 Mbit/s times 3 is below the grant, times 5 above it
    assert_eq!(send_for(&mut rig, A, 3000, 3), 2250);
    assert_eq!(rig.report()["policed"], 0);
    // 10.4 Mbit/s last for 0.5 * 8.08 / (10.4 - 8.08) s
    assert_eq!(send_for(&mut rig, A, 1700, 5), 2125);
    let later = (send_for(&mut rig, A, 300, 5), send_for(&mut rig, A, 4000, 5));
    assert!((3850..=3950).contains(&later.1), "{later:?} of 5000, 8.08 Mbit/s are 3885");
    assert_eq!(rig.recycled, rig.report()["policed"]);
}

#[test]
fn packets_without_data_and_flows_without_a_rate_are_never_dropped() {
    let mut rig = Rig::new(Rate::from_bps(64_000).unwrap());
    rig.open(A);
    for _ in 0..5000 {
        rig.passes(SENDERS, &A.there(ACK, 0));
        rig.passes(SENDERS, &B.there(ACK, 1000));
    }
    // nor is one whose start was not seen
    (0..1000).for_each(|_| assert!(rig.put(SENDERS, C.data()).is_some()));
    assert_eq!(rig.report()["policed"], 0);
}

#[test]
fn a_sender_that_ignores_a_reduction_is_held_to_it_after_the_grace_time() {
    let mut rig = Rig::new(mbps(8));
    rig.open(A);
    let offer = rig.ask(B, Structure::request(mbps(100)));
    rig.answer(B, SYN_ACK, &offer);
    assert_eq!(rates(&offer).0, mbps(4).bps());
    // told at once; tolerated for 200 ms, and then until the bucket is empty
    assert_eq!(send_for(&mut rig, A, 400, 3), 300);
    send_for(&mut rig, A, 2000, 3);
    // of 6.24 Mbit/s pass 4.04; the bucket counts without what the router inserts
    let passed = send_for(&mut rig, A, 4000, 3);
    assert!((1900..=1990).contains(&passed), "{passed} of 3000, 4.04 Mbit/s are 1942");
    assert_eq!(rig.report()["reductions"], 1);
    // a raise gains nothing either
    assert_eq!(rig.raise(A, mbps(100)), mbps(4).bps());
}

#[test]
fn a_flow_that_never_answers_is_held_to_each_reduction() {
    let mut rig = Rig::new(mbps(8));
    rig.open(A);
    let share = |rig: &mut Rig, talk| {
        let offer = rig.ask(talk, Structure::request(mbps(100)));
        rig.answer(talk, SYN_ACK, &offer);
        rates(&offer).0
    };
    assert_eq!(share(&mut rig, B), mbps(4).bps());
    send_for(&mut rig, A, 8000, 3);
    // it is not told for some seconds from here on
    rig.passes(SENDERS, &B.there(ACK.with(Flags::FIN), 0));
    let all = send_for(&mut rig, A, 200, 3);
    assert!(all > 145, "all but what the bucket still lacks: {all}");
    assert_eq!(share(&mut rig, C), mbps(4).bps());
    send_for(&mut rig, A, 2400, 3);
    let passed = send_for(&mut rig, A, 3000, 3);
    assert!((1420..=1500).contains(&passed), "{passed} of 2250, 4.04 Mbit/s are 1457");
}

#[test]
fn a_sender_that_obeys_is_not_dropped() {
    let mut rig = Rig::new(mbps(8));
    rig.open(A);
    send_for(&mut rig, A, 2000, 3);
    let offer = rig.ask(B, Structure::request(mbps(100)));
    rig.answer(B, SYN_ACK, &offer);
    let told = rig.told(A).unwrap();
    // the old rate for a round trip, the new one from the response on
    assert_eq!(send_for(&mut rig, A, 100, 3), 75);
    rig.answer(A, ACK, &told);
    assert_eq!(send_for(&mut rig, A, 4000, 1), 1000);
    assert_eq!(rig.report()["policed"], 0);
}

#[test]
fn the_burst_time_is_that_of_the_request() {
    let mut rig = Rig::new(mbps(8));
    let mut request = Structure::request(mbps(8));
    request.set_burst_exponent(15);
    let offer = rig.ask(A, request);
    rig.answer(A, SYN_ACK, &offer);
    // two packets of the largest size, whatever the burst time
    let passed = (0..10).filter(|_| rig.put(SENDERS, A.data()).is_some()).count();
    assert_eq!(passed, 2);
}

#[test]
fn a_flow_known_from_its_data_alone_is_policed_only_later() {
    let mut rig = Rig::new(mbps(8));
    let mut request = Structure::request(mbps(2));
    request.set_burst_exponent(15);
    rig.ask(A, request);
    // the response took another way
    assert_eq!(send_for(&mut rig, A, 2900, 3), 2175);
    assert_eq!(rig.report()["given_bps"], mbps(2).bps());
    let passed = send_for(&mut rig, A, 4000, 3);
    assert!(passed < 1300, "{passed} of 3000");
}

#[test]
fn what_does_not_fit_is_refused_or_preempts_a_lower_priority() {
    for ip in BOTH {
        let mut rig = reserving(|_| ());
        let [a, b, c] = [1, 2, 3].map(|port| Talk::new(ip, port));
        let offer = rig.ask(a, guaranteed(RateType::Guaranteed, mbps(5), 1));
        assert_eq!((rates(&offer), offer.is_changed()), ((0, mbps(5).bps()), false));
        rig.answer(a, SYN_ACK, &offer);
        assert_eq!(rig.told(a), None);
        let refused = rig.ask(b, guaranteed(RateType::Composite, mbps(5), 1));
        assert_eq!((rates(&refused), refused.is_changed()), ((mbps(5).bps(), 0), true));
        rig.answer(b, SYN_ACK, &refused);
        assert_eq!((rig.report()["refused"], rig.report()["preempted"]), (1, 0));
        let offer = rig.ask(c, guaranteed(RateType::Maximum, mbps(6), 2));
        assert_eq!(rates(&offer), (0, field(6000)));
        assert_eq!((rig.told(a), rig.report()["preempted"]), (None, 0), "the request may be forged");
        rig.answer(c, SYN_ACK, &offer);
        let told = rig.told(a).unwrap();
        assert_eq!((told.kind(), rates(&told), told.is_changed()), (Some(Kind::Renegotiate), (0, 0), true));
        rig.answer(a, ACK, &told);
        let report = rig.report();
        assert_eq!((report["refused"], report["preempted"], report["reserved_bps"]), (1, 1, field(6000)));
        // the rest is divided between the second and the first, which sends on without a rate
        assert_eq!(rates(&rig.told(b).unwrap()).0, field(2000));
    }
}

#[test]
fn reservations_end_with_their_flows() {
    let mut rig = reserving(|_| ());
    for (talk, rate_type) in [(A, RateType::Guaranteed), (B, RateType::Maximum)] {
        let offer = rig.ask(talk, guaranteed(rate_type, mbps(4), 0));
        rig.answer(talk, SYN_ACK, &offer);
    }
    rig.wait(2100);
    assert_eq!(rig.report()["reserved_bps"], mbps(4).bps(), "a maximum rate is held while it is used");
    rig.wait(60_000);
    assert_eq!(rig.report()["reserved_bps"], mbps(4).bps(), "a guaranteed one until it is given back");
    rig.passes(SENDERS, &A.there(rig::FIN_ACK, 0));
    assert_eq!(rig.report()["reserved_bps"], 0);
}

#[test]
fn when_the_rate_falls_reservations_that_do_not_fit_are_withdrawn() {
    let mut rig = reserving(|_| ());
    for (talk, priority) in [(A, 1), (B, 2)] {
        let offer = rig.ask(talk, guaranteed(RateType::Guaranteed, mbps(4), priority));
        rig.answer(talk, SYN_ACK, &offer);
    }
    rig.set_rate(mbps(5));
    assert_eq!(rates(&rig.told(A).unwrap()), (0, 0));
    assert_eq!((rig.told(B), rig.report()["reserved_bps"]), (None, mbps(4).bps()));
}

#[test]
fn a_request_beyond_what_its_source_may_have_is_marked_down_and_passes() {
    for ip in BOTH {
        let talk = Talk::new(ip, 1);
        // without a rule
        let mut rig = Rig::new(mbps(10));
        let marked = rig.ask(talk, guaranteed(RateType::Composite, mbps(4), 9));
        assert_eq!((rates(&marked), marked.preemption_priority()), ((mbps(4).bps(), 0), 0));
        assert!(marked.is_changed() && rig.report()["refused"] == 1);
        // with one
        let mut rig = reserving(|rule| {
            (rule.available, rule.guaranteed, rule.preemption) = (Some(mbps(2)), Some(mbps(1)), 5);
        });
        let marked = rig.ask(talk, guaranteed(RateType::Composite, mbps(4), 9));
        let allowed = (field(2000), field(1000));
        assert_eq!((rates(&marked), marked.preemption_priority()), (allowed, 5));
        assert!(marked.is_changed() && rig.report()["refused"] == 0);
    }
}

#[test]
fn requests_that_nobody_answers_do_not_keep_shares() {
    let mut rig = Rig::new(mbps(60));
    rig.open(A);
    for port in 100..105 {
        rig.ask(Talk { port, ..A }, Structure::request(mbps(100)));
    }
    assert_eq!(rig.told(A), None, "are there more?");
    rig.wait(5);
    let told = rig.told(A).unwrap();
    assert_eq!(rates(&told).0, field(10_000), "they may be genuine");
    rig.answer(A, ACK, &told);
    rig.wait(3100);
    assert_eq!(rig.raise(A, mbps(100)), field(60_000));
}

#[test]
fn many_waiting_requests_get_shares_only_with_their_responses() {
    let config = RouterConfig { utilisation: 1.0, half_open: 8, ..RouterConfig::new(mbps(60)) };
    let mut rig = Rig::with(config);
    rig.open(A);
    for port in 100..150 {
        rig.ask(Talk { port, ..A }, Structure::request(mbps(100)));
    }
    assert_eq!(rig.told(A), None);
    // a genuine one after them
    rig.wait(1);
    let offer = rig.ask(B, Structure::request(mbps(100)));
    assert_eq!((rates(&offer).0, rig.told(A)), (field(30_000), None));
    rig.answer(B, SYN_ACK, &offer);
    assert_eq!(rates(&rig.told(A).unwrap()).0, field(30_000));
    // once they are gone, requests are trusted again
    rig.wait(4000);
    rig.ask(C, Structure::request(mbps(100)));
    assert_eq!(rates(&rig.told(B).unwrap()).0, field(20_000));
}

#[test]
fn requests_that_stay_unanswered_again_and_again_are_not_trusted() {
    let mut rig = Rig::new(mbps(60));
    rig.open(A);
    for port in 100..140 {
        rig.ask(Talk { port, ..A }, Structure::request(mbps(100)));
    }
    rig.wait(3100); // all of them expired
    rig.ask(B, Structure::request(mbps(100)));
    assert_eq!(rig.told(A), None, "it gets its share when it is answered");
    assert_eq!(rig.raise(A, mbps(100)), field(60_000));
}

#[test]
fn a_full_table_gives_rates_but_keeps_no_state() {
    let config = RouterConfig { utilisation: 1.0, flows: 2, ..RouterConfig::new(mbps(60)) };
    let mut rig = Rig::with(config);
    rig.open(A);
    rig.open(B);
    let offer = rig.ask(C, Structure::request(mbps(100)));
    rig.answer(C, SYN_ACK, &offer);
    assert_eq!((rates(&offer).0, rig.report()["flows"]), (field(20_000), 2));
    assert_eq!(rig.told(C), None);
}

#[test]
fn signed_segments_count_but_are_never_altered() {
    let mut rig = Rig::new(mbps(60));
    rig.open(A);
    let signed = OtherOptions { kinds: OtherOptions::SIGNED, len: 20 };
    rig.passes(SENDERS, &Packet { other_options: signed, ..B.data() });
    rig.passes(MANAGED, &Packet { other_options: signed, ..B.back(ACK) });
    assert_eq!(rates(&rig.told(A).unwrap()).0, field(30_000));
}

#[test]
fn two_requests_in_one_packet_are_handled_in_turn() {
    let mut rig = Rig::new(mbps(60));
    let mut packet = A.there(SYN, 0);
    write(&mut packet, &[Structure::request(mbps(100)), Structure::request(mbps(10))]);
    let out = rig.put(SENDERS, packet).unwrap();
    let available: Vec<u64> = structures(&out).as_slice().iter().map(|s| rates(s).0).collect();
    assert_eq!(available, [field(60_000), field(10_000)]);
}
