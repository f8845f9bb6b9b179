//! Resets, and segments that could be forged: RFC 5961.

use crate::script::{
    ACK, Dialogue, FIN, OURS, RST, SYN, SYN_ACK, Seg, Want, ack, data, fin, plain, position, syn,
};
use bentpipe_base::Flags;
use bentpipe_tcp::{Event, State};

/// RFC 5961, section 3.2: a RST exactly at the expected sequence number resets the connection.
#[test]
fn the_expected_rst_resets() {
    let mut d = Dialogue::established(plain());
    d.gets(Seg { len: 100, ..ACK }).sends(ack(101)).write(1000).sends(data(1, 1000));
    d.gets(Seg { seq: 101, ..RST }).silent();
    assert_eq!((d.conn.state(), d.event()), (State::Closed, Some(Event::Reset)));
    d.at(60_000).silent();
    assert_eq!(d.conn.next_timer(), None);
}

/// RFC 5961, section 3.2: another RST within the window causes a challenge ACK.
#[test]
fn a_rst_elsewhere_in_the_window_is_challenged() {
    for seq in [2, 65_000] {
        let mut d = Dialogue::established(plain());
        d.gets(Seg { seq, ..RST }).sends(Want { seq: Some(1), ..ack(1) }).silent();
        assert_eq!((d.conn.state(), d.event()), (State::Established, None));
    }
}

/// RFC 5961, section 3.2: a RST outside the window is ignored.
#[test]
fn a_rst_outside_the_window_is_ignored() {
    for seq in [0, 65_001, 1 << 30] {
        let mut d = Dialogue::established(plain());
        d.gets(Seg { seq, ..RST }).silent();
        assert_eq!((d.conn.state(), d.event()), (State::Established, None));
    }
}

/// RFC 5961, section 4.2: a SYN on an open connection causes a challenge ACK, whatever its sequence number.
#[test]
fn a_syn_on_an_open_connection_is_challenged() {
    for seq in [0, 1, 500, 1 << 30] {
        let mut d = Dialogue::established(plain());
        d.gets(Seg { seq, ..SYN }).sends(Want { seq: Some(1), ..ack(1) }).silent();
        d.gets(Seg { seq, ..SYN_ACK }).sends(ack(1)).silent();
        assert_eq!((d.conn.state(), d.event()), (State::Established, None));
    }
}

/// RFC 5961, section 5.2: a segment that acknowledges data never sent is dropped and causes a challenge ACK.
#[test]
fn an_ack_of_unsent_data_is_challenged() {
    let mut d = Dialogue::established(plain());
    d.write(500).sends(data(1, 500)).gets(Seg { len: 100, ack: Some(502), ..ACK }).sends(ack(1)).silent();
    assert_eq!((d.conn.readable(), d.conn.unacknowledged()), (0, 500));
    d.gets(Seg { len: 100, ack: Some(501), ..ACK }).sends(ack(101)).silent();
    assert_eq!((d.conn.readable(), d.conn.unacknowledged()), (100, 0));
}

/// RFC 5961, section 5.2: so does one whose acknowledgment is older than the largest window.
#[test]
fn a_too_old_ack_is_challenged() {
    let mut d = Dialogue::answered(plain(), Seg { win: 2000, ..SYN_ACK });
    d.write(8000);
    for i in 1..=4 {
        d.sends(data(2000 * i - 1999, 1000)).sends(data(2000 * i - 999, 1000)).silent();
        d.gets(Seg { ack: Some(2000 * i + 1), win: 2000, ..ACK });
    }
    d.gets(Seg { len: 100, ack: Some(6000), win: 2000, ..ACK }).sends(ack(1)).silent();
    assert_eq!(d.conn.readable(), 0);
    d.gets(Seg { len: 100, ack: Some(6001), win: 2000, ..ACK }).sends(ack(101)).silent();
    assert_eq!(d.conn.readable(), 100);
}

/// The same before the first byte of our stream.
#[test]
fn an_ack_from_before_the_stream_is_challenged() {
    let mut d = Dialogue::established(plain());
    d.gets(Seg { len: 100, ack: Some((1 << 32) - 70_000), ..ACK }).sends(ack(1)).silent();
    assert_eq!(d.conn.readable(), 0);
}

/// RFC 5961, section 7: at most ten challenge ACKs in five seconds.
#[test]
fn challenge_acks_are_limited() {
    let mut d = Dialogue::established(plain());
    d.at(200).gets_times(30, Seg { seq: 2, ..RST });
    for _ in 0..10 {
        d.sends_at(200, ack(1));
    }
    d.silent().at(4999).gets(Seg { seq: 2, ..RST }).silent();
    d.at(5200).gets(Seg { seq: 2, ..RST }).sends_at(5200, ack(1)).silent();
}

/// RFC 9293, section 3.10.7.4, first check: an unacceptable segment is dropped and answered with an ACK.
#[test]
fn an_unacceptable_segment_is_answered_with_an_ack() {
    let mut d = Dialogue::established(plain());
    d.gets(Seg { len: 100, ..ACK }).sends(ack(101));
    let beyond = Seg { seq: 65_101, len: 10, ..ACK };
    let keep_alive = Seg { seq: 100, ..ACK };
    let old = Seg { seq: 1, len: 100, ..ACK };
    for seg in [beyond, keep_alive, old] {
        d.gets(seg).sends(Want { seq: Some(1), ..ack(101) }).silent();
    }
    assert_eq!(d.conn.readable(), 100);
}

