//! What a flow router tells in which encoding, and what of its configuration can change meanwhile.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod rig;

use bentpipe_advice::negotiation::Encoding;
use bentpipe_advice::scone::{Advice, START, read_start, write};
use bentpipe_advice::tia1039::{QOS_SIGNAL, Structure, structures};
use bentpipe_base::{Body, IpVersion, Packet, Prefix, Proto, Rate, Signal};
use bentpipe_flow_router::{
    ClassConfig, Encodings, Fixed, MANAGED, RouterConfig, RouterEncoding, Rule, SENDERS,
};
use rig::{BOTH, Rig, SYN, SYN_ACK, Talk, field, mbps, rates};

fn only(encoding: impl Into<RouterEncoding>, mbit: u64) -> RouterConfig {
    let encodings = Encodings::default().with(encoding);
    RouterConfig { utilisation: 1.0, encodings, ..RouterConfig::new(mbps(mbit)) }
}

/// A datagram of QUIC with a SCONE packet before it.
fn quic(talk: Talk, signal: Advice) -> Packet {
    let mut packet = talk.there(SYN, 0);
    packet.proto = Proto::Udp;
    packet.body = Body { off: 7, len: 1200 };
    let start = write(signal, &[1; 8], &[]).unwrap();
    packet.signal = Signal::new(&start[..START]).map(Box::new);
    packet.seal();
    packet
}

/// The signal with which such a datagram comes out; nothing else may change.
fn told(rig: &mut Rig, talk: Talk, signal: Advice) -> u8 {
    let packet = quic(talk, signal);
    let mut out = rig.put(SENDERS, packet.clone()).unwrap();
    let told = read_start(out.signal.as_ref().unwrap().bytes()).unwrap();
    out.signal.clone_from(&packet.signal);
    assert_eq!(out, packet);
    told.get()
}

const TWENTY: u8 = 46; // 19.95 Mbit/s
const TEN: u8 = 40;

#[test]
fn a_datagram_is_told_the_share_of_its_flow() {
    for ip in BOTH {
        let mut rig = Rig::new(mbps(20));
        let (a, b) = (Talk::new(ip, 1), Talk::new(ip, 2));
        assert_eq!(told(&mut rig, a, Advice::UNKNOWN), TWENTY);
        // the second flow is counted before it is told, and the first hears of it in its next one
        assert_eq!((told(&mut rig, b, Advice::UNKNOWN), told(&mut rig, a, Advice::UNKNOWN)), (TEN, TEN));
        for lower in [0, 39, TEN] {
            assert_eq!(told(&mut rig, a, Advice::new(lower).unwrap()), lower, "never higher");
        }
        assert_eq!((rig.report()["advised"], rig.report()["flows"]), (3, 2));
        rig.wait(11_000);
        assert_eq!(told(&mut rig, a, Advice::UNKNOWN), TWENTY, "the other one is silent");
    }
}

#[test]
fn a_request_of_tcp_and_advice_to_quic_divide_one_rate() {
    let mut rig = Rig::new(mbps(20));
    let (tcp, udp) = (Talk::new(IpVersion::V4, 1), Talk::new(IpVersion::V4, 2));
    told(&mut rig, udp, Advice::UNKNOWN);
    assert_eq!(rig.open(tcp), field(10_000));
    assert_eq!(told(&mut rig, udp, Advice::UNKNOWN), TEN);
}

#[test]
fn a_rule_limits_advice_and_a_share_below_all_signals_is_told_as_the_lowest() {
    let near = Rule { available: Some(mbps(2)), ..Rule::new(Prefix::new([10, 0, 1, 0].into(), 24).unwrap()) };
    let mut config = only(RouterEncoding::Scone, 20);
    config.policy.rules.push(near);
    let talk = Talk::new(IpVersion::V4, 1);
    assert_eq!(told(&mut Rig::with(config), talk, Advice::UNKNOWN), 26);
    let little = RouterConfig::new(Rate::from_bps(64_000).unwrap());
    assert_eq!(told(&mut Rig::with(little), talk, Advice::UNKNOWN), 0);
}

