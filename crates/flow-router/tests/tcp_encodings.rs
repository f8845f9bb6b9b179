//! Advice in SCONE's TCP option, and requests by Quick-Start.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod rig;

use bentpipe_advice::negotiation::Encoding;
use bentpipe_advice::quick_start::packet::{of_ip, put as put_quick_start};
use bentpipe_advice::quick_start::{Fields, RateCode};
use bentpipe_advice::scone::Advice;
use bentpipe_advice::scone_tcp::packet::{of, put as put_option};
use bentpipe_advice::scone_tcp::{Advised, Kind};
use bentpipe_advice::tia1039::Structure;
use bentpipe_base::{IpVersion, Packet};
use bentpipe_flow_router::{Encodings, MANAGED, RouterConfig, SENDERS};
use rig::{ACK, BOTH, FIN_ACK, Rig, SYN, SYN_ACK, Talk, mbps};

const V4: IpVersion = IpVersion::V4;

fn advice(n: u8) -> Advice {
    Advice::new(n).unwrap()
}

/// A packet with an option whose signal is this and whose echo is 5.
fn advised(mut packet: Packet, signal: Advice) -> Packet {
    put_option(&mut packet, Advised::new(Kind::default(), signal).with_echo(advice(5)));
    packet
}

/// The signal of a packet from the sender as it comes out.
fn told(rig: &mut Rig, packet: Packet) -> Advice {
    let sent = of(&packet).unwrap();
    let out = rig.put(SENDERS, packet).unwrap();
    let option = of(&out).unwrap();
    assert_eq!(option.with_advice(sent.advice()), sent, "only the signal changes");
    option.advice()
}

fn asking(talk: Talk, code: u8) -> (Packet, Fields) {
    let fields = Fields::request(RateCode::new(code).unwrap(), 200, 0x1555_5555);
    let mut syn = talk.there(SYN, 0);
    put_quick_start(&mut syn, Some(fields), None);
    (syn, fields)
}

/// What comes out of a request in a SYN.
fn approved(rig: &mut Rig, talk: Talk, code: u8) -> Fields {
    let (syn, _) = asking(talk, code);
    of_ip(&rig.put(SENDERS, syn).unwrap()).unwrap()
}

/// 20 Mbit/s is step 46 (19.95), 10 is 40, 6.67 is 36 (6.31).
#[test]
fn a_signal_is_lowered_to_the_share_of_its_flow() {
    for ip in BOTH {
        let mut rig = Rig::new(mbps(20));
        let (a, b) = (Talk::new(ip, 1), Talk::new(ip, 2));
        assert_eq!(told(&mut rig, advised(a.there(SYN, 0), Advice::UNKNOWN)), advice(46));
        assert_eq!(told(&mut rig, advised(a.there(ACK, 1000), Advice::UNKNOWN)), advice(46));
        // a flow that asks is told what it will get, and the first one hears of it when it has sent
        assert_eq!(told(&mut rig, advised(b.there(SYN, 0), Advice::UNKNOWN)), advice(40));
        assert_eq!(told(&mut rig, advised(a.there(ACK, 1000), Advice::UNKNOWN)), advice(46));
        rig.passes(SENDERS, &b.there(ACK, 1000));
        assert_eq!(told(&mut rig, advised(a.there(ACK, 1000), Advice::UNKNOWN)), advice(40));
        assert_eq!(told(&mut rig, advised(Talk::new(ip, 3).there(SYN, 0), Advice::UNKNOWN)), advice(36));
        rig.passes(SENDERS, &b.there(FIN_ACK, 0));
        assert_eq!(told(&mut rig, advised(a.there(ACK, 1000), Advice::UNKNOWN)), advice(46));
    }
}

