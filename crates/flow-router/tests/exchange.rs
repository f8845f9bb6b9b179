//! What a flow router says to flows, and what it makes of their answers.

mod rig;

use bentpipe_advice::tia1039::{Kind, QOS_SIGNAL, RateType, Structure, structures, write};
use bentpipe_base::{Addr, Dscp, Duration, IpVersion, Node, OtherOptions, Packet, Prefix, Proto};
use bentpipe_flow_router::{ClassConfig, MANAGED, Policy, RouterConfig, Rule, SENDERS};
use rig::{ACK, BOTH, FIN_ACK, RST, Rig, SYN, SYN_ACK, Talk, field, mbps, rates};

#[test]
fn each_router_lowers_what_it_cannot_give() {
    for ip in BOTH {
        let (mut first, mut core, mut last) =
            (Rig::new(mbps(35)), Rig::new(mbps(10_000)), Rig::new(mbps(30)));
        let talk = Talk::new(ip, 1);
        let asked = Structure::request(mbps(100));
        let offer = first.ask(talk, asked);
        assert_eq!((rates(&offer), offer.is_changed()), ((34_944_000, 0), true));
        let offer = core.ask(talk, offer);
        assert_eq!(rates(&offer).0, 34_944_000, "a router never raises it");
        let offer = last.ask(talk, offer);
        assert_eq!(rates(&offer).0, 29_984_000);
        for rig in [&mut last, &mut core, &mut first] {
            rig.answer(talk, SYN_ACK, &offer);
            assert_eq!(rig.report()["given_bps"], 29_984_000);
        }
        // the first router knows that the flow is limited elsewhere, and gives the rest to the next
        first.set_rate(mbps(100));
        assert_eq!(first.open(Talk::new(ip, 2)), field(100_000 - 29_984));
        // nobody lowered this one: M stays 0
        let mut wide = Rig::new(mbps(1000));
        let offer = wide.ask(talk, asked);
        assert_eq!((rates(&offer).0, offer.is_changed()), (99_968_000, false));
    }
}

#[test]
fn a_second_flow_halves_the_first_in_its_next_packet() {
    for ip in BOTH {
        let mut rig = Rig::with(RouterConfig::new(mbps(60)));
        let (a, b) = (Talk::new(ip, 1), Talk::new(ip, 2));
        assert_eq!(rig.open(a), field(57_000), "95 % of the rate");
        assert_eq!(rig.told(a), None);
        let offer = rig.ask(b, Structure::request(mbps(10_000)));
        assert_eq!(rates(&offer).0, field(28_500));
        let told = rig.told(a).unwrap();
        assert_eq!((told.kind(), rates(&told).0), (Some(Kind::Renegotiate), field(28_500)));
        assert!(told.is_changed());
        assert_eq!(rig.told(a), None, "it was told");
        rig.answer(b, SYN_ACK, &offer);
        assert_eq!(rig.told(b), None);
        rig.answer(a, ACK, &told);
        rig.wait(1000);
        assert_eq!((rig.told(a), rig.told(b)), (None, None), "both have what they may");
        let report = rig.report();
        assert_eq!((report["flows"], report["requests"], report["reductions"]), (2, 2, 1));
        assert_eq!(report["given_bps"], 2 * field(28_500));
    }
}

#[test]
fn a_reduction_is_repeated_once_per_round_trip_until_it_is_answered() {
    for ip in BOTH {
        let mut rig = Rig::new(mbps(60));
        let (a, b) = (Talk::new(ip, 1), Talk::new(ip, 2));
        rig.open(a); // takes 100 ms
        rig.ask(b, Structure::request(mbps(100)));
        let told = rig.told(a).unwrap();
        rig.wait(99);
        assert_eq!(rig.told(a), None);
        rig.wait(1);
        assert_eq!(rig.told(a), Some(told));
        rig.wait(100);
        // a response to something else does not count
        let mut other = told;
        other.set_available(Some(mbps(59)));
        rig.answer(a, ACK, &other);
        assert_eq!(rig.told(a), Some(told));
        rig.wait(20);
        rig.answer(a, ACK, &told);
        rig.wait(1000);
        assert_eq!((rig.told(a), rig.report()["reductions"]), (None, 1));
    }
}

