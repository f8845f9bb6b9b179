//! The receiver: reassembly, when to acknowledge, SACK blocks, the advertised window.

use crate::script::{ACK, Dialogue, FIN, PEERS, Seg, Want, ack, plain, position};
use bentpipe_base::{Duration, Size};
use bentpipe_tcp::{Config, DelayedAck, ReceiveBuffer};

fn delayed(count: u32) -> Config {
    Config { delayed_ack: Some(DelayedAck { count, timeout: Duration::from_millis(40) }), ..plain() }
}

fn sacking() -> Config {
    let mut config = plain();
    config.options.sack = true;
    config
}

fn buffer(bytes: u64) -> Config {
    Config { receive_buffer: ReceiveBuffer::Fixed(Size(bytes)), ..plain() }
}

/// Segment number `n` of 1000 bytes.
fn nth(n: u64) -> Seg {
    Seg { seq: 1 + 1000 * n, len: 1000, ..ACK }
}

/// RFC 9293, section 3.10.7.4, seventh check: data beyond a gap is kept until the gap is filled.
#[test]
fn data_is_reassembled() {
    let mut d = Dialogue::established(plain());
    d.gets(nth(2)).sends(ack(1)).gets(nth(1)).sends(ack(1));
    assert_eq!(d.conn.readable(), 0);
    d.gets(nth(0)).sends(ack(3001)).silent();
    assert_eq!(d.conn.readable(), 3000);
    // overlapping pieces count once
    d.gets(Seg { seq: 2501, len: 1000, ..ACK }).sends(ack(3501));
    assert_eq!((d.conn.readable(), d.conn.received()), (3500, 3500));
}

/// A byte beyond a gap has arrived, once, and the position of a FIN is no byte.
#[test]
fn what_arrived_is_counted_before_it_is_in_order() {
    let mut d = Dialogue::established(plain());
    let counts = |d: &Dialogue| (d.conn.received(), d.conn.receiver().arrived());
    d.gets(nth(2)).gets(nth(2)).gets(Seg { seq: 2501, len: 1000, ..ACK });
    assert_eq!(counts(&d), (0, 1500));
    d.gets(Seg { seq: 3501, len: 500, ..FIN });
    assert_eq!(counts(&d), (0, 2000));
    d.gets(nth(0));
    assert_eq!(counts(&d), (1000, 3000));
    d.gets(nth(1));
    assert_eq!(counts(&d), (4000, 4000));
}

/// RFC 9293, section 3.8.6.3: without delayed ACKs each segment is acknowledged at once.
#[test]
fn without_delay_each_segment_is_acknowledged() {
    let mut d = Dialogue::established(plain());
    for n in 0..3 {
        d.gets(nth(n)).sends_at(100, ack(1001 + 1000 * n)).silent();
    }
}

/// RFC 9293, section 3.8.6.3, and RFC 5681, section 4.2: with delayed ACKs every n-th full-sized segment is
/// acknowledged.
#[test]
fn a_delayed_ack_counts_full_segments() {
    for count in [1, 2, 4] {
        let mut d = Dialogue::established(delayed(count));
        for n in 0..u64::from(count) {
            d.silent().gets(nth(n));
        }
        d.sends_at(100, ack(1 + 1000 * u64::from(count))).silent();
    }
}

/// RFC 5681, section 4.2: full-sized segments are counted in bytes, whatever the size of the segments.
#[test]
fn small_segments_count_by_their_bytes() {
    let mut d = Dialogue::established(delayed(2));
    d.gets(nth(0)).silent().gets(Seg { seq: 1001, len: 400, ..ACK }).silent();
    d.gets(Seg { seq: 1401, len: 600, ..ACK }).sends_at(100, ack(2001)).silent();
}

/// RFC 9293, section 3.8.6.3: a delayed ACK is sent at the latest after the timeout.
#[test]
fn a_delayed_ack_leaves_in_time() {
    let mut d = Dialogue::established(delayed(2));
    d.gets(nth(0)).at(120).gets(Seg { seq: 1001, len: 1, ..ACK });
    d.at(139).silent().at(140).sends_at(140, ack(1002)).at(1000).silent();
}

