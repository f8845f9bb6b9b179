//! Explicit congestion notification: RFC 3168.

use crate::script::{
    ACK, Dialogue, SYN, SYN_ACK, Seg, Want, ack, acks, data, fin, nth, plain, plain_with, sacks,
};
use bentpipe_base::{Ecn, Flags};
use bentpipe_tcp::{Config, EcnUse, Stack};

const ECE: Flags = Flags::ECE;
const CWR: Flags = Flags::CWR;
const NONE: Flags = Flags(0);

fn ecn() -> Config {
    Config { ecn: EcnUse::Request, ..plain() }
}

fn agreed(config: Config) -> Dialogue {
    Dialogue::answered(config, Seg { flags: Flags::SYN.with(ECE), ..SYN_ACK })
}

fn flagged(flags: Flags, ecn: Ecn, want: Want) -> Want {
    Want { flags: Some(flags), ecn: Some(ecn), ..want }
}

/// RFC 3168, section 6.1.1: the SYN requests ECN with ECE and CWR; after a SYN/ACK with ECE, new data is ECT.
/// The SYN is not.
#[test]
fn a_syn_asks_with_ece_and_cwr() {
    let mut d = Dialogue::connect(ecn());
    d.sends(flagged(Flags::SYN.with(ECE).with(CWR), Ecn::NotEct, Want::default()));
    d.at(100).gets(Seg { flags: Flags::SYN.with(ECE), ..SYN_ACK }).sends(flagged(NONE, Ecn::NotEct, ack(1)));
    d.write(1000).sends(flagged(NONE, Ecn::Ect0, data(1, 1000)));
}

/// RFC 3168, section 6.1.1.1: an unanswered SYN is retransmitted without ECN request; a SYN/ACK with ECE then
/// answers the first SYN.
#[test]
fn a_syn_that_goes_again_does_not_ask() {
    for stack in [Stack::Rfc, Stack::Linux] {
        for agrees in [true, false] {
            let mut d = Dialogue::connect(ecn().on(stack));
            d.at(3000).sends(flagged(Flags::SYN.with(ECE).with(CWR), Ecn::NotEct, Want::default()));
            d.sends(flagged(Flags::SYN, Ecn::NotEct, Want::default()));
            d.sends(flagged(Flags::SYN, Ecn::NotEct, Want::default()));
            let flags = if agrees { Flags::SYN.with(ECE) } else { Flags::SYN };
            d.at(3100).gets(Seg { flags, ..SYN_ACK }).sends(ack(1));
            let mark = if agrees { Ecn::Ect0 } else { Ecn::NotEct };
            d.write(1000).sends(flagged(NONE, mark, data(1, 1000)));
        }
    }
}

/// Linux's `tcp_ecn = 2`: an end that only answers does not request ECN, agrees if the peer requests it, and
/// ignores an agreement that it did not request.
#[test]
fn who_only_answers_does_not_ask() {
    assert_eq!(Config::linux().ecn, EcnUse::AcceptOnly);
    for stack in [Stack::Rfc, Stack::Linux] {
        let config = Config { ecn: EcnUse::AcceptOnly, ..plain().on(stack) };
        let mut d = Dialogue::connect(config.clone());
        d.sends(flagged(Flags::SYN, Ecn::NotEct, Want::default()));
        d.at(100).gets(Seg { flags: Flags::SYN.with(ECE), ..SYN_ACK }).sends(ack(1));
        d.write(1000).sends(flagged(NONE, Ecn::NotEct, data(1, 1000)));
        let mut d = Dialogue::accept(config, Seg { flags: Flags::SYN.with(ECE).with(CWR), ..SYN });
        d.sends(flagged(Flags::SYN.with(ECE), Ecn::NotEct, Want::default()));
        d.gets(ACK).write(1000).sends(flagged(NONE, Ecn::Ect0, data(1, 1000)));
        d.gets(Seg { len: 100, ecn: Ecn::Ce, ack: Some(1001), ..ACK }).sends(flagged(
            ECE,
            Ecn::NotEct,
            ack(101),
        ));
    }
}

