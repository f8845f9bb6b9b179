//! Fast retransmit and fast recovery: RFC 5681, section 3.2.

use crate::script::{ACK, Dialogue, Seg, ack, acks, data, nth, plain};
use bentpipe_tcp::Config;

/// RFC 5681, section 3.2: the third duplicate ACK, not the second.
#[test]
fn fast_retransmit_is_on_the_third_duplicate() {
    let mut d = Dialogue::flying(plain(), 10);
    d.gets(acks(0)).gets(acks(0)).sent(&[]);
    d.gets(acks(0)).sent(&[0]);
    d.gets(acks(0)).sent(&[]);
    assert_eq!(d.conn.stats().retransmits, 1);
}

/// RFC 5681, section 3.2: the window is halved once, on the third duplicate, however many follow.
#[test]
fn further_duplicates_do_not_halve_again() {
    let mut d = Dialogue::flying(plain(), 10);
    d.gets_times(9, acks(0));
    assert_eq!(d.cwnd(), 5000);
}

/// RFC 5681, section 2: an ACK that changes the window is not a duplicate.
#[test]
fn a_window_change_is_no_duplicate() {
    let mut d = Dialogue::flying(plain(), 10);
    d.gets_times(2, acks(0)).gets(Seg { win: 60_000, ..ACK }).sent(&[]);
    d.gets(Seg { win: 60_000, ..ACK }).sent(&[0]);
}

/// RFC 5681, section 2: a segment with data is not a duplicate ACK.
#[test]
fn a_segment_with_data_is_no_duplicate() {
    let mut d = Dialogue::flying(plain(), 10);
    d.gets_times(2, acks(0)).gets(Seg { len: 100, ..ACK }).sends(ack(101)).silent();
    d.gets(Seg { seq: 101, ..ACK }).sent(&[0]);
}

/// RFC 5681, section 2: with nothing outstanding there are no duplicates.
#[test]
fn nothing_outstanding_no_duplicate() {
    let mut d = Dialogue::established(plain());
    d.write(2000).sent(&[0, 1]).at(200).gets(acks(2)).gets_times(3, acks(2)).silent();
    d.write(2000).sent(&[2, 3]);
    d.gets_times(2, acks(2)).silent().gets(acks(2)).sent(&[2]);
}

/// RFC 5681, section 3.2, step 4: each duplicate after the third grows the window by one segment.
#[test]
fn each_further_duplicate_inflates() {
    let mut d = Dialogue::flying(plain(), 10);
    d.gets_times(3, acks(0)).sent(&[0]);
    // ssthresh 5 + 3: the flight of 10 fits after three more duplicates
    d.gets_times(2, acks(0)).sent(&[]);
    d.gets(acks(0)).sent(&[10]).gets(acks(0)).sent(&[11]);
}

/// RFC 5681, section 3.2, step 6: the ACK of new data deflates the window to ssthresh.
#[test]
fn a_new_ack_deflates() {
    let mut d = Dialogue::flying(plain(), 10);
    d.gets_times(8, acks(0)).sent(&[0, 10, 11, 12]);
    d.gets(acks(10)).sent(&[13, 14]); // 3 are in flight, 5 are allowed
    assert_eq!(d.cwnd(), 5000);
}

/// RFC 5681, section 3.2, step 6: Reno's recovery ends with the first new ACK; another hole is not repaired.
#[test]
fn reno_leaves_on_the_first_new_ack() {
    let mut d = Dialogue::flying(plain(), 10);
    d.gets_times(3, acks(0)).sent(&[0]);
    d.gets(acks(4)).sent(&[]);
    // the second hole is in the same window, so its duplicates cause no retransmission (RFC 6582, section
    // 3.2, step 1)
    d.gets_times(4, acks(4)).sent(&[]);
    d.at(1200).sends(data(nth(4), 1000));
}

/// RFC 6582, section 3.2, steps 1 and 4: after a timeout, duplicates for data sent before it cause no
/// retransmission.
#[test]
fn no_fast_retransmit_below_recover() {
    let mut d = Dialogue::flying(plain(), 10);
    d.at(1100).sent(&[0]).gets(acks(1)).sent(&[1, 2]);
    d.gets_times(4, acks(1)).sent(&[]);
    assert_eq!(d.conn.stats().retransmits, 3);
    assert_eq!(d.cwnd(), 2000);
}

/// RFC 3042, section 2: each of the first two duplicates allows a new segment.
#[test]
fn limited_transmit_sends_two() {
    let mut d = Dialogue::flying(Config { limited_transmit: true, ..plain() }, 10);
    d.gets(acks(0)).sent(&[10]).gets(acks(0)).sent(&[11]).gets(acks(0)).sent(&[0]);
}

/// Without limited transmit (RFC 3042) they allow none.
#[test]
fn without_limited_transmit_none() {
    let mut d = Dialogue::flying(Config { limited_transmit: false, ..plain() }, 10);
    d.gets_times(2, acks(0)).sent(&[]);
}

/// RFC 5681, section 3.2, step 2: FlightSize excludes segments sent by limited transmit.
#[test]
fn limited_transmit_does_not_raise_ssthresh() {
    let mut d = Dialogue::flying(Config { limited_transmit: true, ..plain() }, 10);
    d.gets_times(3, acks(0)).sent(&[10, 11, 0]);
    assert_eq!(d.cwnd(), 5000);
}