/// RFC 9293, section 3.8.6.3: our data carries the delayed ACK.
#[test]
fn data_carries_the_delayed_ack() {
    let mut d = Dialogue::established(delayed(2));
    d.gets(nth(0))
        .at(110)
        .write(100)
        .sends_at(110, Want { len: Some(100), ack: Some(1001), ..Want::default() });
    d.at(1000).silent();
}

/// RFC 5681, section 4.2: out-of-order data, and data that fills all or part of a gap, is acknowledged at
/// once.
#[test]
fn gaps_are_acknowledged_at_once() {
    let mut d = Dialogue::established(delayed(2));
    d.gets(nth(3)).sends_at(100, ack(1)).gets(nth(2)).sends_at(100, ack(1)).silent();
    d.gets(Seg { len: 500, ..ACK }).sends_at(100, ack(501)).silent();
    d.gets(Seg { seq: 501, len: 1500, ..ACK }).sends_at(100, ack(4001)).silent();
    d.gets(nth(4)).silent(); // in order again: delayed again
}

/// RFC 9293, section 3.10.7.4, eighth check: a FIN is acknowledged at once.
#[test]
fn a_fin_is_acknowledged_at_once() {
    let mut d = Dialogue::established(delayed(2));
    d.gets(Seg { len: 100, ..FIN }).sends_at(100, ack(102)).silent();
}

/// RFC 2018, section 4: the first block contains the segment that caused the ACK, then follow the most recent
/// ones; at most four.
#[test]
fn sack_blocks_name_the_most_recent_first() {
    let mut d = Dialogue::established(sacking());
    d.gets(nth(1)).sends(Want { sack: Some(&[(1001, 2001)]), ..ack(1) });
    d.gets(nth(3)).sends(Want { sack: Some(&[(3001, 4001), (1001, 2001)]), ..ack(1) });
    d.gets(nth(5)).sends(Want { sack: Some(&[(5001, 6001), (3001, 4001), (1001, 2001)]), ..ack(1) });
    d.gets(nth(7))
        .sends(Want { sack: Some(&[(7001, 8001), (5001, 6001), (3001, 4001), (1001, 2001)]), ..ack(1) });
    d.gets(nth(9))
        .sends(Want { sack: Some(&[(9001, 10_001), (7001, 8001), (5001, 6001), (3001, 4001)]), ..ack(1) });
    // a block that grows becomes the first
    d.gets(nth(4)).sends(Want { sack: Some(&[(3001, 6001), (9001, 10_001), (7001, 8001)]), ..ack(1) });
    d.gets(nth(0)).sends(Want { sack: Some(&[(3001, 6001), (9001, 10_001), (7001, 8001)]), ..ack(2001) });
}

/// RFC 2018, section 3: with timestamps at most three blocks.
#[test]
fn with_timestamps_three_sack_blocks_fit() {
    let mut config = sacking();
    config.options.timestamps = true;
    let mut d = Dialogue::established(config);
    for n in [1, 3, 5] {
        d.gets(Seg { ts: Some((5, 0)), ..nth(n) }).sends(ack(1));
    }
    d.gets(Seg { ts: Some((5, 0)), ..nth(7) });
    d.sends(Want { sack: Some(&[(7001, 8001), (5001, 6001), (3001, 4001)]), ..ack(1) });
}

/// RFC 2883, section 4.1: a duplicate below the cumulative ACK is reported once.
#[test]
fn a_duplicate_below_the_ack_is_reported() {
    let mut d = Dialogue::established(sacking());
    d.gets(nth(0)).sends(Want { sack: Some(&[]), ..ack(1001) });
    d.gets(nth(0)).sends(Want { sack: Some(&[(1, 1001)]), ..ack(1001) }).silent();
    d.gets(Seg { seq: 1000, ..ACK }).sends(Want { sack: Some(&[]), ..ack(1001) }).silent();
    d.gets(nth(1)).sends(Want { sack: Some(&[]), ..ack(2001) });
    // partly new (section 4.2)
    d.gets(Seg { seq: 1501, len: 1000, ..ACK }).sends(Want { sack: Some(&[(1501, 2001)]), ..ack(2501) });
}