/// RFC 3168, section 6.1.1: a SYN/ACK has ECE only if the SYN requested ECN.
#[test]
fn a_syn_ack_agrees_with_ece() {
    let asked = Flags::SYN.with(ECE).with(CWR);
    let cases = [
        (ecn(), asked, true),
        (ecn(), Flags::SYN, false),
        (ecn(), Flags::SYN.with(ECE), false),
        (plain(), asked, false),
    ];
    for (config, flags, agrees) in cases {
        let mut d = Dialogue::accept(config, Seg { flags, ..SYN });
        let (answer, mark) =
            if agrees { (Flags::SYN.with(ECE), Ecn::Ect0) } else { (Flags::SYN, Ecn::NotEct) };
        d.sends(flagged(answer, Ecn::NotEct, Want::default()));
        d.gets(ACK).write(1000).sends(flagged(NONE, mark, data(1, 1000)));
    }
}

/// RFC 3168, section 6.1.1: no ECN if the SYN/ACK has no ECE, or reflects the flags of the SYN.
#[test]
fn without_agreement_nothing_is_marked() {
    for flags in [Flags::SYN, Flags::SYN.with(ECE).with(CWR)] {
        let mut d = Dialogue::answered(ecn(), Seg { flags, ..SYN_ACK });
        d.write(1000).sends(flagged(NONE, Ecn::NotEct, data(1, 1000)));
        d.gets(Seg { len: 100, ecn: Ecn::Ce, ..ACK }).sends(flagged(NONE, Ecn::NotEct, ack(101)));
    }
}

/// RFC 3168, section 6.1.3: after a CE mark every ACK has ECE, until the peer sends CWR.
#[test]
fn a_mark_is_echoed_until_cwr() {
    let mut d = agreed(ecn());
    d.gets(Seg { len: 100, ecn: Ecn::Ect0, ..ACK }).sends(flagged(NONE, Ecn::NotEct, ack(101)));
    d.gets(Seg { seq: 101, len: 100, ecn: Ecn::Ce, ..ACK }).sends(flagged(ECE, Ecn::NotEct, ack(201)));
    d.gets(Seg { seq: 201, len: 100, ecn: Ecn::Ect0, ..ACK }).sends(flagged(ECE, Ecn::NotEct, ack(301)));
    d.write(500).sends(flagged(ECE, Ecn::Ect0, data(1, 500)));
    d.gets(Seg { seq: 301, len: 100, flags: CWR, ecn: Ecn::Ect0, ..ACK }).sends(flagged(
        NONE,
        Ecn::NotEct,
        ack(401),
    ));
    // CWR for the last mark, with a new mark
    d.gets(Seg { seq: 401, len: 100, flags: CWR, ecn: Ecn::Ce, ..ACK }).sends(flagged(
        ECE,
        Ecn::NotEct,
        ack(501),
    ));
}

/// RFC 3168, section 6.1.2: an ECE halves the window once per window of data; the next new segment has CWR,
/// once.
#[test]
fn cwr_is_sent_once_for_each_window() {
    let mut d = agreed(Config { initial_window: 8, ..ecn() });
    d.write(30_000);
    for i in 0..8 {
        d.sends(flagged(NONE, Ecn::Ect0, data(1 + 1000 * i, 1000)));
    }
    let echo = |n: u64| Seg { ack: Some(n), flags: ECE, ..ACK };
    d.at(200).gets(echo(1001)).gets(echo(2001)).gets(echo(3001)).silent();
    assert!(d.conn.cwnd().0 <= 4500, "{:?}", d.conn.cwnd());
    d.gets(echo(6001)).sends(flagged(CWR, Ecn::Ect0, data(8001, 1000)));
    while let Some(p) = d.try_take() {
        assert!(!p.tcp.flags.has(CWR));
    }
    let cwnd = d.conn.cwnd();
    d.gets(echo(8001));
    assert!(d.conn.cwnd() < cwnd, "a new window, a new reduction");
}

/// RFC 3168, section 6.1.2: a reduction after a loss also sends CWR, on new data, not on the retransmission.
#[test]
fn cwr_follows_a_fast_retransmission() {
    let mut d = agreed(Config { initial_window: 8, ..ecn() });
    d.write(30_000);
    for i in 0..8 {
        d.sends(data(1 + 1000 * i, 1000));
    }
    d.at(200).gets_times(3, ACK).sends(flagged(NONE, Ecn::NotEct, data(1, 1000))).silent();
    d.gets(Seg { ack: Some(8001), ..ACK }).sends(flagged(CWR, Ecn::Ect0, data(8001, 1000)));
    d.sends(flagged(NONE, Ecn::Ect0, data(9001, 1000)));
}

