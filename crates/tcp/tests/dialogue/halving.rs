//! Rate halving: Mathis, Semke, Mahdavi, 1999.

use crate::script::{Dialogue, acks, plain_with, sacks};

/// "The rate-halving algorithm", section 3: one segment for two that are delivered, until half the flight is left.
#[test]
fn one_is_sent_for_two() {
    let mut d = Dialogue::flying(plain_with("rate-halving"), 20);
    d.gets(sacks(0, &[(1, 4)])).sent(&[0]);
    let mut sent = Vec::new();
    for r in 5..=20 {
        d.gets(sacks(0, &[(1, r)]));
        sent.push(d.drain().len());
    }
    // what is in flight follows the window from 17 (three had left at the start) down to half of 20
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
