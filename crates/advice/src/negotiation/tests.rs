//! Both ends of a connection, and what the network or an attacker does to their structures.

use super::asker::{MOST_UNDER_WAY, REPEATS};
use super::history::MOST_CHANGES;
use super::responder::MOST_WAITING;
use super::*;
use Carrier::{Ack, Data};

const RTT: Duration = Duration::from_millis(300);

fn at(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

fn kbps(n: u64) -> Rate {
    Rate::from_bps(n * 1000).unwrap()
}

/// Exact in the field.
fn mbps(n: u64) -> Rate {
    kbps(n * 1024)
}

fn asking(rate: Rate) -> AskConfig {
    AskConfig { ask: Some(rate), ..AskConfig::default() }
}

/// An end whose peer knows what was agreed.
fn end(config: AskConfig) -> Negotiation {
    let mut end = Negotiation::new(config, IpVersion::V4);
    end.confirm();
    end
}

/// A structure with another kind and rate.
fn with(kind: Kind, rate: Option<Rate>) -> Structure {
    let mut structure = Structure::request(mbps(1));
    structure.set_kind(kind);
    structure.set_available(rate);
    structure
}

fn response(rate: Rate) -> Structure {
    with(Kind::Response, Some(rate))
}

fn kinds(structures: &[Structure]) -> Vec<(Kind, Option<Rate>)> {
    structures.iter().map(|s| (s.kind().unwrap(), s.available())).collect()
}

/// An end that asked for 100 in its SYN and was granted 50 at 300 ms.
fn granted() -> Negotiation {
    let mut n = end(asking(mbps(100)));
    assert_eq!(n.syn(at(0)).len(), 1);
    assert_eq!(n.peer_syn(at(300), Some(&[response(mbps(50))])), Some(RateAnswer::Granted(mbps(50))));
    n
}

/// The answer to one structure in a packet without data.
fn hears(n: &mut Negotiation, ms: u64, structure: Structure) -> Option<RateAnswer> {
    n.incoming(at(ms), RTT, Ack, &[structure])
}

fn sends(n: &mut Negotiation, ms: u64, packet: Carrier) -> Option<(Kind, Option<Rate>)> {
    n.outgoing(at(ms), RTT, packet, None).map(|s| (s.kind().unwrap(), s.available()))
}

/// Both ask: the SYN/ACK has the response first, and the ACK the other response.
#[test]
fn a_handshake_settles_both_directions() {
    let (mut a, mut b) = (end(asking(mbps(100))), end(asking(mbps(10))));
    let mut syn = a.syn(at(0));
    assert_eq!(kinds(&syn), [(Kind::Request, Some(mbps(100)))]);
    assert_eq!((a.state(), a.is_agreed()), (RateState::Asked, false));
    syn[0].set_available(Some(mbps(30)));
    assert_eq!(b.peer_syn(at(100), Some(&syn)), None);
    let mut answer = b.syn(at(100));
    assert_eq!(kinds(&answer), [(Kind::Response, Some(mbps(30))), (Kind::Request, Some(mbps(10)))]);
    answer[1].set_available(Some(mbps(5)));
    assert_eq!(a.peer_syn(at(200), Some(&answer)), Some(RateAnswer::Granted(mbps(30))));
    assert!(a.is_due());
    let ack = a.outgoing(at(200), RTT, Ack, None).unwrap();
    assert_eq!(kinds(&[ack]), [(Kind::Response, Some(mbps(5)))]);
    assert_eq!(b.incoming(at(300), RTT, Ack, &[ack]), Some(RateAnswer::Granted(mbps(5))));
    assert_eq!((sends(&mut a, 300, Data), sends(&mut b, 300, Data)), (None, None));
    assert!(!a.is_due() && !b.is_due() && a.is_agreed() && b.is_agreed());
    let changes = [RateChange { at: at(200), rate: mbps(30), cause: "granted" }];
    assert_eq!((a.changes(), a.granted(), a.state()), (&changes[..], Some(mbps(30)), RateState::Granted));
}

#[test]
fn without_a_signalling_peer_there_is_no_rate() {
    let mut n = end(asking(mbps(100)));
    n.syn(at(0));
    assert_eq!(n.peer_syn(at(100), None), Some(RateAnswer::Plain));
    assert_eq!((n.is_agreed(), n.state(), n.granted()), (false, RateState::Plain, None));
    assert_eq!((sends(&mut n, 900, Data), hears(&mut n, 900, response(mbps(5)))), (None, None));
    let mut silent = end(AskConfig::default());
    assert_eq!((silent.syn(at(0)), silent.peer_syn(at(100), None)), (vec![], None), "it did not ask");
    // other encodings, and a rate that the field cannot hold
    let other = AskConfig { encoding: Encoding::SconeTcp, ..asking(mbps(100)) };
    let mut n = end(other);
    assert!(!n.is_offered() && n.syn(at(0)).is_empty());
    assert_eq!((n.peer_syn(at(100), Some(&[])), n.is_agreed()), (Some(RateAnswer::Plain), false));
    let mut n = end(asking(Rate::from_bps(999).unwrap()));
    assert!(n.syn(at(0)).is_empty());
    assert_eq!((n.peer_syn(at(100), Some(&[])), n.is_agreed()), (Some(RateAnswer::Plain), true));
}

/// The answer must be lower than the question, or marked; in IPv6 there is no mark.
#[test]
fn a_first_answer_that_nobody_lowered_is_not_believed() {
    let asked = mbps(100);
    let mut marked = response(asked);
    marked.set_changed(true);
    for (ip, trust_path, answer, believed) in [
        (IpVersion::V4, false, response(asked), false),
        (IpVersion::V4, true, response(asked), true),
        (IpVersion::V4, false, marked, true),
        (IpVersion::V6, false, marked, false),
        (IpVersion::V6, false, response(mbps(99)), true),
    ] {
        let mut n = Negotiation::new(AskConfig { trust_path, ..asking(asked) }, ip);
        n.syn(at(0));
        let said = n.peer_syn(at(100), Some(&[answer]));
        let rate = answer.available().unwrap();
        let expected = if believed { RateAnswer::Granted(rate) } else { RateAnswer::Plain };
        assert_eq!(said, Some(expected), "{ip:?} {trust_path} {answer:?}");
        assert_eq!(sends(&mut n, 5000, Data), None, "it does not ask again");
    }
}

/// 10 Gbit/s is no multiple of the field's step: what comes back unchanged is lower than what was configured.
#[test]
fn rounding_is_no_router() {
    let mut n = end(asking(kbps(10_000_000)));
    let mut answer = n.syn(at(0)).remove(0);
    assert!(answer.available().unwrap() < kbps(10_000_000));
    answer.set_kind(Kind::Response);
    assert_eq!(n.peer_syn(at(100), Some(&[answer])), Some(RateAnswer::Plain));
}

#[test]
fn an_answer_above_the_question_is_ignored() {
    let mut n = end(asking(mbps(100)));
    n.syn(at(0));
    assert_eq!(n.peer_syn(at(100), Some(&[response(mbps(101))])), None);
    assert_eq!((n.granted(), n.state()), (None, RateState::Asked));
    assert_eq!(hears(&mut n, 150, response(mbps(200))), None);
    assert_eq!(hears(&mut n, 160, response(mbps(60))), Some(RateAnswer::Granted(mbps(60))));
    // the same for a later request
    n.outgoing(at(200), RTT, Data, Some(mbps(90)));
    assert_eq!(hears(&mut n, 500, response(mbps(91))), None);
    assert_eq!(hears(&mut n, 500, response(mbps(90))), Some(RateAnswer::Granted(mbps(90))));
    // no request is for more than the first one, and an unlowered answer to that much proves nothing
    n.outgoing(at(600), RTT, Data, Some(mbps(180)));
    assert_eq!(hears(&mut n, 900, response(mbps(100))), None);
    assert_eq!(n.granted(), Some(mbps(90)));
}

/// A peer that answers before it was asked is not believed.
#[test]
fn an_answer_before_the_question_is_ignored() {
    let mut n = end(asking(mbps(100)));
    assert_eq!(n.peer_syn(at(0), Some(&[response(mbps(50)), with(Kind::Response, None)])), None);
    assert_eq!((n.granted(), n.syn(at(0)).len()), (None, 1));
}

#[test]
fn what_is_not_supported_is_ignored() {
    let mut version = *response(mbps(5)).bytes();
    version[13] = 0x20;
    let mut kind = *response(mbps(5)).bytes();
    kind[10] = 0x90;
    let mut reserved = *response(mbps(5)).bytes();
    reserved[4] |= 0x80;
    let mut n = granted();
    for bytes in [version, kind, reserved] {
        assert_eq!(hears(&mut n, 400, Structure::from_bytes(bytes)), None);
    }
    let mut request = *with(Kind::Renegotiate, Some(mbps(5))).bytes();
    request[13] = 0x20;
    assert_eq!(n.incoming(at(400), RTT, Data, &[Structure::from_bytes(request)]), None);
    for nothing in [Kind::Forward, Kind::Confirmation, Kind::Close] {
        assert_eq!(hears(&mut n, 400, with(nothing, Some(mbps(5)))), None);
    }
    assert!(!n.is_due() && n.granted() == Some(mbps(50)));
}

/// In IPv4 a peer whose SYN/ACK lost its DSCP would take a structure for data.
#[test]
fn who_answers_a_syn_waits_until_the_peer_knows() {
    let asked = with(Kind::Request, Some(mbps(5)));
    for (ip, carries) in [(IpVersion::V4, false), (IpVersion::V6, true)] {
        let mut n = Negotiation::new(asking(mbps(100)), ip);
        assert_eq!(n.peer_syn(at(0), Some(&[])), None);
        assert_eq!(n.syn(at(0)).len(), 1, "the SYN/ACK has it");
        n.incoming(at(100), RTT, Data, &[asked]);
        assert_eq!((n.is_due(), sends(&mut n, 100, Ack).is_some()), (carries, carries), "{ip:?}");
        n.confirm();
        n.incoming(at(101), RTT, Data, &[asked]);
        assert!(n.is_due() && sends(&mut n, 101, Ack) == Some((Kind::Response, Some(mbps(5)))));
    }
}

/// The SYN was resent without a structure, or the answer was lost: the request is in the next packet.
#[test]
fn a_request_without_an_answer_follows_the_handshake() {
    let mut n = end(asking(mbps(100)));
    n.syn(at(0));
    assert_eq!(n.peer_syn(at(300), Some(&[])), None);
    assert!(n.is_due());
    assert_eq!(sends(&mut n, 300, Ack), Some((Kind::Request, Some(mbps(100)))));
    assert_eq!((n.state(), n.is_due()), (RateState::AskingAgain, false));
    assert_eq!((sends(&mut n, 899, Data), sends(&mut n, 899, Ack), n.is_due()), (None, None, false));
    // 2 SRTT later, in a packet of its own
    assert_eq!((sends(&mut n, 900, Data), n.is_due()), (None, true));
    assert_eq!(sends(&mut n, 900, Ack), Some((Kind::Request, Some(mbps(100)))));
    assert_eq!(hears(&mut n, 1200, response(mbps(20))), Some(RateAnswer::Granted(mbps(20))));
    assert_eq!(sends(&mut n, 5000, Data), None);
    // the second answer says nothing new
    assert_eq!(hears(&mut n, 1500, response(mbps(20))), None);
}

#[test]
fn after_the_last_repeat_there_is_no_rate() {
    let mut n = end(asking(mbps(100)));
    n.syn(at(0));
    n.peer_syn(at(10), Some(&[]));
    let mut asked = 0;
    let mut ended = None;
    for ms in 10..9000 {
        asked += u32::from(n.outgoing(at(ms), Duration::ZERO, Ack, None).is_some());
        if n.incoming(at(ms), Duration::ZERO, Ack, &[]) == Some(RateAnswer::Plain) {
            ended = Some(ms);
            break;
        }
    }
    // without an RTT every 200 ms, in the next packet but one
    assert_eq!((asked, ended), (REPEATS, Some(10 + 201 * u64::from(REPEATS - 1) + 200)));
    assert_eq!((n.state(), hears(&mut n, 9000, response(mbps(5)))), (RateState::Plain, None));
}

/// A request is returned as it came; the receiver lowers AR to what it takes.
#[test]
fn requests_are_returned_at_once() {
    let mut n = end(AskConfig { take: Some(mbps(8)), ..AskConfig::default() });
    n.peer_syn(at(0), Some(&[]));
    let mut asked = with(Kind::Renegotiate, Some(mbps(20)));
    asked.set_preemption_priority(9);
    asked.set_changed(true);
    for (kind, rate, back) in [
        (Kind::Request, Some(mbps(20)), Some(mbps(8))),
        (Kind::Renegotiate, Some(mbps(4)), Some(mbps(4))),
        (Kind::ResendStart, None, None),
    ] {
        asked.set_kind(kind);
        asked.set_available(rate);
        assert_eq!((n.incoming(at(5), RTT, Data, &[asked]), n.is_due()), (None, true));
        let mut expected = asked;
        expected.set_kind(Kind::Response);
        expected.set_available(back);
        assert_eq!(n.outgoing(at(5), RTT, Ack, None), Some(expected));
        assert!(!n.is_due());
    }
}

/// In an IPv6 response M belongs to the flow label.
#[test]
fn an_ipv6_response_has_no_mark() {
    let mut n = Negotiation::new(AskConfig::default(), IpVersion::V6);
    let mut asked = with(Kind::Request, Some(mbps(20)));
    asked.set_changed(true);
    n.peer_syn(at(0), Some(&[asked]));
    let back = n.syn(at(0)).remove(0);
    assert_eq!((back.is_changed(), back.version(), back.available()), (false, 1, Some(mbps(20))));
}

#[test]
fn the_newest_requests_are_answered_first_to_last_and_one_in_a_packet() {
    let mut n = end(AskConfig::default());
    n.peer_syn(at(0), Some(&[]));
    let sent: Vec<u64> = (1..=MOST_WAITING as u64 + 2).collect();
    for rate in &sent {
        n.incoming(at(1), RTT, Data, &[with(Kind::Renegotiate, Some(mbps(*rate)))]);
    }
    let answered: Vec<_> = core::iter::from_fn(|| sends(&mut n, 2, Ack)).collect();
    let expected: Vec<_> = sent[2..].iter().map(|rate| (Kind::Response, Some(mbps(*rate)))).collect();
    assert_eq!(answered, expected);
}

#[test]
fn more_is_asked_in_data_and_waits_behind_a_response() {
    let mut n = granted();
    assert_eq!(n.outgoing(at(400), RTT, Ack, Some(mbps(90))), None);
    n.incoming(at(400), RTT, Data, &[with(Kind::Renegotiate, Some(mbps(1)))]);
    assert_eq!(sends(&mut n, 401, Data), Some((Kind::Response, Some(mbps(1)))));
    assert_eq!(sends(&mut n, 402, Data), Some((Kind::Renegotiate, Some(mbps(90)))));
    assert_eq!(sends(&mut n, 403, Data), None, "once");
    assert_eq!(hears(&mut n, 700, response(mbps(80))), Some(RateAnswer::Granted(mbps(80))));
    assert_eq!((n.state(), n.changes().last().map(|c| c.cause)), (RateState::Granted, Some("raised")));
    assert_eq!(hears(&mut n, 701, response(mbps(85))), None, "the request was answered");
}

/// Requests for 60, 80 and 95 are under way.
#[test]
fn answers_belong_to_the_oldest_request_that_is_not_below_them() {
    let three = || {
        let mut n = granted();
        for rate in [60, 80, 95] {
            n.outgoing(at(400), RTT, Data, Some(mbps(rate)));
        }
        n
    };
    let mut n = three();
    for (rate, answer) in [(60, Some(60)), (80, Some(80)), (88, Some(88)), (90, None)] {
        let expected = answer.map(|rate| RateAnswer::Granted(mbps(rate)));
        assert_eq!(hears(&mut n, 700, response(mbps(rate))), expected, "{rate}");
    }
    // the first two answers were lost
    let mut n = three();
    assert_eq!(hears(&mut n, 700, response(mbps(95))), Some(RateAnswer::Granted(mbps(95))));
    assert_eq!(hears(&mut n, 700, response(mbps(80))), Some(RateAnswer::Reduced(mbps(80))));
    // 2 s later the requests are over
    let mut n = three();
    assert_eq!(hears(&mut n, 2401, response(mbps(60))), None);
    assert_eq!(n.incoming(at(2401), RTT, Ack, &[response(mbps(49))]), Some(RateAnswer::Reduced(mbps(49))));
}

#[test]
fn requests_under_way_are_limited() {
    let mut n = granted();
    let sent = (0..100).filter(|_| n.outgoing(at(400), RTT, Data, Some(mbps(60))).is_some()).count();
    assert_eq!(sent, MOST_UNDER_WAY);
    assert!(n.outgoing(at(2401), RTT, Data, Some(mbps(60))).is_some(), "those before are given up");
}

#[test]
fn a_lower_rate_is_obeyed_although_nobody_asked() {
    let mut n = granted();
    assert_eq!(hears(&mut n, 400, response(mbps(50))), None);
    assert_eq!(hears(&mut n, 400, response(mbps(70))), None);
    assert_eq!(hears(&mut n, 400, response(mbps(20))), Some(RateAnswer::Reduced(mbps(20))));
    assert_eq!((n.granted(), n.state()), (Some(mbps(20)), RateState::Reduced));
    // also while a request is under way
    n.outgoing(at(500), RTT, Data, Some(mbps(40)));
    assert_eq!(hears(&mut n, 600, response(mbps(10))), Some(RateAnswer::Granted(mbps(10))));
    assert_eq!((n.granted(), n.state()), (Some(mbps(10)), RateState::Reduced));
    assert_eq!(n.changes().iter().map(|c| c.cause).collect::<Vec<_>>(), ["granted", "reduced", "reduced"]);
}

#[test]
fn a_rate_of_zero_is_a_refusal() {
    let zero = with(Kind::Response, None);
    let mut n = end(asking(mbps(100)));
    n.syn(at(0));
    assert_eq!(n.peer_syn(at(300), Some(&[zero])), Some(RateAnswer::Refused));
    assert_eq!((n.state(), sends(&mut n, 5000, Data)), (RateState::Refused, None));
    assert_eq!(hears(&mut n, 5000, zero), None, "said once");
    let mut n = granted();
    assert_eq!(hears(&mut n, 400, zero), Some(RateAnswer::Refused));
    assert_eq!((n.granted(), n.state()), (None, RateState::Refused));
    // the sender may ask again
    assert!(n.outgoing(at(500), RTT, Data, Some(mbps(50))).is_some());
    assert_eq!(hears(&mut n, 800, response(mbps(30))), Some(RateAnswer::Granted(mbps(30))));
    assert_eq!(n.changes().iter().map(|c| c.cause).collect::<Vec<_>>(), ["granted", "granted"]);
}

/// In data it is meant for the peer, and goes back in a packet without data; there it is meant for us.
#[test]
fn a_missed_start_goes_back_and_the_sender_asks_again() {
    let missed = with(Kind::MissedStart, None);
    let (mut sender, mut receiver) = (granted(), end(AskConfig::default()));
    receiver.peer_syn(at(0), Some(&[]));
    assert_eq!(receiver.incoming(at(400), RTT, Data, &[missed]), None);
    assert!(receiver.is_due());
    assert_eq!(receiver.outgoing(at(400), RTT, Data, None), None);
    assert_eq!(receiver.outgoing(at(400), RTT, Ack, None), Some(missed));
    assert_eq!(hears(&mut receiver, 401, missed), None);
    assert!(!receiver.is_due(), "it asked for nothing, and returns nothing twice");
    assert_eq!(hears(&mut sender, 500, missed), None);
    assert_eq!(hears(&mut sender, 501, missed), None);
    assert_eq!(sends(&mut sender, 510, Data), Some((Kind::ResendStart, Some(mbps(100)))));
    assert_eq!(hears(&mut sender, 520, missed), None, "once per round trip");
    assert_eq!(sends(&mut sender, 530, Data), None);
    assert_eq!(hears(&mut sender, 800, response(mbps(100))), None, "nobody lowered it");
    assert_eq!(hears(&mut sender, 1200, missed), None);
    assert!(sends(&mut sender, 1200, Data).is_some());
    assert_eq!(hears(&mut sender, 1500, response(mbps(70))), Some(RateAnswer::Granted(mbps(70))));
}

#[test]
fn the_first_thousand_changes_are_kept() {
    let mut n = granted();
    for i in 0..2 * MOST_CHANGES as u64 {
        let rate = if i % 2 == 0 { mbps(60) } else { mbps(40) };
        n.outgoing(at(400 + i), RTT, Data, Some(mbps(90)));
        assert_eq!(hears(&mut n, 400 + i, response(rate)), Some(RateAnswer::Granted(rate)));
    }
    assert_eq!((n.changes().len(), n.change_count()), (MOST_CHANGES, 2 * MOST_CHANGES as u64 + 1));
}

#[test]
fn a_place_for_routers_says_nothing() {
    let mut n = granted();
    let place = n.placeholder().unwrap();
    assert!(place.is_supported() && !place.is_changed());
    assert_eq!((place.kind(), place.available()), (Some(Kind::Forward), Some(mbps(50))));
    assert_eq!((n.incoming(at(400), RTT, Data, &[place]), n.is_due()), (None, false));
}
