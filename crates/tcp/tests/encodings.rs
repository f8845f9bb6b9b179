//! SCONE's TCP option and Quick-Start end to end: two connections over a path with constant delay, and a
//! network that lowers, loses, strips and forges what they say about rates.

#![allow(clippy::unwrap_used, dead_code, reason = "a test may say what it takes for granted, and use a part")]

use bentpipe_advice::quick_start::packet::{of_ip, of_tcp, pass_in};
use bentpipe_advice::quick_start::{Fields, Function, Hop, RateCode};
use bentpipe_advice::scone::Advice;
use bentpipe_advice::scone_tcp::packet::{lower_in, of, put};
use bentpipe_advice::scone_tcp::{Advised, Kind};
use bentpipe_base::{Flags, Instant, IpVersion, Packet, Rate};
use bentpipe_tcp::{AskConfig, Config, Encoding, RateState, Scheme, Signalling};
use net::{ASK, MSS, Net, host, ms};

#[path = "signalling/net.rs"]
mod net;

const V4: IpVersion = IpVersion::V4;
const V6: IpVersion = IpVersion::V6;
/// A segment on the wire without options of signalling: MSS, TCP and IPv4 header.
const SEGMENT: u64 = MSS as u64 + 40;

/// A CUBIC host with an encoding.
fn with(encoding: Encoding, ask: Option<Rate>, ip: IpVersion) -> Config {
    let signalling = Some(Signalling::new(AskConfig { encoding, ask, ..AskConfig::default() }));
    Config { scheme: Scheme::named("cubic").unwrap(), signalling, ..host(None, ip) }
}

fn advice(n: u8) -> Advice {
    Advice::new(n).unwrap()
}

fn rate(n: u8) -> Rate {
    advice(n).rate().unwrap()
}

fn code(n: u8) -> RateCode {
    RateCode::new(n).unwrap()
}

fn is_about(measured: f64, rate: Rate) -> bool {
    (0.97..=1.03).contains(&(measured / rate.bps() as f64))
}

/// A sender with much data and its receiver.
fn sending<'n>(
    encoding: Encoding,
    ip: IpVersion,
    network: impl FnMut(Instant, usize, &mut Packet) -> bool + 'n,
) -> Net<'n> {
    let mut net = Net::new(with(encoding, ASK, ip), with(encoding, None, ip), network);
    net.with(0, |sender| sender.write(1 << 40));
    net
}

