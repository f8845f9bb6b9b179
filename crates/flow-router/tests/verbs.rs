//! What senders may say besides a first request, also lost and repeated: confirmations, missed starts, other
//! rates, the end; a move to another address; who pays; flows whose ports cannot be read.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod rig;

use bentpipe_advice::tia1039::{Kind, QOS_FLOW, RateType, Structure, structures, write};
use bentpipe_base::{Addr, IpVersion, Packet, Prefix, Proto};
use bentpipe_flow_router::{ClassConfig, MANAGED, Policy, RouterConfig, Rule, SENDERS};
use rig::{ACK, BOTH, Rig, SYN, SYN_ACK, Talk, field, guaranteed, mbps, rates};

const A: Talk = Talk { ip: IpVersion::V4, port: 1 };
const B: Talk = Talk { ip: IpVersion::V4, port: 2 };
const GUARANTEED: RateType = RateType::Guaranteed;

/// A rule for the hosts of a prefix, which may have all of the rate and all priorities.
fn rule(host: u8, length: u8) -> Rule {
    let from = Prefix::new([10, 0, host, 0].into(), length).unwrap();
    Rule { guaranteed: Some(mbps(100)), preemption: 63, delay: 63, ..Rule::new(from) }
}

/// A router of 10 Mbit/s whose class may reserve 8.
fn reserving(rules: Vec<Rule>) -> Rig {
    Rig::with(RouterConfig {
        utilisation: 1.0,
        classes: vec![ClassConfig { reservable: 0.8, ..ClassConfig::default() }],
        policy: Policy { rules },
        ..RouterConfig::new(mbps(10))
    })
}

fn open(rig: &mut Rig, talk: Talk, request: Structure) -> Structure {
    let offer = rig.ask(talk, request);
    rig.answer(talk, SYN_ACK, &offer);
    offer
}

fn reserved(rig: &Rig) -> u64 {
    rig.report()["reserved_bps"]
}

fn kind(mut structure: Structure, kind: Kind) -> Structure {
    structure.set_kind(kind);
    structure
}

#[test]
fn a_repeated_confirmation_says_nothing_new_and_a_higher_one_nothing() {
    let mut rig = reserving(vec![rule(0, 8)]);
    let offer = open(&mut rig, A, guaranteed(GUARANTEED, mbps(8), 0));
    let mut confirmed = kind(offer, Kind::Confirmation);
    confirmed.set_guaranteed(Some(mbps(4)));
    for _ in 0..3 {
        assert_eq!(rig.send(A.there(ACK, 0), confirmed), confirmed, "it passes unchanged");
        assert_eq!(reserved(&rig), mbps(4).bps());
    }
    confirmed.set_guaranteed(Some(mbps(6)));
    rig.send(A.there(ACK, 0), confirmed);
    // nor does one of a flow that is not known
    rig.send(B.there(ACK, 0), confirmed);
    assert_eq!((reserved(&rig), rig.report()["flows"]), (mbps(4).bps(), 1));
    // what was released is free for another
    assert_eq!(rates(&open(&mut rig, B, guaranteed(GUARANTEED, mbps(4), 0))).1, mbps(4).bps());
}

/// The confirmation was lost: the response alone settles it.
#[test]
fn a_lost_confirmation_costs_nothing_where_the_response_passes() {
    let mut rig = reserving(vec![rule(0, 8)]);
    let mut offer = rig.ask(A, guaranteed(GUARANTEED, mbps(8), 0));
    offer.set_guaranteed(Some(mbps(3)));
    rig.answer(A, SYN_ACK, &offer);
    assert_eq!(reserved(&rig), field(3000));
}

