//! NewReno: RFC 6582.

use crate::script::{Dialogue, acks, data, nth, plain_with};

/// RFC 6582, section 3.2, step 3: a partial ACK retransmits the next hole at once; the window is reduced by
/// the acknowledged bytes less one segment.
#[test]
fn a_partial_ack_resends_the_next_hole_and_deflates() {
    let mut d = Dialogue::flying(plain_with("newreno"), 10);
    d.gets_times(8, acks(0)).sent(&[0, 10, 11, 12]); // window 5 + 8 = 13
    d.gets(acks(3)).sent(&[3, 13]); // window 13 - 3 + 1 = 11, outstanding 10
}

/// RFC 6582, section 3.2, step 3: recovery ends when everything sent before it is acknowledged.
#[test]
fn a_full_ack_ends_recovery() {
    let mut d = Dialogue::flying(plain_with("newreno"), 10);
    d.gets_times(3, acks(0)).sent(&[0]).gets(acks(5)).sent(&[5]); // 8 - 5 + 1 = 4 allowed, 5 outstanding
    d.gets(acks(9)).sent(&[9]).gets(acks(10)).sent(&[10, 11, 12, 13, 14]);
    assert_eq!(d.cwnd(), 5000);
}

/// RFC 6582, section 3.2, step 2: duplicates of the ACK that ended recovery do not begin another, since it
/// does not cover more than `recover`.
#[test]
fn duplicates_of_the_full_ack_do_not_retransmit() {
    let mut d = Dialogue::flying(plain_with("newreno"), 10);
    d.gets_times(3, acks(0)).sent(&[0]).gets(acks(10)).sent(&[10, 11, 12, 13, 14]);
    d.gets_times(4, acks(10)).sent(&[]);
    d.gets(acks(11)).sent(&[15]).gets_times(3, acks(11)).sent(&[11]);
}

/// RFC 6582, section 3.2, step 3: only the first partial ACK restarts the timer.
#[test]
fn only_the_first_partial_ack_restarts_the_timer() {
    let mut d = Dialogue::flying(plain_with("newreno"), 10);
    d.gets_times(3, acks(0)).sent(&[0]);
    d.at(300).gets(acks(3)).at(400).gets(acks(5)).drain();
    d.at(1299).silent().at(1300).sends(data(nth(5), 1000));
}

/// RFC 6582, section 3.2: the first one does.
#[test]
fn the_first_partial_ack_restarts_the_timer() {
    let mut d = Dialogue::flying(plain_with("newreno"), 10);
    d.gets_times(3, acks(0)).sent(&[0]).at(300).gets(acks(3)).drain();
    d.at(1299).silent();
}