/// State, granted rate, and the changes: time in ms, rate, cause.
type RateOutcome = (RateState, Option<Rate>, Vec<(u64, Rate, &'static str)>);

fn outcome(net: &Net<'_>) -> RateOutcome {
    let view = net.end(0).rate().unwrap();
    let changes = view.changes.iter().map(|c| (c.at.0 / 1_000_000, c.rate, c.cause)).collect();
    (view.state, view.granted, changes)
}

/// Signals that a side sent: time in ms, whether with data, echo.
fn options(net: &Net<'_>, side: usize) -> Vec<(u64, bool, Option<u8>)> {
    let said = |(at, packet): (Instant, &Packet)| {
        let option = of(packet)?;
        Some((at.0 / 1_000_000, packet.body.len > 0, option.echo(true).map(Advice::get)))
    };
    net.of(side).filter_map(said).collect()
}

/// Step 26 is 1.995 Mbit/s, less than a window of 10 segments sends in 100 ms.
#[test]
fn advice_limits_the_rate_and_nothing_else() {
    for ip in [V4, V6] {
        let mut net = sending(Encoding::SconeTcp, ip, |_, side, packet| {
            if side == 0 {
                lower_in(packet, advice(26));
            }
            true
        });
        net.run(ms(20_000));
        assert_eq!(outcome(&net), (RateState::Granted, Some(rate(26)), vec![(100, rate(26), "granted")]));
        assert_eq!(net.end(0).fallback(), None);
        for second in [1, 10, 18] {
            let measured = net.rate(0, ms(150 + second * 1000));
            assert!(is_about(measured, rate(26)), "IPv{ip:?}, second {second}: {measured}");
        }
        // SYN; first data; 1, 2, 4 and 8 s later
        let sent: Vec<u64> = options(&net, 0).iter().map(|o| o.0 / 100).collect();
        assert_eq!(sent, [0, 1, 11, 31, 71, 151]);
        assert!(options(&net, 1).iter().all(|o| !o.1 && o.2 == Some(26)), "{:?}", options(&net, 1));
        let longest = net.of(0).map(|(_, packet)| packet.wire_len().0).max();
        assert_eq!(longest, Some(SEGMENT + u64::from(ip.header()) - 20), "each segment has room for it");
    }
}

/// A lower rate after the next option and a round trip; a higher one when the lower one is 67 s old.
#[test]
fn a_lower_rate_comes_with_the_next_option_and_a_higher_one_late() {
    let mut net = sending(Encoding::SconeTcp, V4, |now, side, packet| {
        let limit = if (ms(2000)..ms(8000)).contains(&now) { 12 } else { 20 };
        if side == 0 {
            lower_in(packet, advice(limit));
        }
        true
    });
    net.run(ms(75_000));
    let (state, granted, changes) = outcome(&net);
    assert_eq!((state, granted), (RateState::Granted, Some(rate(20))));
    let expected = [(rate(20), "granted"), (rate(12), "reduced"), (rate(20), "raised")];
    assert_eq!(changes.iter().map(|c| (c.1, c.2)).collect::<Vec<_>>(), expected);
    // options were sent at 3.1 s and 7.1 s; the second one counts
    assert!((3200..3300).contains(&changes[1].0), "{changes:?}");
    assert!((74_200..74_500).contains(&changes[2].0), "{changes:?}");
    assert!(is_about(net.rate(0, ms(5000)), rate(12)) && is_about(net.rate(0, ms(60_000)), rate(12)));
}

#[test]
fn advice_that_is_not_repeated_expires() {
    let mut net = sending(Encoding::SconeTcp, V4, |now, side, packet| {
        if side == 0 && now < ms(1000) {
            lower_in(packet, advice(12));
        }
        true
    });
    net.run(ms(68_000));
    assert_eq!(outcome(&net).0, RateState::Plain);
    assert!(is_about(net.rate(0, ms(60_000)), rate(12)));
}

#[test]
fn it_is_used_only_if_both_syns_have_it() {
    // the SYN, or the SYN/ACK, loses it on the way; the receiver does not know it
    for lost in 0..3 {
        let answer = if lost == 2 { host(None, V4) } else { with(Encoding::SconeTcp, None, V4) };
        let answer = Config { signalling: answer.signalling.filter(|_| lost < 2), ..answer };
        let mut net = Net::new(with(Encoding::SconeTcp, ASK, V4), answer, |_, side, packet| {
            if side == lost && packet.tcp.flags.has(Flags::SYN) {
                packet.signal = None;
                packet.seal();
            }
            true
        });
        net.with(0, |sender| sender.write(100_000));
        net.run(ms(3000));
        assert_eq!((outcome(&net).0, options(&net, 0).len()), (RateState::Plain, 1), "{lost}");
        assert_eq!(net.end(0).stats().bytes_acked.0, 100_000);
        let longest = net.of(0).map(|(_, packet)| packet.wire_len().0).max();
        assert_eq!(longest, Some(SEGMENT), "{lost}");
    }
}

#[test]
fn a_syn_that_is_lost_twice_goes_without_it() {
    for (lost, state) in [(1, RateState::Granted), (2, RateState::Plain)] {
        let mut left = lost;
        let mut net = sending(Encoding::SconeTcp, V4, move |_, side, packet| {
            let is_lost = side == 0 && packet.tcp.flags.has(Flags::SYN) && left > 0;
            left -= i32::from(is_lost);
            lower_in(packet, advice(12));
            !is_lost
        });
        net.run(ms(8000));
        assert_eq!(outcome(&net).0, state, "{lost} lost");
    }
}

/// A forged echo cannot raise a rate within the period, nor make a sender faster than its window.
#[test]
fn a_forged_echo_raises_nothing() {
    let forge = |from: u64| {
        move |now: Instant, side: usize, packet: &mut Packet| {
            if side == 0 {
                lower_in(packet, advice(12));
            } else if now >= ms(from) && !packet.tcp.flags.has(Flags::SYN) {
                packet.signal = None;
                packet.seal();
                put(packet, Advised::new(Kind::default(), Advice::UNKNOWN).with_echo(advice(126)));
            }
            true
        }
    };
    let mut net = sending(Encoding::SconeTcp, V4, forge(1000));
    net.run(ms(10_000));
    assert_eq!((outcome(&net).0, outcome(&net).1), (RateState::Granted, Some(rate(12))));
    // without true advice: as a sender without signalling
    let plain = || Config { signalling: None, ..with(Encoding::SconeTcp, None, V4) };
    let mut off = Net::new(plain(), plain(), |_, _, _| true);
    off.with(0, |sender| sender.write(200_000));
    off.run(ms(2000));
    let mut net = sending(Encoding::SconeTcp, V4, |_, side, packet| {
        if side == 1 && packet.signal.is_some() {
            packet.signal = None;
            packet.seal();
            put(packet, Advised::new(Kind::default(), Advice::UNKNOWN).with_echo(advice(126)));
        }
        true
    });
    net.run(ms(290));
    let first_window = |net: &Net<'_>| net.of(0).filter(|(at, p)| *at < ms(200) && p.body.len > 0).count();
    assert_eq!((first_window(&net), first_window(&off)), (10, 10));
}

/// A path of `routers` routers of which the last `plain` ones know nothing of Quick-Start; the others approve
/// `approved`.
fn path(approved: u8, routers: u8, plain: u8) -> impl FnMut(Instant, usize, &mut Packet) -> bool {
    move |_, side, packet| {
        packet.hops -= routers;
        if side == 0 {
            for _ in plain..routers {
                pass_in(packet, Hop { approved: code(approved), hops: 1, random: 0x0BAD_CAFE });
            }
        }
        true
    }
}

/// IP options that a side sent: time in ms, function, rate.
fn requests(net: &Net<'_>, side: usize) -> Vec<(u64, Option<Function>, u8)> {
    let said = |(at, packet): (Instant, &Packet)| {
        let fields = of_ip(packet)?;
        Some((at.0 / 1_000_000, fields.function(), fields.rate().get()))
    };
    net.of(side).filter_map(said).collect()
}

/// Code 7 is 5.12 Mbit/s: 64 kB in a round trip of 100 ms. Then congestion avoidance.
#[test]
fn an_approved_rate_is_sent_at_for_a_round_trip() {
    for ip in [V4, V6] {
        let mut net = sending(Encoding::QuickStart, ip, path(7, 3, 0));
        net.run(ms(1200));
        let approved = code(7).rate().unwrap();
        assert_eq!(outcome(&net), (RateState::Granted, Some(approved), vec![(100, approved, "granted")]));
        let in_round = |from: u64, to: u64| -> u64 {
            let sent = net.of(0).filter(|(at, p)| (ms(from)..ms(to)).contains(at) && p.body.len > 0);
            sent.map(|(_, packet)| packet.wire_len().0).sum()
        };
        let first = in_round(100, 200);
        assert!((60_000..=66_000).contains(&first), "IPv{ip:?}: {first}");
        let half = in_round(100, 150);
        assert!((0.45..0.6).contains(&(half as f64 / first as f64)), "it is paced: {half} of {first}");
        let later = in_round(1000, 1100);
        assert!((60_000..=90_000).contains(&later), "no slow start follows: {later}");
        // a request, and the report in the next packet
        let (request, report) = (Some(Function::Request), Some(Function::Report));
        assert_eq!(requests(&net, 0), [(0, request, 15), (100, report, 7)]);
        assert!(requests(&net, 1).is_empty() && net.of(1).filter(|(_, p)| of_tcp(p).is_some()).count() == 1);
        assert_eq!(net.end(0).fallback(), None);
    }
}

/// The TTL of the packet is lowered, QS TTL is not.
#[test]
fn a_router_that_knows_nothing_voids_it() {
    for (routers, plain) in [(1, 1), (3, 1), (3, 3)] {
        let mut net = sending(Encoding::QuickStart, V4, path(7, routers, plain));
        net.run(ms(195));
        assert_eq!(outcome(&net), (RateState::Plain, None, vec![]), "{plain} of {routers}");
        assert_eq!(net.of(0).filter(|(_, packet)| packet.body.len > 0).count(), 10, "the initial window");
        assert_eq!(requests(&net, 0)[1], (100, Some(Function::Report), 0), "the routers hear of it");
    }
}

#[test]
fn a_refusal_a_lost_syn_and_a_stripped_option_leave_an_ordinary_tcp() {
    let mut net = sending(Encoding::QuickStart, V4, path(0, 2, 0));
    net.run(ms(195));
    assert_eq!(outcome(&net).0, RateState::Refused);
    // the SYN that is sent again has no request, nor has the SYN/ACK an answer
    for lost in 0..2 {
        let mut path = path(7, 2, 0);
        let mut is_first = true;
        let mut net = sending(Encoding::QuickStart, V4, move |now, side, packet| {
            path(now, side, packet);
            let is_lost = side == lost && is_first;
            is_first &= !is_lost;
            !is_lost
        });
        net.run(ms(3000));
        assert_eq!((outcome(&net).0, requests(&net, 0).len()), (RateState::Plain, 1), "{lost}");
    }
    let mut path = path(7, 2, 0);
    let mut net = sending(Encoding::QuickStart, V4, move |now, side, packet| {
        packet.signal = None;
        packet.seal();
        path(now, side, packet)
    });
    net.run(ms(195));
    assert_eq!(outcome(&net).0, RateState::Plain);
}

/// The receiver claims more than it got; it does not know the nonce.
#[test]
fn a_forged_answer_is_not_believed() {
    let mut path = path(3, 2, 0);
    let mut net = sending(Encoding::QuickStart, V4, move |now, side, packet| {
        let answer = of_tcp(packet).map(|answer| {
            let mut forged = Fields::request(code(15), answer.ttl(), answer.nonce());
            forged.set_rate(code(15));
            forged
        });
        if answer.is_some() {
            packet.signal = None;
            bentpipe_advice::quick_start::packet::put(packet, None, answer);
        }
        path(now, side, packet)
    });
    net.run(ms(195));
    assert_eq!((outcome(&net).0, outcome(&net).1), (RateState::Plain, None));
}

/// A queue that holds 20 segments of the 64: the sender starts again from the initial window, and all
/// arrives.
#[test]
fn a_loss_in_the_first_round_ends_the_quick_start() {
    let mut path = path(7, 2, 0);
    let mut n = 0;
    let mut net = Net::new(
        with(Encoding::QuickStart, ASK, V4),
        with(Encoding::QuickStart, None, V4),
        move |now, side, packet| {
            path(now, side, packet);
            let is_data = side == 0 && packet.body.len > 0 && now < ms(200);
            n += i32::from(is_data);
            !is_data || n % 3 != 0 || n < 20
        },
    );
    net.with(0, |sender| sender.write(1_000_000));
    net.run(ms(250));
    assert_eq!(outcome(&net).0, RateState::FallenBack);
    assert_eq!(
        net.end(0).fallback().map(|f| (f.to, f.why)),
        Some(("cubic", "a packet of the Quick-Start was lost"))
    );
    net.run(ms(10_000));
    assert_eq!(net.end(0).stats().bytes_acked.0, 1_000_000);
    assert_eq!(net.end(0).stats().timeouts, 0);
    let finished = net.of(1).filter(|(_, p)| p.tcp.flags.has(Flags::ACK)).map(|(at, _)| at).max();
    assert!(finished.is_some_and(|at| at < ms(3500)), "{finished:?}");
}
