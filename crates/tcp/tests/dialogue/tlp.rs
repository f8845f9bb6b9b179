//! The tail loss probe: RFC 8985, section 7. SRTT is 100 ms.

use crate::rack::rack;
use crate::script::{Dialogue, acks, sacks};
use bentpipe_tcp::Config;

fn wrote(segments: u64) -> Dialogue {
    let mut d = Dialogue::established(Config { initial_window: 4, ..rack() });
    d.write(segments * 1000).sent(&(0..segments.min(4)).collect::<Vec<_>>());
    d
}

/// RFC 8985, section 7.2 and 7.3: after two SRTT new data goes, although the window is full.
#[test]
fn the_probe_is_new_data_if_there_is_any() {
    let mut d = wrote(20);
    d.at(299).sent(&[]).at(300).sent(&[4]);
}

/// RFC 8985, section 7.3: else the last segment.
#[test]
fn the_probe_is_the_last_segment_otherwise() {
    let mut d = wrote(4);
    d.at(299).sent(&[]).at(300).sent(&[3]);
    d.at(900).sent(&[]); // one probe
}

/// RFC 8985, section 7.2: one segment in flight may be waiting for a delayed ACK: 200 ms more.
#[test]
fn one_segment_waits_for_the_delayed_ack() {
    let mut d = wrote(1);
    d.at(499).sent(&[]).at(500).sent(&[0]);
}

/// RFC 8985, section 7.4.2: a probe that repaired the tail is a loss; the scheme answers it once.
#[test]
fn a_repaired_tail_is_answered() {
    let mut d = wrote(4);
    d.at(200).gets(acks(3));
    let before = d.cwnd();
    d.at(600).sent(&[3]).at(700).gets(acks(4));
    assert_eq!((before, d.cwnd()), (5000, 2000));
    d.write(2000).sent(&[4, 5]).at(800).gets(acks(5)).gets(acks(6));
    assert!(d.cwnd() >= 2000);
    assert_eq!(d.conn.stats().timeouts, 0);
}

/// RFC 8985, section 7.4.2: a DSACK says that the original had arrived: no answer.
#[test]
fn a_dsack_clears_the_probe() {
    let mut d = wrote(4);
    d.at(200).gets(acks(3)).at(600).sent(&[3]).at(700).gets(sacks(4, &[(3, 4)]));
    assert!(d.cwnd() >= 5000, "{}", d.cwnd());
}