#[test]
fn data_that_is_sent_again_after_it_carried_a_reduction_carries_no_other() {
    for ip in BOTH {
        let mut rig = Rig::new(mbps(60));
        let (a, b) = (Talk::new(ip, 1), Talk::new(ip, 2));
        rig.open(a);
        rig.open(b);
        let tells = |rig: &mut Rig| rig.put(SENDERS, a.data()).unwrap().dscp == QOS_SIGNAL;
        assert!(tells(&mut rig));
        // an agent that is gone: what carries a structure is lost behind the router, each time
        for pause in [300, 600, 1200, 2400] {
            rig.wait(pause);
            assert!(!tells(&mut rig), "after {pause} ms");
        }
        assert!(rig.told(a).is_some(), "new data does");
    }
}

#[test]
fn a_flow_that_leaves_frees_its_share_at_once() {
    for ip in BOTH {
        for (port, end) in [(SENDERS, FIN_ACK), (SENDERS, RST), (MANAGED, RST)] {
            let mut rig = Rig::new(mbps(60));
            let (a, b) = (Talk::new(ip, 1), Talk::new(ip, 2));
            rig.open(a);
            rig.open(b);
            assert_eq!((rig.told(b), rig.raise(a, mbps(100))), (None, field(30_000)));
            let packet = if port == SENDERS { b.there(end, 0) } else { b.back(end) };
            rig.passes(port, &packet);
            assert_eq!(rig.told(b), None, "late data of a flow that has ended is no new flow");
            assert_eq!(rig.raise(a, mbps(100)), field(60_000));
            assert_eq!(rig.report()["given_bps"], field(60_000));
            // the same ports may be used again
            rig.passes(SENDERS, &b.there(SYN, 0));
            assert_eq!(rig.open(b), field(30_000));
        }
    }
}

#[test]
fn a_raise_gets_the_share_and_not_more() {
    for ip in BOTH {
        let mut rig = Rig::new(mbps(60));
        let (a, b) = (Talk::new(ip, 1), Talk::new(ip, 2));
        let offer = rig.ask(a, Structure::request(mbps(8)));
        rig.answer(a, SYN_ACK, &offer);
        assert_eq!((rates(&offer).0, offer.is_changed()), (mbps(8).bps(), false));
        assert_eq!(rig.open(b), field(52_000), "what the first does not ask for");
        assert_eq!(rig.raise(a, mbps(16)), mbps(16).bps());
        let told = rig.told(b).unwrap();
        assert_eq!(rates(&told).0, field(44_000));
        rig.answer(b, ACK, &told);
        assert_eq!(rig.raise(a, mbps(100)), field(30_000));
        // the reduction travels in the other's own request
        assert_eq!(rig.raise(b, mbps(100)), field(30_000));
        assert_eq!((rig.told(a), rig.told(b), rig.report()["reductions"]), (None, None, 2));
    }
}

#[test]
fn a_response_above_the_offer_gains_nothing() {
    let mut rig = Rig::new(mbps(60));
    let (a, b) = (Talk::new(IpVersion::V4, 1), Talk::new(IpVersion::V4, 2));
    let offer = rig.ask(a, Structure::request(mbps(100)));
    let mut raised = offer;
    raised.set_available(Some(mbps(100)));
    rig.answer(a, SYN_ACK, &raised);
    assert_eq!(rig.report()["given_bps"], rates(&offer).0);
    // nor does a response to nothing
    rig.answer(b, ACK, &offer);
    rig.answer(a, ACK, &raised);
    assert_eq!((rig.report()["given_bps"], rig.report()["flows"]), (rates(&offer).0, 1));
}

#[test]
fn a_lower_response_without_an_offer_is_a_reduction_of_another_router() {
    let mut rig = Rig::new(mbps(60));
    let (a, b) = (Talk::new(IpVersion::V4, 1), Talk::new(IpVersion::V4, 2));
    rig.open(a);
    rig.answer(a, ACK, &Structure::request(mbps(8)));
    assert_eq!(rig.report()["given_bps"], mbps(8).bps());
    assert_eq!(rig.open(b), field(52_000));
    // another request of the same flow shows whether that is still so
    assert_eq!(rig.raise(a, mbps(100)), field(30_000));
    assert_eq!(rates(&rig.told(b).unwrap()).0, field(30_000));
}