/// RFC 3168, section 6.1.2: so does a reduction after a timeout.
#[test]
fn cwr_follows_a_timeout() {
    let mut d = agreed(ecn());
    d.write(1000).sends(flagged(NONE, Ecn::Ect0, data(1, 1000)));
    d.at(1100).sends(flagged(NONE, Ecn::NotEct, data(1, 1000)));
    d.gets(Seg { ack: Some(1001), ..ACK }).write(500).sends(flagged(CWR, Ecn::Ect0, data(1001, 500)));
}

/// RFC 3168, sections 6.1.4 to 6.1.6: retransmissions, pure ACKs and window probes are not ECT.
#[test]
fn control_segments_are_not_ect() {
    let mut d = agreed(ecn());
    d.write(1000).sends(flagged(NONE, Ecn::Ect0, data(1, 1000)));
    d.at(1100).sends(flagged(NONE, Ecn::NotEct, data(1, 1000)));
    d.gets(Seg { len: 1, ack: Some(1001), win: 0, ..ACK }).sends(flagged(NONE, Ecn::NotEct, ack(2)));
    d.write(1000).silent();
    d.at(60_000).sends(flagged(NONE, Ecn::NotEct, data(1001, 1)));
}

/// RFC 3168, section 6.1: a FIN alone carries no data and is not ECT.
#[test]
fn a_fin_alone_is_not_ect() {
    let mut d = agreed(ecn());
    d.close().sends(Want { ecn: Some(Ecn::NotEct), ..fin(1) });
}

const fn echo(mut seg: Seg) -> Seg {
    seg.flags = ECE;
    seg
}

/// Ten segments sent at 100 ms, more data written; the clock is at 200 ms.
fn linux(scheme: &str) -> Dialogue {
    let config = Config { ecn: EcnUse::Request, initial_window: 10, ..plain_with(scheme).on(Stack::Linux) };
    let sack_ok = config.options.sack;
    let mut d = Dialogue::answered(config, Seg { flags: Flags::SYN.with(ECE), sack_ok, ..SYN_ACK });
    d.write(1_000_000).sent(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    d.at(200);
    d
}

/// `tcp_enter_cwr`, `tcp_cwnd_reduction`: a mark reduces the window by PRR: CWR is sent with the first
/// acknowledgment, then one segment for two, until more than the window is acknowledged. By RFC 3168, section
/// 6.1.2, the window is reduced at once, and CWR waits until the flight has drained.
#[test]
fn linux_lowers_the_window_by_prr() {
    for scheme in ["newreno", "sack"] {
        let mut d = linux(scheme);
        let mut sent = Vec::new();
        for k in 1..=10 {
            d.gets(echo(acks(k)));
            sent.extend(d.drain().iter().map(|p| (k, p.tcp.flags.has(CWR))));
        }
        // five segments for ten; after the first in bursts of two
        let five = [(1, true), (5, false), (5, false), (10, false), (10, false)];
        assert_eq!((sent.as_slice(), d.cwnd()), (&five[..], 5000), "{scheme}");
        // the receiver has got CWR: the reduction ends, and the next ECE counts
        d.at(300).gets(acks(11)).drain();
        assert_eq!(d.cwnd(), 5000);
        d.gets(echo(acks(12))).drain();
        assert_eq!(d.cwnd(), 2000, "of five, in whole segments");
    }
    let mut d = agreed(Config { initial_window: 10, ..ecn() });
    d.write(1_000_000).drain();
    d.at(200).gets(echo(acks(1))).gets(echo(acks(6))).silent();
    d.gets(echo(acks(7))).sends(flagged(CWR, Ecn::Ect0, data(nth(10), 1000)));
}

/// `tcp_fastretrans_alert`: the state lasts until data beyond it is acknowledged, so that ECE of the same
/// mark does not count again; the window does not grow.
#[test]
fn linux_holds_until_cwr_has_arrived() {
    let mut d = linux("sack");
    d.gets(echo(acks(1))).gets(echo(acks(9))).gets(echo(acks(10))).drain();
    assert_eq!(d.cwnd(), 5000);
}

/// `tcp_enter_recovery`: a loss during the reduction does not reduce the window further.
#[test]
fn a_loss_after_a_mark_goes_on_with_its_reduction() {
    let mut d = linux("sack");
    d.gets(echo(acks(1))).drain();
    d.gets(echo(sacks(1, &[(2, 5)]))).drain();
    assert_eq!((d.cwnd(), d.conn.stats().retransmits), (5000, 1));
    d.at(300).gets(acks(11)).drain();
    assert_eq!(
        (d.cwnd(), d.conn.scoreboard().lost()),
        (6000, 0),
        "the ACK that ends it grows by what it delivers"
    );
}
