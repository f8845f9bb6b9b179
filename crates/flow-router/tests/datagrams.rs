//! Flows of datagrams at a flow router: it tells them in datagrams of its own.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod rig;

use bentpipe_advice::tia1039::{Kind, QOS_FLOW, RateType, Structure, write};
use bentpipe_base::{Dscp, Packet, Prefix, Proto};
use bentpipe_flow_router::{ClassConfig, MANAGED, Policy, RouterConfig, Rule};
use rig::{BOTH, Rig, Talk, guaranteed, mbps, rates};

/// A router of 10 Mbit/s that may reserve 8.
fn reserving() -> Rig {
    let from = Prefix::new([10, 0, 0, 0].into(), 8).unwrap();
    let rule = Rule { guaranteed: Some(mbps(10)), preemption: 63, delay: 63, ..Rule::new(from) };
    Rig::with(RouterConfig {
        utilisation: 1.0,
        classes: vec![ClassConfig { reservable: 0.8, ..ClassConfig::default() }],
        policy: Policy { rules: vec![rule] },
        ..RouterConfig::new(mbps(10))
    })
}

fn ask(rig: &mut Rig, talk: Talk, structure: Structure) -> Structure {
    rig.send(talk.datagram(Dscp::DEFAULT, 0), structure)
}

fn answer(rig: &mut Rig, talk: Talk, structure: &Structure) {
    let mut back = Packet { proto: Proto::Udp, ..talk.back(rig::ACK) };
    let mut response = *structure;
    response.set_kind(Kind::Response);
    write(&mut back, &[response]);
    rig.passes(MANAGED, &back);
}

fn open(rig: &mut Rig, talk: Talk, request: Structure) -> Structure {
    let offer = ask(rig, talk, request);
    rig.wait(50);
    answer(rig, talk, &offer);
    offer
}

/// Sends a datagram of an agreed flow; returns what the router tells ahead of it.
fn told(rig: &mut Rig, talk: Talk) -> Option<Structure> {
    let packet = talk.datagram(QOS_FLOW, 1000);
    let (notice, out) = rig.datagram(&packet);
    let out = out.unwrap();
    assert_eq!(Packet { priority: 0, ..out }, packet, "the application's datagram is not altered");
    notice
}

#[test]
fn a_preempted_flow_is_told_in_a_datagram_until_it_has_answered() {
    for ip in BOTH {
        let mut rig = reserving();
        let [a, b] = [1, 2].map(|port| Talk::new(ip, port));
        let offer = open(&mut rig, a, guaranteed(RateType::Guaranteed, mbps(8), 1));
        assert_eq!((rates(&offer), told(&mut rig, a)), ((0, mbps(8).bps()), None));
        open(&mut rig, b, guaranteed(RateType::Maximum, mbps(4), 2));
        let lost = told(&mut rig, a).unwrap();
        assert_eq!((lost.kind(), rates(&lost), lost.is_changed()), (Some(Kind::Renegotiate), (0, 0), true));
        assert_eq!(told(&mut rig, a), None, "once per round trip");
        rig.wait(60);
        assert_eq!(told(&mut rig, a), Some(lost), "the first one was lost");
        answer(&mut rig, a, &lost);
        rig.wait(60);
        assert_eq!((told(&mut rig, a), told(&mut rig, b)), (None, None));
        let report = rig.report();
        assert_eq!((report["preempted"], report["reductions"]), (1, 1));
        assert_eq!(report["reserved_bps"], mbps(4).bps());
    }
}

#[test]
fn a_flow_whose_start_was_lost_is_asked_to_repeat_it() {
    let mut rig = reserving();
    let talk = Talk::new(BOTH[0], 1);
    assert_eq!(told(&mut rig, talk).unwrap().kind(), Some(Kind::MissedStart));
    let mut again = guaranteed(RateType::Guaranteed, mbps(8), 1);
    again.set_kind(Kind::ResendStart);
    open(&mut rig, talk, again);
    assert_eq!((told(&mut rig, talk), rig.report()["reserved_bps"]), (None, mbps(8).bps()));
}

#[test]
fn an_idle_maximum_rate_ends_and_a_guaranteed_one_only_when_it_is_given_back() {
    let mut rig = reserving();
    let [a, b] = [1, 2].map(|port| Talk::new(BOTH[0], port));
    let offer = open(&mut rig, a, guaranteed(RateType::Guaranteed, mbps(4), 0));
    open(&mut rig, b, guaranteed(RateType::Maximum, mbps(4), 0));
    for _ in 0..5 {
        rig.wait(1000);
        told(&mut rig, b);
    }
    assert_eq!(rig.report()["reserved_bps"], mbps(8).bps(), "both are held");
    rig.wait(2100);
    assert_eq!(rig.report()["reserved_bps"], mbps(4).bps());
    rig.wait(600_000);
    assert_eq!(rig.report()["reserved_bps"], mbps(4).bps());
    let mut close = offer;
    close.set_kind(Kind::Close);
    ask(&mut rig, a, close);
    assert_eq!(rig.report()["reserved_bps"], 0);
}

#[test]
fn datagrams_without_a_rate_pass_alone() {
    let mut rig = reserving();
    let talk = Talk::new(BOTH[0], 1);
    for dscp in [Dscp::DEFAULT, Dscp::new(46).unwrap()] {
        let packet = talk.datagram(dscp, 1000);
        assert_eq!(rig.datagram(&packet), (None, Some(packet)));
    }
}

#[test]
fn packets_are_marked_by_reservation_and_delay_priority() {
    let mut rig = reserving();
    let talks = [1, 2, 3].map(|port| Talk::new(BOTH[0], port));
    let mut first = guaranteed(RateType::Guaranteed, mbps(4), 0);
    first.set_delay_priority(9);
    let mut second = Structure::request(mbps(2));
    second.set_delay_priority(5);
    open(&mut rig, talks[0], first);
    open(&mut rig, talks[1], second);
    let marks = talks.map(|talk| {
        let (_, out) = rig.datagram(&talk.datagram(QOS_FLOW, 1000));
        out.unwrap().priority
    });
    assert_eq!(marks, [64 + 9, 5, 0]);
}
