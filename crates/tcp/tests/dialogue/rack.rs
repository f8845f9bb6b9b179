//! RACK: RFC 8985, section 6. The smallest RTT is 100 ms, so a quarter of it is 25 ms.

use crate::script::{Dialogue, acks, data, nth, plain_with, sacks};
use bentpipe_tcp::cc::reno;
use bentpipe_tcp::{Config, Detection, Growth, RecoveryParams, Reduction, Scheme};

pub(crate) fn rack() -> Config {
    let recovery = RecoveryParams { detection: Detection::Rack, reduction: Reduction::AtOnce, frto: false };
    let config = plain_with("cubic");
    Config { scheme: Scheme { recovery, growth: Growth::of(&reno::ALGORITHM), ..config.scheme }, ..config }
}

fn flying(n: u32) -> Dialogue {
    Dialogue::flying(rack(), n)
}

/// RFC 8985, section 6.2, steps 4 and 5: a segment sent earlier is lost once a quarter of the smallest RTT
/// has passed as well.
#[test]
fn the_reordering_timer_finds_the_loss() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 2)])).sent(&[10]);
    d.at(224).sent(&[]).at(225).sent(&[0]);
}

/// RFC 8985, section 6.2, step 4: with three SACKed segments and no reordering seen, there is no wait.
#[test]
fn three_sacked_segments_end_the_waiting() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 3)])).sent(&[10, 11]).gets(sacks(0, &[(1, 4)]));
    d.sends(data(nth(0), 1000));
}

/// RFC 5681, section 3.2, step 2: segments sent beyond the window while SACKs arrive do not raise ssthresh.
#[test]
fn early_new_data_is_no_part_of_the_flight() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 2)])).gets(sacks(0, &[(1, 3)])).gets(sacks(0, &[(1, 4)])).sent(&[10, 11, 0]);
    assert_eq!(d.cwnd(), 5000);
}

/// RFC 8985, section 6.2, steps 3 and 4: once reordering was seen, three SACKed segments do not mean a loss.
#[test]
fn reordering_seen_is_waited_for() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 2)])).at(210).gets(acks(2)).at(212).gets(sacks(2, &[(3, 7)])).at(220).gets(acks(7));
    d.at(400).drain();
    assert_eq!(d.conn.stats().retransmits, 0);
}

/// RFC 8985, section 6.2, step 5: a lost retransmission is detected by later segments.
#[test]
fn a_lost_retransmission_is_found() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 4)])).sent(&[0]);
    d.at(210).gets(sacks(0, &[(1, 10)])).sent(&[10, 11, 12, 13]);
    d.at(310).gets(sacks(0, &[(1, 11)]));
    d.sends(data(nth(0), 1000));
    assert_eq!(d.conn.stats().timeouts, 0);
    // and its timer restarted (RFC 6675, section 6)
    d.at(1309).drain();
    assert_eq!(d.conn.stats().timeouts, 0);
}

/// RFC 8985, section 6.2, step 4: each round with a DSACK widens the reordering window by a quarter of the
/// smallest RTT.
#[test]
fn a_dsack_widens_the_window() {
    let mut d = flying(10);
    d.gets(sacks(1, &[(0, 1)])).gets(sacks(1, &[(2, 3)])).drain();
    d.at(249).sent(&[]).at(250).sends(data(nth(1), 1000));
}

/// RFC 8985, section 6.2, step 5: segments sent after the newest delivered one are not checked.
#[test]
fn later_segments_are_not_judged() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 10)])).drain();
    // an RTT later, but no later segment was delivered
    d.at(310).gets(sacks(0, &[(1, 10)])).at(400).drain();
    assert_eq!(d.conn.stats().retransmits, 1);
}

/// RFC 8985, section 6.2, step 3: any segment newly acknowledged below the highest delivered before, and
/// never retransmitted, shows reordering; not only the one of the ACK that was sent last.
#[test]
fn reordering_shows_in_any_segment_of_an_ack() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(2, 3)])).sent(&[10]);
    d.gets(sacks(0, &[(5, 6), (1, 3)])).sent(&[11, 12]);
    d.at(224).sent(&[]).at(225).sends(data(nth(0), 1000));
    // also below the cumulative acknowledgment
    let mut d = flying(10);
    d.gets(sacks(0, &[(2, 3)])).sent(&[10]);
    d.gets(sacks(3, &[(5, 8)])).drain();
    assert_eq!(d.conn.stats().retransmits, 0);
    d.at(224).sent(&[]).at(225).sends(data(nth(3), 1000));
}

/// RFC 8985, section 6.2, step 3: a retransmitted segment does not show reordering, though it is below what
/// was delivered before.
#[test]
fn a_repair_shows_no_reordering() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 4)])).sent(&[0]);
    d.at(210).gets(sacks(0, &[(1, 10)])).sent(&[10, 11, 12, 13]);
    d.at(300).gets(acks(10)).drain();
    d.at(310).gets(sacks(10, &[(11, 14)])).sends(data(nth(10), 1000));
}

/// RFC 8985, section 6.2, step 2: if a retransmission is acknowledged sooner than the smallest RTT, the
/// original arrived; other segments of that ACK count.
#[test]
fn an_ambiguous_repair_hides_nothing() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 4)])).sent(&[0]);
    // 0 after 30 ms: its original; 8 was delivered last
    d.at(230).gets(sacks(4, &[(8, 9)])).drain();
    assert!(d.conn.scoreboard().lost() >= 4000, "4 to 7 are lost: {:?}", d.conn.scoreboard());
}

/// RFC 6675, Update(), on an ACK out of order: it reports a DSACK only below its own acknowledgment.
#[test]
fn an_overtaken_ack_reports_no_dsack() {
    let mut d = flying(10);
    d.gets(acks(2)).drain();
    d.gets(sacks(1, &[(1, 2)])).gets(sacks(2, &[(3, 4)])).drain();
    d.at(224).sent(&[]).at(225).sends(data(nth(2), 1000)); // a quarter of the smallest RTT, not two
}
