//! Slow start, congestion avoidance and the reaction to a timeout: RFC 5681.

use crate::script::{Dialogue, acks, plain, plain_with};
use bentpipe_base::Size;
use bentpipe_tcp::Config;

/// RFC 5681, section 3.1: slow start adds at most one SMSS for each ACK, however much it acknowledges.
#[test]
fn slow_start_adds_one_segment_per_ack() {
    let mut d = Dialogue::flying(plain(), 4);
    d.gets(acks(1)).sent(&[4, 5]);
    assert_eq!(d.cwnd(), 5000);
    d.gets(acks(4)).sent(&[6, 7, 8, 9]);
    assert_eq!(d.cwnd(), 6000);
}

/// RFC 5681, section 3.1: congestion avoidance adds one SMSS for each window acknowledged.
#[test]
fn avoidance_adds_one_segment_per_window() {
    let mut d = Dialogue::flying(Config { initial_ssthresh: Some(Size(4000)), ..plain() }, 4);
    let cwnds: Vec<_> = (1..=9).map(|k| d.gets(acks(k)).cwnd()).collect();
    assert_eq!(cwnds, [4000, 4000, 4000, 5000, 5000, 5000, 5000, 5000, 6000]);
}

/// RFC 5681, section 3.1, equation 4: ssthresh is half the FlightSize.
#[test]
fn ssthresh_is_half_the_flight() {
    let mut d = Dialogue::flying(plain(), 10);
    d.gets_times(3, acks(0)).sent(&[0]);
    assert_eq!(d.cwnd(), 5000);
}

/// RFC 5681, section 3.1, equation 4: but at least two segments.
#[test]
fn ssthresh_is_at_least_two_segments() {
    let mut d = Dialogue::flying(plain(), 3);
    d.gets_times(3, acks(0)).sent(&[0, 3, 4]); // 2 + 3 allow two more
    assert_eq!(d.cwnd(), 2000);
}

/// RFC 5681, section 3.1: after a timeout the window is one segment, and slow start runs up to half the old
/// flight.
#[test]
fn a_timeout_leaves_one_segment() {
    let mut d = Dialogue::flying(plain(), 10);
    d.at(1100).sent(&[0]);
    assert_eq!(d.cwnd(), 1000);
    d.gets(acks(10));
    let cwnds: Vec<_> = (11..=20).map(|k| d.gets(acks(k)).cwnd()).collect();
    assert_eq!(cwnds, [2000, 3000, 4000, 5000, 5000, 5000, 5000, 5000, 6000, 6000]);
}

/// RFC 5681, equation 4, is an upper bound: a timeout within fast recovery halves the present window, not the
/// flight before the loss.
#[test]
fn a_timeout_in_fast_recovery_halves_the_window_in_force() {
    let mut d = Dialogue::flying(plain_with("newreno"), 16);
    d.gets_times(3, acks(0)).sent(&[0]);
    assert_eq!(d.cwnd(), 8000);
    d.at(1200).sent(&[0]);
    d.gets(acks(16));
    let cwnds: Vec<_> = (17..=22).map(|k| d.gets(acks(k)).cwnd()).collect();
    assert_eq!(cwnds, [2000, 3000, 4000, 4000, 4000, 4000]);
}

/// RFC 5681, section 3.1: when the same segment times out again, ssthresh keeps its value.
#[test]
fn ssthresh_is_held_on_a_repeated_timeout() {
    let mut d = Dialogue::flying(plain(), 10);
    d.at(1100).sent(&[0]).at(3100).sent(&[0]);
    d.gets(acks(10));
    let cwnds: Vec<_> = (11..=15).map(|k| d.gets(acks(k)).cwnd()).collect();
    assert_eq!(cwnds, [2000, 3000, 4000, 5000, 5000]);
}

/// RFC 5681, section 3.1: slow start continues while the flight before the timeout is repaired; then
/// avoidance begins.
#[test]
fn the_window_grows_while_a_timeout_is_repaired() {
    let mut d = Dialogue::flying(plain(), 8);
    d.at(1100).sent(&[0]);
    d.gets(acks(1)).sent(&[1, 2]).gets(acks(2)).sent(&[3, 4]).gets(acks(3)).sent(&[5, 6]);
    assert_eq!(d.cwnd(), 4000); // ssthresh
    for k in 4..=7 {
        d.gets(acks(k));
    }
    assert_eq!(d.cwnd(), 5000);
}
