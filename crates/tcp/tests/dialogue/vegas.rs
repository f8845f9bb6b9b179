//! Vegas: Brakmo, O'Malley, Peterson, SIGCOMM 1994. The RTT is 100 ms unless a test says otherwise.

use crate::script::{Dialogue, acks, plain_with};
use bentpipe_base::Size;
use bentpipe_tcp::Config;

fn slow_start(n: u32) -> Dialogue {
    Dialogue::flying(plain_with("vegas"), n)
}

fn avoidance(n: u32) -> Dialogue {
    Dialogue::flying(Config { initial_ssthresh: Some(Size(2000)), ..plain_with("vegas") }, n)
}

/// Brakmo et al., section 3.3: slow start doubles the window every other round trip.
#[test]
fn slow_start_doubles_every_other_round() {
    let mut d = slow_start(4);
    let cwnds: Vec<_> = [200, 300, 400, 500].into_iter().map(|ms| d.round(ms)).collect();
    assert!((12_000..=16_000).contains(&cwnds[3]), "twice in four rounds: {cwnds:?}");
}

/// Brakmo et al., section 3.3, with ns-2's eighth: more than gamma segments in the queue end slow start and
/// reduce the window by 1/8.
#[test]
fn gamma_ends_slow_start() {
    let mut d = slow_start(16);
    let v = [d.round(200), d.round(400), d.round(600), d.round(800)];
    // 31 when the longer round was measured, reduced to 7/8; then one less per round
    assert_eq!(v, [17_000, 31_000 / 8 * 7, 26_125, 25_125]);
}

/// Brakmo et al., section 3.2: with fewer than alpha segments in the queue, one more per round.
#[test]
fn below_alpha_the_window_creeps() {
    let mut d = avoidance(10);
    let cwnds: Vec<_> = [200, 300, 400, 500].into_iter().map(|ms| d.round(ms)).collect();
    assert_eq!(cwnds, [11_000, 12_000, 13_000, 14_000]);
}

/// Brakmo et al., section 3.2: between alpha and beta the window stays.
#[test]
fn between_alpha_and_beta_it_stays() {
    let mut d = avoidance(10);
    d.round(200);
    d.round(325); // 125 ms: a fifth of eleven segments is queued
    let cwnd = d.cwnd();
    assert_eq!((d.round(450), d.round(575)), (cwnd, cwnd));
}

/// Brakmo et al., section 3.2: with more than beta segments, one less per round.
#[test]
fn above_beta_the_window_shrinks() {
    let mut d = avoidance(10);
    d.round(200);
    d.round(400);
    let cwnd = d.cwnd();
    assert_eq!((d.round(600), d.round(800)), (cwnd - 1000, cwnd - 2000));
}

/// Brakmo et al., section 3.1: the first duplicate causes a retransmission only if the segment's fine-grained
/// timer has expired.
#[test]
fn the_first_duplicate_resends_an_expired_segment() {
    let mut d = avoidance(8);
    d.gets(acks(0)).sent(&[]);
    d.at(400).gets(acks(0)).sent(&[0]);
}

/// Brakmo et al., section 3.1: the same for the first and second ACK after a retransmission.
#[test]
fn acks_after_a_retransmission_resend() {
    let mut d = avoidance(8);
    d.at(400).gets(acks(0)).sent(&[0]);
    d.at(500).gets(acks(2)).sends_first(2);
    d.gets(acks(3)).sends_first(3);
    d.gets(acks(4));
    assert_eq!(d.conn.stats().retransmits, 3, "but not the third");
}

/// Brakmo et al., section 3.1: a first retransmission costs a quarter of the window, a repeated one half.
#[test]
fn a_repeated_retransmission_takes_half() {
    let mut d = avoidance(8);
    d.at(400).gets(acks(0)).sent(&[0]);
    assert_eq!(d.cwnd(), 6000);
    d.at(500).gets(acks(2)).sends_first(2);
    d.drain();
    let flight = d.conn.scoreboard().flight();
    d.at(1000).gets(acks(2)).sends_first(2);
    assert_eq!(d.cwnd(), flight / 2);
}

/// Brakmo et al., section 3.1: no reduction for a segment sent before the last one.
#[test]
fn a_segment_from_before_the_cut_does_not_cut() {
    let mut d = avoidance(8);
    d.at(400).gets(acks(0)).sent(&[0]);
    d.at(500).gets(acks(1)).gets(acks(2)).gets(acks(3)).drain();
    let resent = d.conn.stats().retransmits;
    d.gets(acks(3));
    assert_eq!((d.cwnd(), d.conn.stats().retransmits), (6000, resent + 1));
}
