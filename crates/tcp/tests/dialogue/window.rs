//! The peer's window: flow control, silly window syndrome, zero-window probes, window updates.

use crate::script::{ACK, Dialogue, SYN_ACK, Seg, Want, ack, data, fin, plain, plain_with};
use bentpipe_base::{Flags, Size};
use bentpipe_tcp::{Config, ReceiveBuffer, State};

fn wide() -> Config {
    Config { initial_window: 20, ..plain() }
}

/// RFC 9293, section 3.8.6: nothing is sent beyond the peer's right edge.
#[test]
fn nothing_goes_beyond_the_right_edge() {
    let mut d = Dialogue::answered(wide(), Seg { win: 3000, ..SYN_ACK });
    d.write(20_000).sends(data(1, 1000)).sends(data(1001, 1000)).sends(data(2001, 1000)).silent();
    // acknowledged, but the right edge has not moved
    d.gets(Seg { ack: Some(1001), win: 2000, ..ACK }).silent();
    d.gets(Seg { ack: Some(2001), win: 3000, ..ACK })
        .sends(data(3001, 1000))
        .sends(data(4001, 1000))
        .silent();
}

/// RFC 9293, section 3.4: a FIN takes a sequence number in the window: with a closed window it waits, and is
/// sent as the probe.
#[test]
fn a_fin_does_not_go_beyond_the_right_edge() {
    let mut d = Dialogue::answered(wide(), Seg { win: 1000, ..SYN_ACK });
    d.write(1000).close().sends(Want { flags: Some(Flags(0)), ..data(1, 1000) }).silent();
    d.at(200).gets(Seg { ack: Some(1001), win: 0, ..ACK }).silent();
    d.at(1199).silent().at(1200).sends_at(1200, fin(1001)).silent();
    d.gets(Seg { ack: Some(1001), win: 0, ..ACK }).at(3200).sends_at(3200, fin(1001));
    d.at(4000).gets(Seg { ack: Some(1001), win: 500, ..ACK }).sends_at(4000, fin(1001)).silent();
}

/// The same for a FIN after data at the right edge.
#[test]
fn a_fin_goes_when_the_window_opens() {
    let mut d = Dialogue::answered(wide(), Seg { win: 1000, ..SYN_ACK });
    d.write(1000).close().sends(data(1, 1000)).silent();
    d.at(200).gets(Seg { ack: Some(1001), win: 1000, ..ACK }).sends_at(200, fin(1001)).silent();
}

/// RFC 9293, section 3.8.6.2.1: a window smaller than a segment and than half the largest ever is not used,
#[test]
fn a_silly_window_is_not_used() {
    let mut d = Dialogue::answered(wide(), Seg { win: 2400, ..SYN_ACK });
    d.write(20_000).sends(data(1, 1000)).sends(data(1001, 1000)).silent(); // 400 of 2400
}

/// RFC 9293, section 3.8.6.2.1: half the largest window is used, even if it is less than a segment,
#[test]
fn half_the_largest_window_is_used() {
    let mut d = Dialogue::answered(wide(), Seg { win: 800, ..SYN_ACK });
    d.write(20_000).sends(data(1, 800)).silent();
    d.gets(Seg { ack: Some(801), win: 399, ..ACK }).silent();
    d.gets(Seg { ack: Some(801), win: 400, ..ACK }).sends(data(801, 400)).silent();
}

/// RFC 9293, section 3.8.6.2.1: and so is a window that fits all data left.
#[test]
fn a_small_window_is_used_for_all_that_is_left() {
    let mut d = Dialogue::established(wide());
    d.gets(Seg { win: 300, ..ACK }).write(300).sends(data(1, 300)).silent();
}

/// RFC 9293, section 3.8.6.2.1, (4): the override timeout: a window that stays small is used after an RTO.
#[test]
fn a_window_that_stays_silly_is_used_after_an_rto() {
    let mut d = Dialogue::established(wide());
    d.gets(Seg { win: 300, ..ACK }).write(1000).silent();
    d.at(1099).silent().at(1100).sends_at(1100, data(1, 300)).silent();
}

/// RFC 9293, section 3.8.6.1: the first probe of a closed window is sent after an RTO, the next after
/// doubling intervals, and the connection lives as long as the probes are answered.
#[test]
fn a_closed_window_is_probed() {
    let mut d = Dialogue::established(Config { max_timeouts: 2, ..wide() });
    let closed = Seg { win: 0, ..ACK };
    d.gets(closed).write(5000).silent();
    let mut at = 100;
    for interval in [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000] {
        at += interval;
        d.at(at - 1).silent().at(at).sends_at(at, data(1, 1)).gets(closed).silent();
    }
    assert_eq!((d.conn.state(), d.event(), d.conn.stats().timeouts), (State::Established, None, 0));
}

/// RFC 9293, section 3.8.6.1: when the window opens everything is sent at once, starting with the rejected
/// probe, which does not count as lost.
#[test]
fn sending_resumes_when_the_window_opens() {
    let mut d = Dialogue::established(wide());
    d.gets(Seg { win: 0, ..ACK }).write(2500);
    d.at(1100).sends(data(1, 1)).gets(Seg { win: 0, ..ACK });
    let cwnd = d.conn.cwnd();
    d.at(1500)
        .gets(ACK)
        .sends_at(1500, data(1, 1))
        .sends(data(2, 1000))
        .sends(data(1002, 1000))
        .sends(data(2002, 499));
    d.at(1600).gets(Seg { ack: Some(2501), ..ACK }).at(60_000).silent();
    assert_eq!((d.conn.unacknowledged(), d.conn.stats().timeouts), (0, 0));
    assert!(d.conn.cwnd() >= cwnd);
}