#[test]
fn a_flow_without_signalling_is_a_member_from_its_first_payload_on() {
    for ip in BOTH {
        let mut rig = Rig::new(mbps(60));
        let (a, plain, acks) = (Talk::new(ip, 1), Talk::new(ip, 2), Talk::new(ip, 3));
        rig.open(a);
        rig.passes(SENDERS, &acks.there(ACK, 0));
        rig.passes(SENDERS, &plain.there(SYN, 0));
        assert_eq!(rig.told(a), None);
        let mut datagram = Talk::new(ip, 4).there(ACK, 0);
        datagram.set_datagram(1, rig.now, 500);
        datagram.seal();
        rig.passes(SENDERS, &plain.there(ACK, 1000));
        rig.passes(SENDERS, &datagram);
        let told = rig.told(a).unwrap();
        assert_eq!(rates(&told).0, field(20_000), "TCP and UDP");
        rig.answer(a, ACK, &told);
        // silent for more than 10 s
        for _ in 0..11 {
            rig.wait(1000);
            assert_eq!(rig.told(a), None);
        }
        assert_eq!(rig.raise(a, mbps(100)), field(60_000));
        assert_eq!(rig.report()["flows"], 3);
    }
}

/// About 0.8 Mbit/s for some seconds: it counts with 1 Mbit/s. When it grows, the others make room.
#[test]
fn what_a_flow_without_signalling_does_not_use_is_divided() {
    let mut rig = Rig::new(mbps(60));
    let (a, plain) = (Talk::new(IpVersion::V4, 1), Talk::new(IpVersion::V4, 2));
    rig.open(a);
    let send = |rig: &mut Rig, many: u32, every_ms: u64| {
        for _ in 0..many {
            rig.passes(SENDERS, &plain.there(ACK, 1000));
            rig.wait(every_ms);
        }
    };
    send(&mut rig, 400, 10);
    assert_eq!(rig.raise(a, mbps(100)), field(30_000), "it is not known well enough yet");
    send(&mut rig, 300, 10);
    assert!((field(58_500)..field(59_500)).contains(&rig.raise(a, mbps(100))));
    assert_eq!(rig.told(a), None);
    send(&mut rig, 1000, 1);
    let told = rates(&rig.told(a).unwrap()).0;
    assert!((field(48_000)..field(50_500)).contains(&told), "{told}");
}

#[test]
fn a_receiver_without_signalling_frees_the_share_of_the_request() {
    let mut rig = Rig::new(mbps(60));
    let (a, b) = (Talk::new(IpVersion::V4, 1), Talk::new(IpVersion::V4, 2));
    rig.open(a);
    rig.ask(b, Structure::request(mbps(100)));
    rig.passes(MANAGED, &b.back(SYN_ACK));
    assert_eq!(rig.told(a), None);
    // it counts again with its first data
    rig.passes(SENDERS, &b.there(ACK, 1000));
    assert_eq!(rates(&rig.told(a).unwrap()).0, field(30_000));
}

#[test]
fn a_refused_flow_goes_on_without_a_rate() {
    let mut rig = Rig::new(mbps(60));
    let talk = Talk::new(IpVersion::V4, 1);
    let mut refused = rig.ask(talk, Structure::request(mbps(100)));
    refused.set_available(None);
    rig.answer(talk, SYN_ACK, &refused);
    assert_eq!(rig.report()["given_bps"], 0);
    assert_eq!(rig.told(talk), None, "it is not asked again");
}

#[test]
fn a_flow_whose_start_was_not_seen_is_asked_and_gets_its_share() {
    for ip in BOTH {
        let mut rig = Rig::new(mbps(60));
        let (talk, other) = (Talk::new(ip, 1), Talk::new(ip, 2));
        let question = rig.told(talk).unwrap();
        assert_eq!((question.kind(), rates(&question)), (Some(Kind::MissedStart), (0, 0)));
        assert!(question.is_supported());
        rig.wait(199);
        assert_eq!(rig.told(talk), None);
        rig.wait(1);
        assert_eq!(rig.told(talk), Some(question));
        assert_eq!(rig.open(other), field(30_000), "it is a member meanwhile");
        let mut again = Structure::request(mbps(100));
        again.set_kind(Kind::ResendStart);
        let offer = rig.send(talk.there(ACK, 1000), again);
        assert_eq!(rates(&offer).0, field(30_000));
        rig.answer(talk, ACK, &offer);
        rig.wait(1000);
        assert_eq!((rig.told(talk), rig.report()["given_bps"]), (None, 2 * field(30_000)));
    }
}

