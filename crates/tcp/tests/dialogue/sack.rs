//! SACK-based recovery: RFC 6675.

use crate::script::{Dialogue, Seg, acks, data, nth, plain_with, sacks};
use bentpipe_tcp::{Config, Stack};

fn flying(n: u32) -> Dialogue {
    Dialogue::flying(plain_with("sack"), n)
}

/// RFC 6675, section 4, IsLost, and section 5, step 2: a segment with more than two segments SACKed above it
/// is lost, even at the first duplicate.
#[test]
fn more_than_two_segments_above_are_a_loss() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 3)])).sent(&[]);
    d.gets(sacks(0, &[(1, 4)])).sent(&[0]);
    assert_eq!(d.cwnd(), 5000);
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 4)])).sent(&[0]);
}

/// RFC 6675, section 4, IsLost: three separate SACKed ranges above a segment: it is lost, however short they
/// are.
#[test]
fn three_blocks_above_are_a_loss() {
    let mut d = Dialogue::established(Config { initial_window: 4, ..plain_with("sack") });
    for _ in 0..8 {
        d.write(100);
    }
    d.drain();
    let short = |blocks: &[(u64, u64)]| {
        let mut seg = acks(0);
        for (to, (l, r)) in seg.sack.iter_mut().zip(blocks) {
            *to = (1 + 100 * l, 1 + 100 * r);
        }
        seg
    };
    d.at(200).gets(short(&[(2, 3), (4, 5)])).silent();
    d.gets(short(&[(6, 7), (2, 3), (4, 5)])).sends(data(1, 100));
}

/// RFC 6675, section 5, step 1: the third duplicate ACK begins recovery.
#[test]
fn the_third_duplicate_begins_recovery() {
    let mut d = Dialogue::established(Config { initial_window: 4, ..plain_with("sack") });
    for _ in 0..8 {
        d.write(100);
    }
    d.drain();
    for k in 1..=3_u64 {
        let mut seg = acks(0);
        seg.sack[0] = (101, 101 + 100 * k);
        d.at(200).silent().gets(seg);
    }
    d.sends(data(1, 100));
}

/// RFC 6675, section 2: an ACK without new SACK information is not a duplicate.
#[test]
fn an_ack_that_reports_nothing_new_is_no_duplicate() {
    let mut d = flying(10);
    d.gets_times(5, sacks(0, &[(1, 2)])).sent(&[]);
}

/// RFC 6675, section 4, SetPipe, and section 5, step 4: SACKed and lost segments are not in the pipe; each
/// segment that leaves it allows another.
#[test]
fn the_pipe_decides() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(3, 6)])).sent(&[0]); // 10 - 3 SACKed - 3 lost + 1 resent = 5 = ssthresh
    d.gets(sacks(0, &[(3, 7)])).sent(&[1]);
    d.gets(sacks(0, &[(3, 8)])).sent(&[2]);
    d.gets(sacks(0, &[(3, 9)])).sent(&[10]);
    d.gets(sacks(0, &[(3, 10)])).sent(&[11]);
}

/// RFC 6675, section 4, NextSeg: (1) the lowest lost segment, (2) new data, (3) a hole not yet lost; each
/// counts in the pipe, a retransmitted hole twice.
#[test]
fn next_seg_chooses_in_order() {
    let mut d = Dialogue::established(Config { initial_window: 10, ..plain_with("sack") });
    d.write(11_000).drain();
    d.at(200).gets(sacks(0, &[(2, 5)])).sent(&[0]); // 0 and 1 lost; pipe 10 - 3 - 2 + 1 = 6
    d.gets(sacks(0, &[(2, 6)])).sent(&[]);
    d.gets(sacks(0, &[(2, 7)])).sent(&[1]);
    d.gets(sacks(0, &[(8, 9), (2, 7)])).sent(&[10]);
    d.gets(sacks(0, &[(8, 10), (2, 7)])).sent(&[7]);
    d.gets(sacks(1, &[(8, 10), (2, 7)])).sent(&[10]); // rule (4)
}

