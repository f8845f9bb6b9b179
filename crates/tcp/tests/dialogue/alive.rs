//! The user timeout and keep-alives: RFC 9293, sections 3.9.1 and 3.8.4.

use crate::script::{ACK, Dialogue, FIN, SYN, SYN_ACK, Seg, Want, ack, data, fin, plain, syn, syn_ack};
use bentpipe_base::{Duration, Flags};
use bentpipe_tcp::{Config, Event, KeepAlive, Stack, State};

const BOTH: [Stack; 2] = [Stack::Rfc, Stack::Linux];

fn patient(stack: Stack, seconds: u64) -> Config {
    Config { user_timeout: Some(Duration::from_secs(seconds)), ..plain().on(stack) }
}

/// Ten seconds of silence, then three keep-alives two seconds apart.
fn asking(stack: Stack) -> Config {
    let keep_alive = KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(2), count: 3 };
    Config { keep_alive: Some(keep_alive), ..plain().on(stack) }
}

fn question(seq: u64) -> Want {
    Want { seq: Some(seq), ..ack(1) }
}

fn timed_out(d: &mut Dialogue) -> bool {
    (d.conn.state(), d.event()) == (State::Closed, Some(Event::TimedOut))
}

/// RFC 9293, section 3.10.8: the user timeout ends the connection and sends nothing; it starts when the
/// oldest unacknowledged data was sent.
#[test]
fn the_user_timeout_ends_a_silent_connection() {
    for stack in BOTH {
        let mut d = Dialogue::established(patient(stack, 5));
        d.at(1000).write(1000).sends_at(1000, data(1, 1000)).at(5999).drain();
        assert_eq!((d.conn.state(), d.event()), (State::Established, None));
        d.at(6000).silent();
        assert!(timed_out(&mut d));
        assert_eq!(d.conn.next_timer(), None);
    }
}

/// RFC 9293, section 3.9.1: an acknowledgment restarts the user timeout; without outstanding data it never
/// expires.
#[test]
fn progress_begins_the_user_timeout_anew() {
    for stack in BOTH {
        let mut d = Dialogue::established(patient(stack, 5));
        d.write(3000).drain();
        d.at(4000).gets(Seg { ack: Some(1001), ..ACK }).at(8999).drain();
        assert_eq!(d.conn.state(), State::Established);
        d.gets(Seg { ack: Some(3001), ..ACK }).at(100_000).drain();
        assert_eq!((d.conn.state(), d.conn.next_timer()), (State::Established, None));
        d.write(1000).drain();
        d.at(104_999).drain();
        assert_eq!(d.conn.state(), State::Established);
        d.at(105_000);
        assert!(timed_out(&mut d));
    }
}

/// RFC 9293, section 3.8.3: the user timeout is R2 as a time; if it is longer than the number of timeouts
/// allows, it takes precedence.
#[test]
fn the_user_timeout_outlasts_the_number_of_timeouts() {
    let mut d = Dialogue::established(Config { max_timeouts: 2, ..patient(Stack::Rfc, 100) });
    d.write(1000).at(100_099).drain();
    assert_eq!(d.conn.state(), State::Established);
    assert!(d.conn.stats().timeouts > 2);
    d.at(100_100);
    assert!(timed_out(&mut d));
}

/// RFC 5482, section 1: the user timeout also applies to data that a closed window holds back, although the
/// peer answers every probe.
#[test]
fn a_closed_window_does_not_outlast_the_user_timeout() {
    let mut d = Dialogue::established(patient(Stack::Rfc, 20));
    d.gets(Seg { win: 0, ..ACK }).write(1000).silent();
    for s in 1..=20 {
        d.at(100 + 1000 * s);
        if !d.drain().is_empty() {
            d.gets(Seg { win: 0, ..ACK });
        }
    }
    assert_eq!(d.conn.state(), State::Established);
    d.at(22_000);
    assert!(timed_out(&mut d));
}

/// RFC 9293, section 3.9.1: the user timeout also applies to SYN and FIN.
#[test]
fn the_user_timeout_holds_for_syn_and_fin() {
    let mut d = Dialogue::connect(patient(Stack::Rfc, 5));
    d.sends(syn()).at(4999).drain();
    d.at(5000).silent();
    assert!(timed_out(&mut d));
    let mut d = Dialogue::accept(patient(Stack::Rfc, 5), SYN);
    d.sends(syn_ack()).at(4999).drain();
    d.at(5000).silent();
    assert!(timed_out(&mut d));
    let mut d = Dialogue::established(patient(Stack::Rfc, 5));
    d.close().sends(fin(1)).at(5099).drain();
    d.at(5100).silent();
    assert!(timed_out(&mut d));
}

