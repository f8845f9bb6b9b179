//! Forward RTO recovery: RFC 5682, and restoring the window (RFC 4015).

use crate::script::{Dialogue, acks, data, nth, plain_with};

fn flying(n: u32) -> Dialogue {
    let mut config = plain_with("newreno");
    config.scheme.recovery.frto = true;
    Dialogue::flying(config, n)
}

/// RFC 5682, section 2.1, step 2: if the first ACK after the timeout advances, two new segments are sent
/// instead of retransmissions.
#[test]
fn new_data_is_sent_after_the_first_ack() {
    let mut d = flying(6);
    d.at(1100).sent(&[0]).gets(acks(1)).sent(&[6, 7]);
}

/// RFC 5682, section 2.1, step 3b, and RFC 4015, section 3: if the second one advances too, the timeout was
/// spurious: cwnd and ssthresh are restored, and slow start continues.
#[test]
fn a_spurious_timeout_is_undone() {
    let mut d = flying(6);
    d.at(1100).sent(&[0]).gets(acks(1)).gets(acks(2)).drain();
    // and one for this ACK
    assert_eq!((d.cwnd(), d.conn.stats().retransmits, d.conn.stats().undone), (7000, 1, 1));
    d.gets(acks(3)).gets(acks(4)).gets(acks(5)).drain();
    assert!(d.cwnd() >= 9000, "{}", d.cwnd());
    assert_eq!(d.conn.stats().retransmits, 1);
}

/// RFC 5682, section 2.1, step 3a: a duplicate ACK ends the test; lost segments are retransmitted at once.
#[test]
fn a_duplicate_ends_the_test() {
    let mut d = flying(6);
    d.at(1100).sent(&[0]).gets(acks(1)).sent(&[6, 7]);
    d.gets(acks(1)).sends(data(nth(1), 1000)).silent();
    d.gets(acks(2)).drain();
    assert_eq!(d.conn.stats().undone, 0);
}

/// RFC 5682, section 2.1, step 2a: a duplicate as the first ACK ends it too.
#[test]
fn a_duplicate_first_ends_the_test() {
    let mut d = flying(6);
    d.at(1100).sent(&[0]).gets(acks(0)).gets(acks(1)).sent(&[1, 2]);
}

/// RFC 5682, section 2.1, step 1: a repeated timeout of the same segment is not tested.
#[test]
fn a_repeated_timeout_is_not_tested() {
    let mut d = flying(6);
    d.at(1100).sent(&[0]).at(3100).sent(&[0]).gets(acks(1)).sent(&[1, 2]);
}