/// RFC 6675, section 4, NextSeg (4): one rescue retransmission of the last segment per recovery.
#[test]
fn the_rescue_is_sent_once() {
    let mut d = Dialogue::established(Config { initial_window: 10, ..plain_with("sack") });
    d.write(10_000).drain();
    d.at(200).gets(sacks(0, &[(1, 4)])).sent(&[0]); // pipe 10 - 3 - 1 + 1 = 7, ssthresh 5
    d.gets(sacks(0, &[(5, 7), (1, 4)])).sent(&[]);
    d.gets(sacks(0, &[(5, 8), (1, 4)])).sent(&[4, 9]); // rule (1), then (4): pipe 5
    d.gets(sacks(4, &[(5, 8)])).sent(&[]); // pipe 4, but 8 is not sent
}

/// RFC 6675, section 5: recovery ends when everything sent before it is acknowledged.
#[test]
fn recovery_ends_at_the_recovery_point() {
    let mut d = flying(10);
    d.gets(sacks(0, &[(1, 4)])).sent(&[0]);
    d.gets(acks(5)).drain();
    let halved = d.cwnd();
    d.gets(sacks(5, &[(6, 9)])); // a second loss in the window: retransmitted without another reduction
    assert_eq!((d.cwnd(), halved), (5000, 5000));
    assert_eq!(d.conn.stats().retransmits, 2);
}

/// RFC 6675, section 6: retransmitting the oldest segment restarts the timer.
#[test]
fn resending_the_oldest_restarts_the_timer() {
    let mut d = flying(10);
    d.at(500).gets(sacks(0, &[(1, 4)])).sent(&[0]);
    d.at(1499).silent().at(1500).sends(data(nth(0), 1000));
}

/// RFC 2018, section 8, and RFC 6675, section 5.1: if the first segment is SACKed at a timeout, SACK
/// information is discarded.
#[test]
fn a_timeout_of_sacked_data_is_reneging() {
    let mut d = flying(4);
    d.gets(sacks(0, &[(1, 3)])).at(210).gets(acks(1)).drain();
    d.at(1210).sends(data(nth(1), 1000)).silent();
    d.gets(acks(2)).sends(data(nth(2), 1000));
}

/// RFC 6675, section 5: Update() is called for any ACK, including one that arrives out of order, which gives
/// no RTT sample.
#[test]
fn an_overtaken_ack_still_reports() {
    for stack in [Stack::Rfc, Stack::Linux] {
        let mut d = Dialogue::flying(plain_with("sack").on(stack), 10);
        d.gets(acks(2)).drain();
        let (before, rtt) = (d.conn.stats().rtt.count(), d.conn.rtt().srtt());
        d.at(210).gets(sacks(1, &[(5, 8)])).sends(data(nth(2), 1000));
        assert_eq!((d.conn.stats().rtt.count(), d.conn.rtt().srtt()), (before, rtt));
        assert_eq!(d.conn.scoreboard().sacked(), 3000);
        // its window is ignored
        d.gets(Seg { win: 10, ..sacks(1, &[(5, 9)]) });
        assert!(d.conn.path().peer_window.0 > 10_000);
    }
}

/// RFC 5681, section 2: an ACK out of order is not a duplicate; neither is one without new blocks.
#[test]
fn an_overtaken_ack_is_no_duplicate() {
    for stack in [Stack::Rfc, Stack::Linux] {
        for scheme in ["newreno", "sack"] {
            let mut d = Dialogue::flying(plain_with(scheme).on(stack), 10);
            d.gets(acks(2)).drain();
            d.gets_times(4, acks(1)).gets_times(4, sacks(1, &[(1, 2)])).silent();
            assert_eq!(d.conn.stats().retransmits, 0);
        }
        let mut d = Dialogue::flying(plain_with("newreno").on(stack), 10);
        d.gets(acks(2)).drain();
        d.gets_times(4, sacks(1, &[(5, 8)])).silent();
    }
}