#[test]
fn a_missed_start_is_asked_for_until_the_sender_repeats_it() {
    for ip in BOTH {
        let mut rig = reserving(vec![rule(0, 8)]);
        let talk = Talk::new(ip, 1);
        let told = |rig: &mut Rig| rig.told(talk).and_then(|s| s.kind());
        assert_eq!(told(&mut rig), Some(Kind::MissedStart));
        assert_eq!(told(&mut rig), None, "not in each packet");
        rig.wait(200);
        assert_eq!(told(&mut rig), Some(Kind::MissedStart), "the first one was lost");
        let again = kind(guaranteed(GUARANTEED, mbps(5), 0), Kind::ResendStart);
        for _ in 0..2 {
            let offer = rig.send(talk.there(ACK, 1000), again);
            assert_eq!(rates(&offer).1, mbps(5).bps());
            rig.answer(talk, ACK, &offer);
        }
        assert_eq!((reserved(&rig), told(&mut rig)), (mbps(5).bps(), None));
        assert_eq!(rig.report()["flows"], 1);
    }
}

#[test]
fn another_rate_replaces_the_one_before_when_it_is_answered() {
    let mut rig = reserving(vec![rule(0, 8)]);
    open(&mut rig, A, guaranteed(GUARANTEED, mbps(4), 0));
    for (wanted, got) in [(6, 6), (6, 6), (9, 6), (2, 2)] {
        let request = kind(guaranteed(GUARANTEED, mbps(wanted), 0), Kind::Renegotiate);
        let offer = rig.send(A.there(ACK, 1000), request);
        rig.answer(A, ACK, &offer);
        assert_eq!((rates(&offer).1, reserved(&rig)), (field(got * 1000), field(got * 1000)), "{wanted}");
    }
    // the answer is lost: what was promised before holds
    rig.send(A.there(ACK, 1000), kind(guaranteed(GUARANTEED, mbps(5), 0), Kind::Renegotiate));
    assert_eq!((reserved(&rig), rig.told(A)), (field(5000), None));
}

#[test]
fn a_rate_that_is_given_back_is_free_at_once_and_only_once() {
    let mut rig = reserving(vec![rule(0, 8)]);
    let offer = open(&mut rig, A, guaranteed(GUARANTEED, mbps(8), 0));
    let close = kind(offer, Kind::Close);
    // of a flow that is not known
    assert_eq!(rig.send(B.there(ACK, 0), close), close);
    assert_eq!(reserved(&rig), mbps(8).bps());
    rig.send(A.there(ACK, 0), close);
    assert_eq!(reserved(&rig), 0);
    assert_eq!(rates(&open(&mut rig, B, guaranteed(GUARANTEED, mbps(8), 0))).1, mbps(8).bps());
    // repeated, since the sender does not know that it arrived
    rig.send(A.there(ACK, 0), close);
    assert_eq!((reserved(&rig), rig.told(B)), (mbps(8).bps(), None));
}

#[test]
fn a_request_takes_from_others_only_when_its_response_passes() {
    let mut rig = reserving(vec![rule(0, 8)]);
    open(&mut rig, A, guaranteed(GUARANTEED, mbps(8), 1));
    // forged ones, each of the highest priority
    for port in 100..110 {
        let offer = rig.ask(Talk { port, ..A }, guaranteed(GUARANTEED, mbps(8), 63));
        assert_eq!(rates(&offer).1, mbps(8).bps());
    }
    assert_eq!((reserved(&rig), rig.report()["preempted"], rig.told(A)), (mbps(8).bps(), 0, None));
    // two genuine ones: the second finds that the first has it
    let [b, c] = [2, 3].map(|port| Talk { port, ..A });
    let offers = [b, c].map(|talk| rig.ask(talk, guaranteed(GUARANTEED, mbps(8), 9)));
    rig.answer(b, SYN_ACK, &offers[0]);
    assert_eq!((reserved(&rig), rig.report()["preempted"]), (mbps(8).bps(), 1));
    rig.wait(5); // after a burst of requests it is not clear at once whether they count
    assert_eq!(rates(&rig.told(A).unwrap()), (0, 0));
    rig.answer(c, SYN_ACK, &offers[1]);
    assert_eq!((reserved(&rig), rig.report()["preempted"]), (mbps(8).bps(), 1));
    assert_eq!((rates(&rig.told(c).unwrap()), rig.told(b)), ((0, 0), None));
}