/// RFC 2883, section 4.1.3: a duplicate beyond the gap is reported before the block that contains it.
#[test]
fn a_duplicate_beyond_the_gap_is_reported() {
    let mut d = Dialogue::established(sacking());
    d.gets(nth(1)).sends(ack(1)).gets(nth(2)).sends(ack(1));
    d.gets(nth(2)).sends(Want { sack: Some(&[(2001, 3001), (1001, 3001)]), ..ack(1) }).silent();
    d.gets(nth(4)).sends(Want { sack: Some(&[(4001, 5001), (1001, 3001)]), ..ack(1) });
}

/// RFC 2883, section 4: only the duplicate part of a partly new segment is reported.
#[test]
fn only_the_duplicate_range_is_reported() {
    let mut d = Dialogue::established(sacking());
    d.gets(nth(1)).sends(ack(1));
    let partly = Seg { seq: 1501, len: 1000, ..ACK };
    d.gets(partly).sends(Want { sack: Some(&[(1501, 2001), (1001, 2501)]), ..ack(1) });
    // fills the gap and repeats data behind it
    let filling = Seg { seq: 1, len: 1500, ..ACK };
    d.gets(filling).sends(Want { sack: Some(&[(1001, 1501)]), ..ack(2501) });
}

/// RFC 9293, section 3.10.7.4, first check: data beyond the window is not accepted.
#[test]
fn data_beyond_the_window_is_not_taken() {
    let mut d = Dialogue::established(buffer(2000));
    d.gets(Seg { seq: 1001, len: 2000, ..ACK }).sends(ack(1));
    d.gets(nth(0)).sends(Want { win: Some(0), ..ack(2001) });
    assert_eq!(d.conn.readable(), 2000);
    let mut d = Dialogue::established(buffer(2000));
    d.gets(Seg { len: 2500, ..FIN }).sends(Want { win: Some(0), ..ack(2001) });
    assert!(!d.conn.peer_closed());
}

/// RFC 9293, section 3.8.6: a fixed buffer advertises its free space; the right edge does not move while
/// nothing is read.
#[test]
fn the_window_closes_when_nothing_is_read() {
    let mut d = Dialogue::established(buffer(3000));
    for n in 0..3 {
        d.gets(nth(n)).sends(Want { win: Some(2000 - 1000 * n as u16), ..ack(1001 + 1000 * n) });
    }
    d.gets(nth(3)).sends(Want { win: Some(0), ..ack(3001) });
    assert_eq!(d.conn.readable(), 3000);
}

/// RFC 9293, section 3.8.6: a fixed buffer whose application reads at once always advertises the same window.
#[test]
fn a_fixed_window_stays() {
    let mut d = Dialogue::established(buffer(8000));
    for n in 0..20 {
        d.gets(nth(n)).take();
        d.read(1000);
        d.gets(Seg { seq: 1001 + 1000 * n, ack: Some(1), ..ACK });
    }
    d.gets(Seg { seq: 20_001, len: 1, ..ACK });
    let mut last = d.take().1;
    while last.tcp.ack != PEERS.at(20_002) {
        last = d.take().1;
    }
    assert_eq!(u64::from(last.tcp.window), 7999);
}

/// RFC 9293, section 3.8.6.2.2: reading less than a segment from a closed window causes no window update;
/// reading a segment does.
#[test]
fn a_window_update_is_worth_a_segment() {
    let mut d = Dialogue::established(buffer(3000));
    for n in 0..3 {
        d.gets(nth(n)).take();
    }
    d.at(500).read(999).silent();
    d.at(600).read(1).sends_at(600, Want { win: Some(1000), ..ack(3001) }).silent();
}

/// RFC 9293, section 3.8.6.2.2: an ACK sent for another reason does not advertise small increments either.
#[test]
fn crumbs_are_not_advertised() {
    let mut d = Dialogue::established(buffer(3000));
    for n in 0..3 {
        d.gets(nth(n)).take();
    }
    d.read(600).silent().gets(Seg { seq: 3001, len: 1, ..ACK }).sends(Want { win: Some(0), ..ack(3001) });
}