/// RFC 9293, section 3.8.4: keep-alives are off by default.
#[test]
fn keep_alives_are_off_by_default() {
    let mut d = Dialogue::established(plain());
    d.at(1_000_000_000).silent();
    assert_eq!(d.conn.state(), State::Established);
    assert_eq!((Config::default().keep_alive, Config::linux().keep_alive), (None, None));
    assert!(KeepAlive::default().idle >= Duration::from_secs(7200));
}

/// RFC 9293, section 3.8.4: a keep-alive has SEG.SEQ = SND.NXT-1 and no data; its ACK, or any other segment,
/// restarts the idle time.
#[test]
fn a_silent_peer_is_asked() {
    for stack in BOTH {
        let mut d = Dialogue::established(asking(stack));
        d.at(10_099).silent().at(10_100).sends_at(10_100, question(0)).silent();
        d.at(10_200).gets(ACK).silent().at(20_199).silent();
        d.at(20_200).sends_at(20_200, question(0)).silent();
        // data from the peer restarts the idle time as well
        d.at(20_300).gets(Seg { len: 100, ..ACK }).sends(ack(101)).at(30_299).silent();
        d.at(30_300).sends_at(30_300, Want { seq: Some(0), ..ack(101) }).silent();
        assert_eq!(d.conn.state(), State::Established);
    }
}

/// RFC 9293, section 3.8.4: one unanswered keep-alive is not enough; after the last the connection is reset.
#[test]
fn a_dead_peer_is_given_up() {
    for stack in BOTH {
        let mut d = Dialogue::established(asking(stack));
        d.write(500).sends(data(1, 500)).at(200).gets(Seg { ack: Some(501), ..ACK });
        d.at(16_199);
        for at in [10_200, 12_200, 14_200] {
            d.sends_at(at, question(500));
        }
        d.silent();
        assert_eq!(d.conn.state(), State::Established);
        d.at(16_200).sends_at(16_200, Want { flags: Some(Flags::RST), seq: Some(501), ..Want::default() });
        d.silent();
        assert!(timed_out(&mut d));
    }
}

/// An answer to any of the keep-alives is enough.
#[test]
fn a_late_answer_is_an_answer() {
    let mut d = Dialogue::established(asking(Stack::Rfc));
    d.at(16_000).drain();
    d.gets(ACK).at(25_999).silent();
    assert_eq!(d.conn.state(), State::Established);
    d.at(31_999).drain();
    assert_eq!(d.conn.state(), State::Established);
    d.at(32_000).drain();
    assert!(timed_out(&mut d));
}

/// RFC 5961, section 5.2: a rejected segment does not restart the idle time.
#[test]
fn what_is_refused_is_no_answer() {
    let mut d = Dialogue::established(asking(Stack::Rfc));
    for s in 10..16 {
        d.at(1000 * s).gets(Seg { ack: Some(900), ..ACK }).gets(Seg { seq: 1 << 30, ..ACK });
    }
    d.at(16_100).drain();
    assert!(timed_out(&mut d));
}

/// RFC 9293, section 3.8.4: keep-alives are sent only if no data is outstanding.
#[test]
fn nobody_is_asked_while_data_is_outstanding() {
    let mut d = Dialogue::established(asking(Stack::Rfc));
    d.at(5000).write(1000).at(30_000);
    assert!(d.drain().iter().all(|p| p.body.len == 1000));
    assert_eq!(d.conn.state(), State::Established);
}

/// A half-closed connection sends keep-alives, one in TIME-WAIT does not.
#[test]
fn a_half_closed_connection_is_asked() {
    let mut d = Dialogue::established(asking(Stack::Rfc));
    d.close().sends(fin(1)).gets(Seg { ack: Some(2), ..ACK }).at(10_100).sends(question(1)).silent();
    d.gets(Seg { ack: Some(2), ..FIN }).sends(ack(2)).at(60_000).silent();
    assert_eq!(d.conn.state(), State::TimeWait);
}

/// `tcp_keepalive_timer`: with a user timeout, that timeout decides when an idle peer is dead.
#[test]
fn with_a_user_timeout_that_decides() {
    let config = Config { user_timeout: Some(Duration::from_secs(13)), ..asking(Stack::Linux) };
    let mut d = Dialogue::established(config);
    d.at(14_099).sends_at(10_100, question(0)).sends_at(12_100, question(0)).silent();
    d.at(14_100).sends(Want { flags: Some(Flags::RST), ..Want::default() }).silent();
    assert!(timed_out(&mut d));
}

/// RFC 9293, section 3.8.4: the peer's keep-alive causes an ACK, with a byte of garbage or without.
#[test]
fn a_question_is_answered() {
    for len in [0, 1] {
        let mut d = Dialogue::answered(plain(), SYN_ACK);
        d.gets(Seg { len: 100, ..ACK }).sends(ack(101));
        d.gets(Seg { seq: 100, len, ..ACK }).sends(Want { seq: Some(1), ..ack(101) }).silent();
        assert_eq!(d.conn.readable(), 100);
    }
}