#[test]
fn an_end_that_only_answers_is_not_asked_for_ever() {
    let mut rig = Rig::new(mbps(60));
    let talk = Talk::new(IpVersion::V4, 1);
    let mut asked = 0;
    for _ in 0..100 {
        asked += u32::from(rig.told(talk).is_some());
        rig.wait(200);
    }
    assert_eq!(asked, 8);
}

#[test]
fn when_the_rate_falls_every_flow_is_told_in_its_next_packet() {
    for ip in BOTH {
        let mut rig = Rig::new(mbps(80));
        let talks = [1, 2, 3, 4].map(|port| Talk::new(ip, port));
        for talk in talks {
            rig.open(talk);
        }
        for talk in talks {
            if let Some(told) = rig.told(talk) {
                rig.answer(talk, ACK, &told);
            }
        }
        let before = rig.report();
        assert_eq!((before["given_bps"], before["reductions"]), (4 * field(20_000), 3));
        rig.set_rate(mbps(8));
        for talk in talks {
            assert_eq!(rates(&rig.told(talk).unwrap()).0, field(2000));
        }
        assert_eq!(rig.report()["reductions"], 7);
        // it comes back: no flow is told more than it was granted
        rig.set_rate(mbps(80));
        rig.wait(1000);
        assert!(talks.into_iter().all(|talk| rig.told(talk).is_none()));
    }
}

#[test]
fn a_sender_on_the_side_of_the_acceptor_is_treated_alike() {
    let mut rig = Rig::new(mbps(60));
    let talk = Talk::new(IpVersion::V4, 1);
    rig.passes(MANAGED, &talk.back(SYN));
    let mut syn_ack = talk.there(SYN_ACK, 0);
    let mut response = Structure::request(mbps(100));
    response.set_kind(Kind::Response);
    write(&mut syn_ack, &[response, Structure::request(mbps(100))]);
    let out = rig.put(SENDERS, syn_ack).unwrap();
    let both = structures(&out);
    assert_eq!(both.as_slice()[0], response, "it concerns the other direction");
    assert_eq!(rates(&both.as_slice()[1]).0, field(60_000));
    rig.answer(talk, ACK, &both.as_slice()[1]);
    assert_eq!(rig.report()["given_bps"], field(60_000));
}

#[test]
fn classes_divide_by_weight() {
    let from = Prefix::new([10, 0, 3, 0].into(), 24).unwrap();
    let class = |name: &str, weight| ClassConfig { name: name.into(), weight, ..ClassConfig::default() };
    let config = RouterConfig {
        utilisation: 1.0,
        classes: vec![class("basic", 1.0), class("premium", 3.0)],
        policy: Policy { rules: vec![Rule { class: 1, ..Rule::new(from) }] },
        ..RouterConfig::new(mbps(40))
    };
    let mut rig = Rig::with(config);
    let talk = Talk::new(IpVersion::V4, 1);
    rig.open(talk);
    let premium = Packet { src: Addr(3), ..talk.there(SYN, 0) };
    let offer = rig.send(premium, Structure::request(mbps(100)));
    assert_eq!(rates(&offer).0, field(30_000));
    assert_eq!(rates(&rig.told(talk).unwrap()).0, field(10_000));
}

