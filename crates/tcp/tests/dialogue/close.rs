//! Closing: half-close both ways, simultaneous close, TIME-WAIT.

use crate::script::{ACK, Dialogue, FIN, Seg, Want, ack, data, fin, plain};
use bentpipe_base::{Duration, Flags};
use bentpipe_tcp::{Config, Event, Stack, State};

/// RFC 9293, section 3.6, case 1: after our FIN the peer continues to send, and we receive it.
#[test]
fn after_our_fin_the_peer_goes_on() {
    let mut d = Dialogue::established(plain());
    d.close().sends_at(100, fin(1)).silent();
    assert_eq!(d.conn.state(), State::FinWait1);
    d.at(200).gets(Seg { len: 700, ..ACK }).sends(ack(701)).silent();
    d.gets(Seg { seq: 701, ack: Some(2), ..ACK }).silent();
    assert_eq!(d.conn.state(), State::FinWait2);
    d.gets(Seg { seq: 701, len: 300, ack: Some(2), ..ACK })
        .sends(Want { seq: Some(2), ..ack(1001) })
        .silent();
    assert_eq!((d.conn.readable(), d.event()), (1000, None));
    d.gets(Seg { seq: 1001, ack: Some(2), ..FIN }).sends(ack(1002)).silent();
    assert_eq!((d.conn.state(), d.event()), (State::TimeWait, Some(Event::PeerClosed)));
    d.read(1000);
}

/// RFC 9293, section 3.6, case 2: after the peer's FIN we continue to send and close later. No TIME-WAIT on
/// this side.
#[test]
fn after_their_fin_we_go_on() {
    let mut d = Dialogue::established(plain());
    d.gets(FIN).sends_at(100, ack(2)).silent();
    assert_eq!((d.conn.state(), d.event()), (State::CloseWait, Some(Event::PeerClosed)));
    assert!(d.conn.peer_closed());
    d.at(5000).write(1500).sends(data(1, 1000)).sends(data(1001, 500)).silent();
    d.gets(Seg { seq: 2, ack: Some(1501), ..ACK }).silent();
    d.close().sends(fin(1501)).silent();
    assert_eq!((d.conn.state(), d.event()), (State::LastAck, None));
    d.gets(Seg { seq: 2, ack: Some(1502), ..ACK }).silent();
    assert_eq!((d.conn.state(), d.event(), d.conn.next_timer()), (State::Closed, Some(Event::Closed), None));
}

/// RFC 9293, section 3.10.4: the FIN follows the last byte written, in its segment if it fits.
#[test]
fn the_fin_follows_the_last_byte() {
    let mut d = Dialogue::established(Config { initial_window: 1, ..plain() });
    d.write(2500).close().sends(Want { flags: Some(Flags(0)), ..data(1, 1000) }).silent();
    d.gets(Seg { ack: Some(1001), ..ACK }).sends(Want { flags: Some(Flags(0)), ..data(1001, 1000) });
    d.sends(Want { flags: Some(Flags::FIN), ..data(2001, 500) }).silent();
    d.gets(Seg { ack: Some(2501), ..ACK }).silent();
    assert_eq!(d.conn.state(), State::FinWait1, "the FIN itself is not acknowledged");
    d.gets(Seg { ack: Some(2502), ..ACK }).silent();
    assert_eq!(d.conn.state(), State::FinWait2);
}

/// RFC 9293, section 3.10.2: nothing can be written after closing.
#[test]
fn a_closed_stream_takes_no_more() {
    let mut d = Dialogue::established(plain());
    d.close().sends(fin(1));
    assert_eq!(d.conn.write(100), 0);
    d.close().silent();
}

/// RFC 9293, section 3.8.1: the FIN is retransmitted like data.
#[test]
fn a_lost_fin_is_sent_again() {
    let mut d = Dialogue::established(plain());
    d.close().sends_at(100, fin(1)).at(7100);
    d.sends_at(1100, fin(1)).sends_at(3100, fin(1)).sends_at(7100, fin(1)).silent();
    d.gets(Seg { ack: Some(2), ..ACK }).at(60_000).silent();
    assert_eq!(d.conn.state(), State::FinWait2);
}

/// RFC 9293, section 3.6, figure 13: both close at once and meet in CLOSING.
#[test]
fn a_simultaneous_close_passes_through_closing() {
    let mut d = Dialogue::established(plain());
    d.close().sends(fin(1));
    d.at(150).gets(FIN).sends_at(150, Want { seq: Some(2), ..ack(2) }).silent();
    assert_eq!((d.conn.state(), d.event()), (State::Closing, Some(Event::PeerClosed)));
    d.at(200).gets(Seg { seq: 2, ack: Some(2), ..ACK }).silent();
    assert_eq!((d.conn.state(), d.event()), (State::TimeWait, None));
    d.at(60_200).silent();
    assert_eq!((d.conn.state(), d.event()), (State::Closed, Some(Event::Closed)));
}

/// RFC 9293, section 3.10.7.4, eighth check: a FIN that also acknowledges ours leads to TIME-WAIT directly.
#[test]
fn a_fin_that_acknowledges_ours_skips_closing() {
    let mut d = Dialogue::established(plain());
    d.close().sends(fin(1)).gets(Seg { ack: Some(2), ..FIN }).sends(ack(2)).silent();
    assert_eq!(d.conn.state(), State::TimeWait);
}

fn in_time_wait(config: Config) -> Dialogue {
    let mut d = Dialogue::established(config);
    d.close().sends(fin(1)).gets(Seg { ack: Some(2), ..FIN }).sends(ack(2)).silent();
    assert_eq!(d.event(), Some(Event::PeerClosed));
    d
}