/// RFC 9293, section 3.8.6.2.2: with a buffer of less than two segments the window opens in steps of half of
/// it.
#[test]
fn a_small_buffer_opens_by_halves() {
    let mut d = Dialogue::established(buffer(1200));
    d.gets(nth(0)).take();
    d.gets(Seg { seq: 1001, len: 200, ..ACK }).sends(Want { win: Some(0), ..ack(1201) });
    d.read(599).silent().read(1).sends(Want { win: Some(600), ..ack(1201) });
}

/// A reader that pauses: the window closes, probes are answered, nothing is lost, and the window update
/// restarts the peer.
#[test]
fn a_pausing_reader_stops_the_peer_and_restarts_it() {
    let mut d = Dialogue::established(buffer(2000));
    d.gets(nth(0))
        .sends(Want { win: Some(1000), ..ack(1001) })
        .gets(nth(1))
        .sends(Want { win: Some(0), ..ack(2001) });
    for at in [1000, 3000, 7000] {
        let probe = Seg { seq: 2001, len: 1, ..ACK };
        d.at(at).gets(probe).sends_at(at, Want { win: Some(0), ..ack(2001) }).silent();
    }
    d.at(9000).read(2000).sends_at(9000, Want { win: Some(2000), ..ack(2001) }).silent();
    d.gets(nth(2)).sends(Want { win: Some(1000), ..ack(3001) });
}

/// The right edge advertised by the last ACK.
fn told(d: &mut Dialogue) -> Option<u64> {
    let mut edge = None;
    while let Some(p) = d.try_take() {
        let window = u64::from(p.tcp.window) << d.conn.agreed().receive_scale;
        edge = Some(position(PEERS, p.tcp.ack) + window);
    }
    edge
}

/// RFC 9293, section 3.8.6: the right edge never moves left, however unevenly the application reads.
#[test]
fn the_right_edge_never_moves_left() {
    let mut scaled = buffer(524_140);
    scaled.options.window_scale = true;
    for config in [buffer(10_000), buffer(3500), auto(), scaled] {
        let mut d = Dialogue::established(config);
        // rounding of the scaled window field (RFC 7323, section 2.4)
        let slack = (1 << d.conn.agreed().receive_scale) - 1;
        let (mut known, mut kept) = (0, 0);
        for n in 0..60 {
            d.at(100 + 10 * n).gets(Seg { seq: 1 + 997 * n, len: 997, ..ACK });
            for part in [0, 497, 1701, 103, 3000] {
                if let Some(edge) = told(&mut d) {
                    assert!(edge + slack >= known, "segment {n}: {edge} after {known}");
                    known = known.max(edge);
                }
                let edge = d.conn.receiver().window.right_edge();
                assert!(edge >= kept && known <= edge);
                kept = edge;
                if n % 3 != 0 {
                    d.read(part.min(d.conn.readable()));
                }
            }
        }
    }
}

fn auto() -> Config {
    Config { receive_buffer: ReceiveBuffer::Auto { initial: Size(4000), max: Size(20_000) }, ..plain() }
}

/// Dynamic right-sizing (Fisk and Feng 2001): the window grows to twice what is read per round trip, up to
/// the maximum.
#[test]
fn the_window_grows_with_reading() {
    let mut d = Dialogue::established(auto());
    let mut n = 0;
    let mut windows = Vec::new();
    for round in 1..=5 {
        d.at(100 + 100 * round);
        let segments = d.conn.receiver().window.buffer() / 1000;
        for _ in 0..segments {
            d.gets(nth(n));
            n += 1;
        }
        d.read(1000 * segments);
        told(&mut d);
        windows.push(d.conn.receiver().window.buffer());
    }
    assert_eq!(windows, [8000, 16_000, 20_000, 20_000, 20_000]);
    let right = d.conn.receiver().window.right_edge() - d.conn.receiver().next();
    assert!(right > 16_000, "{right} advertised");
}

/// Dynamic right-sizing: the window does not grow if data is not read.
#[test]
fn the_window_does_not_grow_unread() {
    let mut d = Dialogue::established(auto());
    for n in 0..4 {
        d.at(200 + 100 * n)
            .gets(nth(n))
            .sends(Want { win: Some(3000 - 1000 * n as u16), ..ack(1001 + 1000 * n) });
    }
    assert_eq!(d.conn.receiver().window.buffer(), 4000);
}