#[test]
fn while_requests_are_not_trusted_they_reserve_nothing() {
    let mut rig = reserving(vec![rule(0, 8)]);
    for port in 100..140 {
        rig.ask(Talk { port, ..A }, Structure::request(mbps(1)));
    }
    rig.wait(3100); // all of them expired
    let offer = rig.ask(A, guaranteed(GUARANTEED, mbps(8), 0));
    assert_eq!((rates(&offer).1, reserved(&rig)), (mbps(8).bps(), 0));
    rig.answer(A, SYN_ACK, &offer);
    assert_eq!(reserved(&rig), mbps(8).bps());
}

/// A request of host 3 that names the flow of host 1 with this port.
fn moved(rig: &mut Rig, host: u32, port: u16, mut request: Structure) -> (Structure, Packet) {
    request.set_source(0x0A00_0101, port);
    let mut packet = Talk::from(host, A.there(SYN, 0));
    write(&mut packet, &[request]);
    let out = rig.put(SENDERS, packet.clone()).unwrap();
    (structures(&out).as_slice()[0], packet)
}

/// The response to a packet.
fn respond(rig: &mut Rig, asked: &Packet, offer: Structure) {
    let mut back = A.back(SYN_ACK);
    (back.dst, back.dport) = (asked.src, asked.sport);
    write(&mut back, &[kind(offer, Kind::Response)]);
    rig.passes(MANAGED, &back);
}

#[test]
fn a_flow_that_moves_takes_its_reservation_with_it_once() {
    let mut rig = reserving(vec![rule(0, 8)]);
    open(&mut rig, A, guaranteed(GUARANTEED, mbps(8), 0));
    let (offer, asked) = moved(&mut rig, 3, A.port, guaranteed(GUARANTEED, mbps(8), 0));
    assert_eq!((rates(&offer).1, offer.is_changed()), (mbps(8).bps(), false));
    assert_eq!(rig.told(A), None, "until the receiver has answered");
    respond(&mut rig, &asked, offer);
    assert_eq!(reserved(&rig), mbps(8).bps());
    let again = rig.told(A).unwrap();
    assert_eq!(again.kind(), Some(Kind::MissedStart), "the former flow is gone");
    // a second one that names the same flow, and one whose answer comes late
    let (offer, asked) = moved(&mut rig, 4, A.port, guaranteed(GUARANTEED, mbps(8), 0));
    respond(&mut rig, &asked, offer);
    assert_eq!((rates(&offer).1, reserved(&rig), rig.report()["preempted"]), (0, mbps(8).bps(), 0));
}

#[test]
fn a_move_needs_a_flow_and_a_rule_for_both_addresses() {
    // one rule for all, but no such flow; each host has a rule of its own; a host has none
    let apart = || vec![rule(1, 24), rule(3, 24)];
    for (rules, host, port) in [(vec![rule(0, 8)], 3, 77), (apart(), 3, A.port), (apart(), 5, A.port)] {
        let mut rig = reserving(rules);
        open(&mut rig, A, guaranteed(GUARANTEED, mbps(8), 0));
        let (offer, asked) = moved(&mut rig, host, port, guaranteed(GUARANTEED, mbps(8), 0));
        assert_eq!(rates(&offer).1, 0, "{host} {port}");
        respond(&mut rig, &asked, offer);
        assert_eq!((reserved(&rig), rig.told(A)), (mbps(8).bps(), None), "{host} {port}");
    }
}

#[test]
fn an_available_rate_moves_without_a_second_share() {
    let mut rig = reserving(vec![rule(0, 8)]);
    open(&mut rig, A, Structure::request(mbps(100)));
    let (offer, asked) = moved(&mut rig, 3, A.port, Structure::request(mbps(100)));
    assert_eq!(rates(&offer).0, field(10_000));
    respond(&mut rig, &asked, offer);
    assert_eq!(rig.report()["given_bps"], field(10_000));
}