/// RFC 9293, section 3.4.2 and figure 5: TIME-WAIT lasts 2 MSL.
#[test]
fn time_wait_lasts_two_segment_lifetimes() {
    for seconds in [60, 240] {
        let mut d = in_time_wait(Config { time_wait: Duration::from_secs(seconds), ..plain() });
        d.at(100 + seconds * 1000 - 1).silent();
        assert_eq!((d.conn.state(), d.event()), (State::TimeWait, None));
        d.at(100 + seconds * 1000).silent();
        assert_eq!((d.conn.state(), d.event()), (State::Closed, Some(Event::Closed)));
    }
}

/// RFC 9293, section 3.10.7.4, eighth check: in TIME-WAIT a repeated FIN of the peer is acknowledged and
/// restarts the timer.
#[test]
fn time_wait_begins_anew_with_a_repeated_fin() {
    let mut d = in_time_wait(plain());
    d.at(30_000).gets(Seg { ack: Some(2), ..FIN }).sends_at(30_000, Want { seq: Some(2), ..ack(2) }).silent();
    d.at(89_999).silent();
    assert_eq!(d.conn.state(), State::TimeWait);
    d.at(90_000).silent();
    assert_eq!(d.conn.state(), State::Closed);
}

/// RFC 9293, section 3.10.7.4, eighth check: a repeated FIN in CLOSE-WAIT and LAST-ACK is only acknowledged.
#[test]
fn a_repeated_fin_is_acknowledged_again() {
    let mut d = Dialogue::established(plain());
    d.gets(FIN).sends(ack(2)).gets(FIN).sends(ack(2)).silent();
    assert_eq!(d.conn.state(), State::CloseWait);
    d.close().sends(fin(1)).gets(FIN).sends(ack(2)).silent();
    assert_eq!(d.conn.state(), State::LastAck);
    assert_eq!((d.event(), d.event()), (Some(Event::PeerClosed), None));
}

/// RFC 9293, section 3.10.7.4: a FIN beyond a gap counts when the gap is filled, not before.
#[test]
fn a_fin_beyond_a_gap_waits() {
    let mut d = Dialogue::established(plain());
    d.gets(Seg { seq: 501, len: 100, ..FIN }).sends(ack(1)).silent();
    assert_eq!((d.conn.state(), d.event()), (State::Established, None));
    d.gets(Seg { len: 500, ..ACK }).sends(ack(602)).silent();
    assert_eq!(
        (d.conn.state(), d.event(), d.conn.readable()),
        (State::CloseWait, Some(Event::PeerClosed), 600)
    );
}

/// RFC 9293, section 3.6: a FIN is the end of a stream. Data beyond it, or another FIN elsewhere, is invalid
/// and not accepted: otherwise a position that never held a byte would count as readable.
#[test]
fn a_stream_ends_once() {
    let mut d = Dialogue::established(plain());
    d.gets(Seg { seq: 501, len: 100, ..FIN }).sends(ack(1)).silent();
    d.gets(Seg { seq: 701, ..FIN }).sends(ack(1)).gets(Seg { seq: 551, ..FIN }).sends(ack(1));
    d.gets(Seg { seq: 551, len: 500, ..ACK }).sends(ack(1)).silent();
    d.gets(Seg { len: 500, ..ACK }).sends(ack(602)).silent();
    assert_eq!((d.conn.state(), d.conn.readable()), (State::CloseWait, 600));
    // a FIN below data received beyond a gap
    let mut d = Dialogue::established(plain());
    d.gets(Seg { seq: 501, len: 100, ..ACK })
        .sends(ack(1))
        .gets(Seg { seq: 301, ..FIN })
        .sends(ack(1))
        .silent();
    d.gets(Seg { len: 500, ..ACK }).sends(ack(601)).silent();
    assert_eq!((d.conn.state(), d.conn.readable()), (State::Established, 600));
}

/// RFC 9293, section 3.10.7.4, eighth check: so does any FIN within the window. Data without FIN is ignored;
/// Linux (`tcp_timewait_state_process`) answers it as well.
#[test]
fn a_fin_within_the_window_is_acknowledged_in_time_wait() {
    for stack in [Stack::Rfc, Stack::Linux] {
        let mut d = in_time_wait(plain().on(stack));
        d.at(30_000).gets(Seg { seq: 2, ack: Some(2), ..FIN }).sends_at(30_000, ack(2)).silent();
        d.gets(Seg { seq: 2, len: 100, ack: Some(2), ..FIN }).sends(ack(2)).silent();
        d.at(40_000).gets(Seg { seq: 2, len: 100, ack: Some(2), ..ACK });
        if stack == Stack::Linux {
            d.sends(ack(2));
        }
        d.silent().gets(Seg { seq: 2, ack: Some(2), ..ACK }).silent();
        let end = if stack == Stack::Linux { 100_000 } else { 90_000 };
        d.at(end - 1).silent();
        assert_eq!((d.conn.state(), d.conn.readable()), (State::TimeWait, 0));
        d.at(end).silent();
        assert_eq!(d.conn.state(), State::Closed);
    }
}

/// The same in the other states after a FIN: a second end of the stream is acknowledged like the first, and
/// otherwise ignored.
#[test]
fn a_second_fin_is_only_acknowledged() {
    let mut d = Dialogue::established(plain());
    d.gets(FIN).sends(ack(2)).gets(Seg { seq: 2, len: 50, ..FIN }).sends(ack(2)).silent();
    assert_eq!((d.conn.state(), d.conn.readable()), (State::CloseWait, 0));
    d.close().sends(fin(1)).gets(Seg { seq: 2, ..FIN }).sends(ack(2)).silent();
    assert_eq!(d.conn.state(), State::LastAck);
}