/// RFC 9293, section 3.10.7.4, fifth check: a segment without ACK is dropped.
#[test]
fn a_segment_without_ack_is_dropped() {
    let mut d = Dialogue::established(plain());
    d.gets(Seg { len: 100, ack: None, ..ACK }).silent();
    assert_eq!(d.conn.readable(), 0);
}

/// RFC 9293, section 3.10.5: an abort sends a RST from SND.NXT.
#[test]
fn an_abort_sends_a_rst() {
    let mut d = Dialogue::established(plain());
    d.write(1500).sends(data(1, 1000)).sends(data(1001, 500));
    d.with(|c, _| c.abort());
    let (_, rst) = d.take();
    assert!(rst.tcp.flags.has(Flags::RST) && position(OURS, rst.tcp.seq) == 1501, "{rst:?}");
    d.silent().at(60_000).silent();
    assert_eq!(d.conn.state(), State::Closed);
}

/// RFC 9293, section 3.10.5: an abort in SYN-SENT and TIME-WAIT sends nothing.
#[test]
fn an_abort_in_syn_sent_or_time_wait_is_silent() {
    let mut d = Dialogue::connect(plain());
    d.sends(syn()).with(|c, _| c.abort());
    d.silent().at(5000).silent();
    let mut d = Dialogue::established(plain());
    d.close().sends(fin(1)).gets(Seg { ack: Some(2), ..FIN }).sends(ack(2)).with(|c, _| c.abort());
    d.silent();
}

/// RFC 9293, section 3.10.7.4, second check: a RST in TIME-WAIT closes the connection, but the application
/// sees no reset.
#[test]
fn a_rst_in_time_wait_only_closes() {
    let mut d = Dialogue::established(plain());
    d.close()
        .sends(fin(1))
        .gets(Seg { ack: Some(2), ..FIN })
        .sends(ack(2))
        .gets(Seg { seq: 2, ..RST })
        .silent();
    assert_eq!(d.conn.state(), State::Closed);
    assert_eq!((d.event(), d.event(), d.event()), (Some(Event::PeerClosed), Some(Event::Closed), None));
}

/// RFC 9293, section 3.10.7.4, second check: a RST is acceptable with a closed window as well.
#[test]
fn a_rst_at_a_closed_window_resets() {
    let size = bentpipe_base::Size(1000);
    let receive_buffer = bentpipe_tcp::ReceiveBuffer::Fixed(size);
    let mut d = Dialogue::established(bentpipe_tcp::Config { receive_buffer, ..plain() });
    d.gets(Seg { len: 1000, ..ACK }).sends(Want { win: Some(0), ..ack(1001) });
    d.gets(Seg { seq: 1001, ..RST });
    assert_eq!(d.conn.state(), State::Closed);
}

/// RFC 9293, section 3.10.7.1: every segment to a closed connection causes a RST, since the first RST may be
/// lost.
#[test]
fn a_closed_connection_resets() {
    let mut d = Dialogue::established(plain());
    d.with(|conn, _| conn.abort());
    d.sends(Want { flags: Some(Flags::RST), ..Want::default() });
    for _ in 0..2 {
        d.gets(Seg { len: 100, ..ACK });
        d.sends(Want { seq: Some(1), flags: Some(Flags::RST), ..Want::default() }).silent();
    }
    d.gets(RST).silent();
}

/// RFC 5961, section 7, applied to RFC 9293, section 3.10.7.4: segments without data outside the window cause
/// at most ten ACKs in five seconds, so two ends that disagree do not answer each other for ever; with data
/// each is answered.
#[test]
fn bare_unacceptable_segments_draw_a_limited_number_of_acks() {
    let mut d = Dialogue::established(plain());
    let stray = Seg { seq: 200_000, ..ACK };
    d.at(6000).gets_times(12, stray);
    for _ in 0..10 {
        d.sends(ack(1));
    }
    d.silent();
    d.gets(Seg { len: 100, ..stray }).sends(ack(1)).silent();
    d.at(11_001).gets(stray).sends(ack(1)).silent();
}

/// The time per limit is counted until the connection ends, however it ends.
#[test]
fn time_stops_counting_when_a_connection_ends() {
    let ends: [fn(&mut Dialogue); 3] = [
        |d| d.with(|c, _| c.abort()),
        |d| _ = d.gets(RST),
        |d| d.close().gets(Seg { ack: Some(2), ..FIN }).with(|c, _| c.abort()),
    ];
    for end in ends {
        let mut d = Dialogue::established(plain());
        end(d.at(300));
        d.at(5000);
        let spent = d.with(|c, cx| c.limited_by(cx.now));
        assert_eq!(spent.iter().map(|s| s.0).sum::<u64>(), 300_000_000);
    }
    // an open that is refused, or closed early
    for refused in [true, false] {
        let mut d = Dialogue::connect(plain());
        d.at(300);
        if refused {
            d.gets(Seg { seq: 0, ack: Some(1), ..RST });
        } else {
            d.close();
        }
        d.at(5000);
        let spent = d.with(|c, cx| c.limited_by(cx.now));
        assert_eq!(spent.iter().map(|s| s.0).sum::<u64>(), 300_000_000);
    }
}