#[test]
fn who_pays_is_known_by_the_rule_of_the_payer() {
    let mut rig = reserving(vec![rule(1, 24), rule(2, 24)]);
    let mut reverse = Structure::request(mbps(1));
    reverse.set_charges_receiver(true);
    open(&mut rig, A, Structure::request(mbps(1)));
    assert!(open(&mut rig, B, reverse).charges_receiver(), "it is carried through");
    (0..3).for_each(|_| assert!(rig.put(SENDERS, A.data()).is_some()));
    (0..2).for_each(|_| assert!(rig.put(SENDERS, B.data()).is_some()));
    rig.passes(SENDERS, &Talk { port: 9, ..A }.there(ACK, 1000));
    let mut charged = Vec::new();
    bentpipe_base::Node::counters(&rig.router, &mut |key, n| {
        if key.starts_with("charged") {
            charged.push(n);
        }
    });
    // nobody without a rule; host 1 as a sender; host 2 as a receiver
    assert_eq!(charged, [0, 0, 3 * 1040, 0, 0, 2 * 1040]);
}

#[test]
fn both_rates_of_a_composite_one_add_up() {
    let mut rig = reserving(vec![rule(0, 8)]);
    let mut request = guaranteed(RateType::Composite, mbps(4), 0);
    request.set_available(Some(mbps(100)));
    let offer = open(&mut rig, A, request);
    assert_eq!(rates(&offer), (field(6000), mbps(4).bps()));
    let other = open(&mut rig, B, Structure::request(mbps(100)));
    assert_eq!(rates(&other).0, field(3000), "half of what is not reserved");
    let told = rig.told(A).unwrap();
    assert_eq!(rates(&told), (field(3000), mbps(4).bps()));
}

/// BT: a flow may exceed its rate for 2^(-BT-1) s, and is policed from then on.
#[test]
fn the_burst_time_halves_with_each_step() {
    for exponent in [0, 1, 3, 5] {
        let mut rig = reserving(vec![rule(0, 8)]);
        let mut request = guaranteed(GUARANTEED, mbps(8), 0);
        request.set_burst_exponent(exponent);
        open(&mut rig, A, request);
        // all at once: the bucket holds that time's worth of the rate and 1 %
        let passed = (0..1000).filter(|_| rig.put(SENDERS, A.data()).is_some()).count();
        let bytes = mbps(8).bps() as f64 * 1.01 / 8.0 / f64::from(2u32 << exponent);
        assert_eq!(passed, ((bytes / 1040.0) as usize).min(1000), "BT {exponent}");
    }
}

#[test]
fn a_flow_behind_encryption_is_known_by_its_label() {
    let mut rig = reserving(vec![rule(0, 8)]);
    let talk = Talk::new(IpVersion::V6, 1);
    let hide = |mut packet: Packet, label: u32| {
        (packet.proto, packet.sport, packet.dport) = (Proto::Opaque, 0, 0);
        packet.tcp = bentpipe_base::TcpHeader::default();
        packet.set_flow_label(label);
        packet
    };
    let asked = |label: u32| {
        let mut packet = talk.there(SYN, 0);
        write(&mut packet, &[Structure::request(mbps(100))]);
        hide(packet, label)
    };
    for (label, share) in [(0xABCDE, 10_000), (0xABCDF, 5000)] {
        let out = rig.put(SENDERS, asked(label)).unwrap();
        let offer = structures(&out).as_slice()[0];
        assert_eq!(rates(&offer).0, field(share));
        let mut back = talk.back(ACK);
        let mut response = kind(offer, Kind::Response);
        response.set_flow_label(label);
        write(&mut back, &[response]);
        rig.passes(MANAGED, &hide(back, 0x777));
    }
    assert_eq!((rig.report()["flows"], rig.report()["given_bps"]), (2, field(10_000) + field(5000)));
    // the first is told in the place that its next packet brings
    let out = rig.put(SENDERS, hide(talk.data(), 0xABCDE)).unwrap();
    assert_eq!(rates(&structures(&out).as_slice()[0]).0, field(5000));
    assert_eq!((out.proto, out.flow_label(), out.src), (Proto::Opaque, Some(0xABCDE), Addr(1)));
    let unknown = hide(talk.data(), 0);
    rig.passes(SENDERS, &unknown);
    assert_eq!(unknown.dscp, QOS_FLOW);
}
