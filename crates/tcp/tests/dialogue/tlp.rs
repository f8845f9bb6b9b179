//! The tail loss probe: RFC 8985, section 7. SRTT is 100 ms.

use crate::rack::rack;
use crate::script::{Dialogue, SYN_ACK, Seg, ack, acks, sacks, syn};
use bentpipe_tcp::Config;

fn wrote(segments: u64) -> Dialogue {
    let mut d = Dialogue::established(Config { initial_window: 4, ..rack() });
    d.write(segments * 1000).sent(&(0..segments.min(4)).collect::<Vec<_>>());
    d
}

/// RFC 8985, section 7.2 and 7.3: after two SRTT a new segment is sent, although the window is full.
#[test]
fn the_probe_is_new_data_if_there_is_any() {
    let mut d = wrote(20);
    d.at(299).sent(&[]).at(300).sent(&[4]);
}

/// RFC 8985, section 7.3: without new data the probe is the last segment.
#[test]
fn the_probe_is_the_last_segment_otherwise() {
    let mut d = wrote(4);
    d.at(299).sent(&[]).at(300).sent(&[3]);
    d.at(900).sent(&[]); // only one probe
}

/// RFC 8985, section 7.2: one segment in flight may be waiting for a delayed ACK: 200 ms more.
#[test]
fn one_segment_waits_for_the_delayed_ack() {
    let mut d = wrote(1);
    d.at(499).sent(&[]).at(500).sent(&[0]);
}

/// RFC 8985, section 7.3: the probe restarts the retransmission timer.
#[test]
fn the_probe_puts_the_timeout_off() {
    let mut d = wrote(4);
    d.at(300).sent(&[3]).at(1299).sent(&[]).at(1300).sent(&[0]);
}

/// RFC 8985, section 7.2: if the timeout would come first, the probe replaces it.
#[test]
fn the_probe_comes_no_later_than_the_timeout() {
    let mut d = Dialogue::connect(rack());
    d.sends(syn()).at(600).gets(Seg { sack_ok: true, ..SYN_ACK }).sends(ack(1));
    d.write(2000).sent(&[0, 1]);
    let rto = d.conn.next_timer().map(|(at, _)| at.0 / 1_000_000);
    assert_eq!(rto, Some(1800)); // two SRTT; the timeout is at 2400
    d.at(1200).gets(acks(1)).at(1201).gets(acks(2));
    for k in 0..40 {
        d.at(1300 + 600 * k).write(1000).drain();
        d.at(1900 + 600 * k).gets(acks(3 + k));
    }
    d.at(30_000).write(2000).sent(&[42, 43]);
    d.at(30_999).sent(&[]).at(31_000).sent(&[43]); // RTO 1 s, two SRTT 1.2 s
    d.at(31_999).sent(&[]).at(32_000).sent(&[42]);
}

/// The tail of four segments was lost and repaired by a probe; all is acknowledged by 700 ms.
fn repaired() -> Dialogue {
    let mut d = wrote(4);
    d.at(200).gets(acks(3)).at(600).sent(&[3]).at(700).gets(acks(4));
    d
}

/// RFC 8985, section 7.4.2: a probe that repaired the tail means a loss; the scheme reacts to it once, and
/// only when later data shows that the original was not just late.
#[test]
fn a_repaired_tail_is_answered() {
    let mut d = repaired();
    let before = d.cwnd();
    d.write(6000).sent(&[4, 5, 6, 7, 8, 9]).at(800).gets(acks(5));
    assert_eq!((before, d.cwnd()), (6000, 3000)); // half of the six in flight before that ACK
    d.gets(acks(6)).gets(acks(7)).gets(acks(10));
    assert!(d.cwnd() >= 3000);
    assert_eq!(d.conn.stats().timeouts, 0);
}

/// RFC 8985, section 7.4.2: a DSACK or a duplicate ACK shows that the original had arrived: no reaction. It
/// may arrive when nothing is outstanding any more.
#[test]
fn a_duplicate_clears_the_probe() {
    for answer in [sacks(4, &[(3, 4)]), acks(4)] {
        let mut d = repaired();
        d.at(710).gets(answer).write(4000).sent(&[4, 5, 6, 7]).at(800).gets(acks(5));
        assert!(d.cwnd() >= 6000, "{}", d.cwnd());
    }
}

/// RFC 8985, section 7.4.2: the DSACK may come with the acknowledgment itself.
#[test]
fn a_dsack_clears_the_probe() {
    let mut d = wrote(4);
    d.at(200).gets(acks(3)).at(600).sent(&[3]).at(700).gets(sacks(4, &[(3, 4)]));
    d.write(4000).sent(&[4, 5, 6, 7]).at(800).gets(acks(5));
    assert!(d.cwnd() >= 5000, "{}", d.cwnd());
}