#[test]
fn a_signal_is_never_raised_and_advice_is_not_enforced() {
    let mut rig = Rig::new(mbps(20));
    let talk = Talk::new(V4, 1);
    assert_eq!(told(&mut rig, advised(talk.there(ACK, 1000), advice(3))), advice(3));
    rig.set_rate(rig::mbps(1));
    for _ in 0..1000 {
        rig.passes(SENDERS, &talk.there(ACK, 1000));
    }
    assert_eq!((rig.report()["policed"], rig.recycled), (0, 0));
    // 1 Mbit/s among 20 flows is less than a signal can say
    (2..=20).for_each(|port| rig.passes(SENDERS, &Talk::new(V4, port).there(ACK, 1000)));
    assert_eq!(told(&mut rig, advised(talk.there(ACK, 1000), advice(3))), Advice::LOWEST);
    // what goes to the senders concerns the other direction
    rig.passes(MANAGED, &advised(talk.back(ACK), Advice::UNKNOWN));
}

/// 10 Mbit/s: code 7 is 5.12 Mbit/s, then 2.56 and 1.28.
#[test]
fn requests_share_what_is_unused_and_was_not_approved() {
    for ip in BOTH {
        let mut rig = Rig::new(mbps(10));
        let fields = approved(&mut rig, Talk::new(ip, 1), 15);
        assert_eq!((fields.rate().get(), fields.ttl()), (7, 199), "QS TTL is lowered with the TTL");
        assert_eq!(approved(&mut rig, Talk::new(ip, 2), 15).rate().get(), 6);
        assert_eq!(approved(&mut rig, Talk::new(ip, 3), 2).rate().get(), 2, "no more than is asked for");
        assert_eq!(approved(&mut rig, Talk::new(ip, 1), 15).rate().get(), 7, "the same flow again");
        rig.wait(1000);
        assert_eq!(approved(&mut rig, Talk::new(ip, 4), 15).rate().get(), 7);
        // 8 Mbit/s of traffic leave nothing beside what was approved
        (0..97).for_each(|_| rig.passes(SENDERS, &Talk::new(ip, 9).there(ACK, 1000)));
        let refused = approved(&mut rig, Talk::new(ip, 5), 15);
        assert_eq!((refused.rate().get(), refused.ttl(), refused.nonce()), (0, 0, 0));
        assert_eq!((rig.report()["requests"], rig.report()["refused"]), (6, 1));
    }
}

#[test]
fn a_report_gives_back_what_was_not_used() {
    let mut rig = Rig::new(mbps(10));
    let talk = Talk::new(V4, 1);
    assert_eq!(approved(&mut rig, talk, 15).rate().get(), 7);
    let mut report = talk.there(ACK, 0);
    put_quick_start(&mut report, Some(Fields::report(RateCode::NONE, 1)), None);
    rig.passes(SENDERS, &report);
    assert_eq!(approved(&mut rig, Talk::new(V4, 2), 15).rate().get(), 7);
}

/// Behind a host nobody lowers the TTL.
#[test]
fn the_ttl_follows_the_node_before_the_router() {
    let mut rig = Rig::with(RouterConfig { hops: 0, ..RouterConfig::new(mbps(10)) });
    assert_eq!(approved(&mut rig, Talk::new(V4, 1), 1).ttl(), 200);
}

#[test]
fn an_encoding_that_it_does_not_speak_passes_unchanged() {
    let speaks = |all: &[Encoding]| {
        let encodings = all.iter().fold(Encodings::default(), |set, one| set.with(*one));
        Rig::with(RouterConfig { encodings, ..RouterConfig::new(mbps(1)) })
    };
    let talk = Talk::new(V4, 1);
    let option = advised(talk.there(SYN, 0), Advice::UNKNOWN);
    speaks(&[Encoding::Tia1039, Encoding::QuickStart]).passes(SENDERS, &option);
    let (syn, _) = asking(talk, 15);
    speaks(&[Encoding::Tia1039, Encoding::SconeTcp]).passes(SENDERS, &syn);
    let mut rig = speaks(&[Encoding::SconeTcp]);
    let asked = Structure::request(mbps(100));
    assert_eq!(rig.ask(talk, asked), asked);
    rig.answer(talk, SYN_ACK, &asked);
    rig.passes(SENDERS, &talk.data());
    assert_eq!((rig.report()["requests"], rig.report()["given_bps"]), (0, 0));
}
