//! Proportional rate reduction: RFC 9937, section 6.2.

use crate::script::{Dialogue, acks, data, nth, plain_with, sacks};
use bentpipe_tcp::{Config, Reduction};

fn flying(n: u32) -> Dialogue {
    let mut config: Config = plain_with("sack");
    config.scheme.recovery.reduction = Reduction::Prr;
    Dialogue::flying(config, n)
}

/// The deliveries after which something is sent, counted from the one that begins recovery, while SACKs
/// arrive up to the last segment.
fn sends_at(d: &mut Dialogue, n: u64) -> Vec<u64> {
    let mut at = Vec::new();
    d.gets(sacks(0, &[(1, 3)])).sent(&[]);
    for delivered in 1..=n - 3 {
        d.gets(sacks(0, &[(1, 3 + delivered)]));
        at.extend(d.drain().iter().map(|_| delivered));
    }
    at
}

/// RFC 9937: while more than ssthresh is in flight, ceil(prr_delivered * ssthresh / RecoverFS) - prr_out are
/// sent. Here 10 for 18 delivered; the first ACK forces a segment; at ssthresh the slow-start part sends one
/// for one.
#[test]
fn the_proportional_part_sends_in_proportion() {
    let mut d = flying(20);
    assert_eq!(sends_at(&mut d, 20), [1, 4, 6, 8, 9, 11, 14, 15, 16, 17]);
}

/// RFC 9937: at the end of recovery the window is ssthresh.
#[test]
fn recovery_ends_at_ssthresh() {
    let mut d = flying(20);
    sends_at(&mut d, 20);
    assert_eq!(d.conn.scoreboard().pipe(), 10_000);
    d.gets(acks(20)).drain();
    assert_eq!(d.cwnd(), 10_000);
    assert_eq!(d.conn.scoreboard().pipe(), 10_000);
}

/// RFC 9937: the same if recovery sent very little.
#[test]
fn after_recovery_the_window_is_ssthresh() {
    let mut d = flying(20);
    d.gets(sacks(0, &[(17, 20)])).sent(&[0, 1, 2]);
    d.gets(acks(20)).sent(&(20..30).collect::<Vec<_>>());
}

/// RFC 9937: below ssthresh, as many as were delivered, and one more on an ACK that advances and reports no
/// new loss.
#[test]
fn a_safe_ack_sends_one_more() {
    let mut d = flying(20);
    d.gets(sacks(0, &[(17, 20)])).sent(&[0, 1, 2]); // 17 lost, three delivered
    d.gets(acks(1)).sent(&[3, 4]);
    d.gets(acks(2)).sent(&[5, 6]);
}

/// RFC 9937: an ACK that advances but reports new losses sends no more than was delivered.
#[test]
fn an_unsafe_ack_sends_what_was_delivered() {
    let mut d = flying(20);
    d.gets(sacks(0, &[(13, 16)])).drain(); // 0 to 12 lost; 16 to 19 not yet
    let before = d.conn.stats().segments_sent;
    d.gets(sacks(1, &[(17, 20), (13, 16)])).drain(); // 16 is lost too; four delivered
    assert_eq!(d.conn.stats().segments_sent - before, 4);
}

/// RFC 9937: the first ACK of recovery sends a segment even if the proportion gives none.
#[test]
fn the_first_ack_forces_a_segment() {
    let mut d = flying(20);
    d.gets(sacks(0, &[(1, 2)])).gets(sacks(0, &[(1, 3)])).sent(&[]);
    d.gets(sacks(0, &[(1, 4)])).sends(data(nth(0), 1000)).silent();
}