#[test]
fn what_it_does_not_understand_passes_unchanged() {
    for ip in BOTH {
        let mut rig = Rig::new(mbps(1));
        let talk = Talk::new(ip, 1);
        let mut version_2 = *Structure::request(mbps(100)).bytes();
        version_2[13] = 0x20;
        let mut unknown = talk.there(SYN, 0);
        write(&mut unknown, &[Structure::from_bytes(version_2)]);
        let mut asking = talk.there(SYN, 0);
        write(&mut asking, &[Structure::request(mbps(100))]);
        let with = |kinds| OtherOptions { kinds, len: 20 };
        let signed = Packet { other_options: with(OtherOptions::SIGNED), ..asking.clone() };
        let fast_open = Packet { other_options: with(OtherOptions::FAST_OPEN), ..asking.clone() };
        let bleached = Packet { dscp: Dscp::DEFAULT, ..asking.clone() };
        let opaque = Packet { proto: Proto::Opaque, ..asking };
        for packet in [unknown, signed, fast_open, bleached, opaque] {
            rig.passes(SENDERS, &packet);
        }
        let report = rig.report();
        assert_eq!((report["requests"], report["flows"]), (0, 0));
        // nor does a request against the managed direction concern it
        let mut reverse = talk.back(SYN);
        write(&mut reverse, &[Structure::request(mbps(100))]);
        rig.passes(MANAGED, &reverse);
        assert_eq!(rig.report()["requests"], 0);
    }
}

#[test]
fn a_confirmation_releases_what_is_above_it_and_a_close_all() {
    let from = Prefix::new([10, 0, 0, 0].into(), 8).unwrap();
    let rule = Rule { guaranteed: Some(mbps(10)), ..Rule::new(from) };
    let policy = Policy { rules: vec![rule] };
    let mut rig = Rig::with(RouterConfig { utilisation: 1.0, policy, ..RouterConfig::new(mbps(60)) });
    let talk = Talk::new(IpVersion::V4, 1);
    let mut offer = rig.ask(talk, rig::guaranteed(RateType::Composite, mbps(8), 0));
    rig.answer(talk, SYN_ACK, &offer);
    assert_eq!(rig.report()["reserved_bps"], mbps(8).bps());
    offer.set_kind(Kind::Confirmation);
    offer.set_guaranteed(Some(mbps(4)));
    assert_eq!(rig.send(talk.there(ACK, 0), offer), offer);
    let report = rig.report();
    assert_eq!((report["reserved_bps"], report["given_bps"]), (mbps(4).bps(), mbps(8).bps()));
    offer.set_kind(Kind::Close);
    rig.send(talk.there(ACK, 0), offer);
    let report = rig.report();
    assert_eq!((report["reserved_bps"], report["given_bps"]), (0, 0));
}

#[test]
fn it_reports_its_addresses_its_counters_and_what_it_carried() {
    let mut rig = Rig::new(mbps(60));
    rig.open(Talk::new(IpVersion::V4, 1));
    let mut seen = Vec::new();
    rig.router.addresses(&mut |addr| seen.push(addr));
    assert_eq!(seen, [Addr(1), Addr(2)]);
    let mut counters = Vec::new();
    rig.router.counters(&mut |key, n| counters.push((key, n)));
    assert_eq!(counters[..2], [("flows", 1), ("requests", 1)]);
    rig.wait(1000);
    rig.told(Talk::new(IpVersion::V4, 1));
    // the SYN with its structure and 1040 B of data in 1.1 s
    let bits = (20 + 20 + 16 + 1040) * 8;
    assert_eq!(rig.report()["used_bps"], bits * 10 / 11);
    rig.wait(20_000);
    rig.router.addresses(&mut |addr| panic!("{addr:?} is kept"));
}

#[test]
fn early_and_repeated_wake_ups_change_nothing() {
    let mut rig = Rig::new(mbps(60));
    rig.wake();
    assert_eq!(rig.world.events.next_at(), None, "nothing to wait for");
    rig.open(Talk::new(IpVersion::V4, 1));
    for _ in 0..10 {
        rig.wake();
        rig.wake();
        rig.wait(30);
    }
    assert_eq!(rig.report()["given_bps"], field(60_000));
    let mut pending = 0;
    while rig.world.events.pop_until(rig.now + Duration::from_secs(100)).is_some() {
        pending += 1;
    }
    assert_eq!(pending, 1);
}

#[test]
fn a_code_point_of_the_sender_is_kept() {
    let mut rig = Rig::new(mbps(60));
    let (a, b) = (Talk::new(IpVersion::V4, 1), Talk::new(IpVersion::V4, 2));
    rig.open(a);
    rig.open(b);
    rig.passes(SENDERS, &Packet { dscp: Dscp::new(46).unwrap(), ..a.there(ACK, 1000) });
    assert_eq!(rig.report()["reductions"], 0);
    assert_eq!(rates(&rig.told(a).unwrap()).0, field(30_000));
}