/// RFC 9293, section 3.8.6.1: if the peer accepts a probe, the next one carries the next byte.
#[test]
fn a_probe_may_be_taken() {
    let mut d = Dialogue::established(wide());
    d.gets(Seg { win: 0, ..ACK }).write(2500);
    d.at(1100).sends(data(1, 1)).gets(Seg { ack: Some(2), win: 0, ..ACK }).silent();
    d.at(3100).sends_at(3100, data(2, 1)).silent();
    d.gets(Seg { ack: Some(3), ..ACK })
        .sends_at(3100, data(3, 1000))
        .sends(data(1003, 1000))
        .sends(data(2003, 498));
    d.silent();
}

/// RFC 2018, section 8: a probe that is SACKed instead of acknowledged is sent again, also when the window
/// opens.
#[test]
fn a_probe_is_only_acknowledged_cumulatively() {
    let sacked = Seg { sack: [(1, 2), (0, 0), (0, 0), (0, 0)], ..ACK };
    let mut d = Dialogue::established(plain_with("sack"));
    d.gets(Seg { win: 0, ..ACK }).write(1);
    d.at(1100).sends(data(1, 1)).gets(Seg { win: 0, ..sacked });
    d.at(3100).sends_at(3100, data(1, 1)).gets(sacked).silent();
    d.at(4100).sends_at(4100, data(1, 1)).silent();
}

/// RFC 9293, section 3.8.6.1: a connection whose peer shrank its window is not aborted while the peer
/// answers.
#[test]
fn a_shrunk_window_is_waited_for() {
    let mut d = Dialogue::established(Config { max_timeouts: 3, ..wide() });
    d.write(1000).sends(data(1, 1000)).at(200).gets(Seg { win: 0, ..ACK });
    for _ in 0..10 {
        let at = d.conn.deadline().0 / 1_000_000;
        d.at(at).sends(data(1, 1000)).gets(Seg { win: 0, ..ACK }).silent();
    }
    assert_eq!((d.conn.state(), d.event()), (State::Established, None));
}

/// RFC 9293, section 3.8.6.1: for a window that closes again probing restarts with one RTO.
#[test]
fn probing_begins_anew() {
    let mut d = Dialogue::established(wide());
    d.gets(Seg { win: 0, ..ACK }).write(3000);
    d.at(3100).sends_at(1100, data(1, 1)).sends_at(3100, data(1, 1)).gets(Seg {
        ack: Some(2),
        win: 1000,
        ..ACK
    });
    d.sends(data(2, 1000)).gets(Seg { ack: Some(1002), win: 0, ..ACK }).silent();
    d.at(4099).silent().at(4100).sends_at(4100, data(1002, 1)).silent();
}

/// RFC 9293, section 3.10.7.4, fifth check: SND.WL1: a segment older than the last update does not move the
/// right edge.
#[test]
fn an_old_segment_does_not_update_the_window() {
    let mut d = Dialogue::established(wide());
    d.gets(Seg { seq: 101, len: 100, win: 4000, ..ACK }).sends(ack(1));
    d.gets(Seg { seq: 1, len: 100, win: 1000, ..ACK }).sends(ack(201));
    d.write(20_000);
    for i in 0..4 {
        d.sends(data(1 + i * 1000, 1000));
    }
    d.silent();
}

/// RFC 9293, section 3.10.7.4, fifth check: SND.WL2: of two with the same sequence number the later
/// acknowledgment counts.
#[test]
fn an_old_ack_does_not_update_the_window() {
    for seq in [1, 101] {
        let mut d = Dialogue::established(wide());
        d.write(2000).sends(data(1, 1000)).sends(data(1001, 1000));
        d.gets(Seg { ack: Some(2001), win: 3000, ..ACK });
        d.gets(Seg { seq, ack: Some(1001), win: 1000, len: 100, ..ACK }).sends(Want::default());
        d.write(20_000).sends(data(2001, 1000)).sends(data(3001, 1000)).sends(data(4001, 1000)).silent();
    }
}

/// RFC 9293, section 3.8.6: a window update with the same numbers counts in both directions: the peer may
/// shrink the window.
#[test]
fn a_window_update_counts() {
    let mut d = Dialogue::answered(wide(), Seg { win: 2000, ..SYN_ACK });
    d.write(20_000).sends(data(1, 1000)).sends(data(1001, 1000)).silent();
    d.gets(Seg { win: 4000, ..ACK }).sends(data(2001, 1000)).sends(data(3001, 1000)).silent();
    d.gets(Seg { ack: Some(4001), win: 1000, ..ACK }).sends(data(4001, 1000)).silent();
    let mut d = Dialogue::established(wide());
    d.gets(Seg { win: 4000, ..ACK }).gets(Seg { win: 2000, ..ACK }).write(20_000);
    d.sends(data(1, 1000)).sends(data(1001, 1000)).silent();
}

fn buffer(bytes: u64) -> Config {
    Config { receive_buffer: ReceiveBuffer::Fixed(Size(bytes)), ..plain() }
}

/// RFC 9293, section 3.10.7.4: a probe of our closed window causes an ACK; its byte is dropped, its
/// acknowledgment counts.
#[test]
fn a_probe_of_our_closed_window_is_answered() {
    let mut d = Dialogue::established(buffer(1000));
    d.gets(Seg { len: 1000, ..ACK }).sends(Want { win: Some(0), ..ack(1001) });
    d.write(500).sends(data(1, 500));
    d.at(500).gets(Seg { seq: 1001, len: 1, ack: Some(501), ..ACK });
    d.sends_at(500, Want { seq: Some(501), win: Some(0), ..ack(1001) }).silent();
    assert_eq!((d.conn.readable(), d.conn.unacknowledged()), (1000, 0));
}
