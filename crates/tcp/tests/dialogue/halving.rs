//! Rate halving: Mathis, Semke, Mahdavi, 1999.

use crate::script::{Dialogue, acks, plain_with, sacks};
use bentpipe_tcp::Growth;
use bentpipe_tcp::cc::cubic;

/// "The rate-halving algorithm", section 3: one segment for two that are delivered, until half the flight
/// remains.
#[test]
fn one_is_sent_for_two() {
    let mut d = Dialogue::flying(plain_with("rate-halving"), 20);
    d.gets(sacks(0, &[(1, 4)])).sent(&[0]);
    let mut sent = Vec::new();
    for r in 5..=20 {
        d.gets(sacks(0, &[(1, r)]));
        sent.push(d.drain().len());
    }
    // in flight follows the window from 17 (three were delivered before) down to half of 20
    assert_eq!(sent[6..], [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    assert!(sent.iter().all(|n| *n <= 1), "no bursts: {sent:?}");
}

/// "The rate-halving algorithm", section 3: the window ends at half of what was in flight.
#[test]
fn it_ends_at_half() {
    let mut d = Dialogue::flying(plain_with("rate-halving"), 20);
    d.gets(sacks(0, &[(1, 4)])).gets(sacks(0, &[(1, 20)])).gets(acks(20)).drain();
    assert_eq!(d.cwnd(), 10_000);
    assert_eq!(d.conn.scoreboard().pipe(), 10_000);
}

/// "The rate-halving algorithm", section 3: segments delivered before the loss was certain count: 20 are
/// delivered, 10 are sent, one by one.
#[test]
fn duplicates_before_recovery_count() {
    let mut d = Dialogue::flying(plain_with("rate-halving"), 20);
    for r in 2..=20 {
        d.gets(sacks(0, &[(1, r)]));
    }
    assert_eq!(d.conn.scoreboard().pipe(), 10_000);
    assert_eq!(d.drain().len(), 10);
}

/// Mathis et al., FACK with rate halving: an ACK that reports many segments allows one segment, not a burst.
#[test]
fn one_ack_lets_no_burst_go() {
    let mut d = Dialogue::flying(plain_with("rate-halving"), 20);
    d.gets(sacks(0, &[(1, 4)])).sent(&[0]);
    d.gets(sacks(0, &[(1, 20)])).sent(&[20]);
}

/// The window is not reduced below the scheme's: CUBIC asks for 0.7.
#[test]
fn it_stops_at_the_window_of_the_scheme() {
    let mut config = plain_with("rate-halving");
    config.scheme.growth = Growth::of(&cubic::ALGORITHM);
    let mut d = Dialogue::flying(config, 20);
    for r in 4..=20 {
        d.gets(sacks(0, &[(1, r)])).drain();
    }
    assert_eq!(d.conn.scoreboard().pipe(), 14_000);
}