#[test]
fn a_full_table_still_gives_advice() {
    let mut rig = Rig::with(RouterConfig { flows: 2, ..only(RouterEncoding::Scone, 20) });
    let talk = |port| Talk::new(IpVersion::V4, port);
    assert_eq!(told(&mut rig, talk(1), Advice::UNKNOWN), TWENTY);
    // what it would get as a member, of which there is no state
    assert_eq!(told(&mut rig, talk(2), Advice::UNKNOWN), TEN);
    assert_eq!((told(&mut rig, talk(1), Advice::UNKNOWN), rig.report()["flows"]), (TWENTY, 1));
}

#[test]
fn what_is_not_among_the_encodings_passes_and_counts_as_a_user() {
    let talk = Talk::new(IpVersion::V4, 1);
    let mut rig = Rig::with(only(Encoding::Tia1039, 20));
    rig.passes(SENDERS, &quic(talk, Advice::UNKNOWN));
    assert_eq!((rig.report()["flows"], rig.report()["advised"]), (1, 0));

    let mut rig = Rig::with(only(RouterEncoding::Scone, 20));
    let asked = Structure::request(mbps(800));
    assert_eq!(rig.ask(talk, asked), asked, "no router lowers it");
    rig.answer(talk, SYN_ACK, &asked);
    let data = talk.data();
    rig.passes(SENDERS, &data);
    assert_eq!((rig.report()["requests"], rig.report()["flows"]), (0, 1));
    assert_eq!(told(&mut rig, Talk::new(IpVersion::V4, 2), Advice::UNKNOWN), TEN);
    // a datagram with a structure is none with a SCONE packet
    let mut other = quic(talk, Advice::UNKNOWN);
    other.signal = Signal::new(asked.bytes()).map(Box::new);
    other.dscp = QOS_SIGNAL;
    assert!(!structures(&other).is_empty());
    rig.passes(SENDERS, &other);
    rig.passes(MANAGED, &quic(talk, Advice::UNKNOWN));
}

#[test]
fn a_new_configuration_applies_to_the_flows_that_there_are() {
    let mut rig = Rig::with(only(Encoding::Tia1039, 20));
    let talk = Talk::new(IpVersion::V4, 1);
    assert_eq!(rig.open(talk), field(20_000));
    assert_eq!(rig.told(talk), None);
    let rule = Rule { available: Some(mbps(3)), ..Rule::new(Prefix::new([10, 0, 0, 0].into(), 8).unwrap()) };
    let mut new = RouterConfig { utilisation: 0.5, ..only(Encoding::Tia1039, 10) };
    new.policy.rules.push(rule);
    assert_eq!(rig.reconfigure(new.clone()), Ok(()));
    assert_eq!(*rig.router.config(), new);
    assert_eq!(rates(&rig.told(talk).unwrap()).0, field(5000));
    assert_eq!(rig.open(Talk::new(IpVersion::V4, 2)), field(2500), "half of 5 Mbit/s, below the rule");
}

#[test]
fn what_the_state_is_built_on_cannot_change() {
    let mut rig = Rig::with(only(Encoding::Tia1039, 20));
    let old = rig.router.config().clone();
    let other_class = ClassConfig { weight: 2.0, ..ClassConfig::default() };
    for (new, what) in [
        (only(RouterEncoding::Scone, 20), Fixed::Encodings),
        (RouterConfig { classes: vec![other_class], ..old.clone() }, Fixed::Classes),
        (RouterConfig { flows: 9, ..old.clone() }, Fixed::Limits),
        (RouterConfig { half_open: 9, ..old.clone() }, Fixed::Limits),
    ] {
        assert_eq!(rig.reconfigure(new), Err(what), "{what}");
    }
    assert_eq!(*rig.router.config(), old);
}
