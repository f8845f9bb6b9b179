//! The retransmission timer: RFC 6298.

use crate::script::{ACK, Dialogue, SYN_ACK, Seg, ack, data, plain, syn};
use bentpipe_base::Duration;
use bentpipe_tcp::{Config, Event, RtoConfig, State};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn with_rto(min: u64, max: u64, granularity: u64) -> Config {
    let rto = RtoConfig { min: ms(min), max: ms(max), granularity: ms(granularity), ..RtoConfig::default() };
    Config { rto, ..plain() }
}

/// RFC 6298, section 2.1: before the first RTT sample the RTO is the configured one: 1 s, or 3 s as in RFC
/// 2988.
#[test]
fn the_first_timeout_is_configured() {
    for initial in [1000, 3000] {
        let rto = RtoConfig { initial: ms(initial), ..RtoConfig::default() };
        let mut d = Dialogue::connect(Config { rto, ..plain() });
        d.sends_at(0, syn()).at(initial - 1).silent().at(initial).sends_at(initial, syn()).silent();
    }
}

/// RFC 6298, sections 2.2 and 2.4: SRTT + 4 RTTVAR of the handshake's 100 ms is 300 ms, less than the minimum
/// of 1 s.
#[test]
fn the_timeout_has_a_minimum() {
    for (min, expected) in [(1000, 1000), (200, 300), (400, 400)] {
        let mut d = Dialogue::established(with_rto(min, 60_000, 1));
        d.write(1000).sends_at(100, data(1, 1000));
        d.at(99 + expected).silent().at(100 + expected).sends_at(100 + expected, data(1, 1000)).silent();
    }
}

/// RFC 6298, section 2.3: the second sample, 180 ms after 100 ms: SRTT 110, RTTVAR 57.5, timeout 340 ms.
#[test]
fn the_timeout_follows_the_samples() {
    let mut d = Dialogue::established(with_rto(1, 60_000, 1));
    d.write(1000).sends(data(1, 1000)).at(280).gets(Seg { ack: Some(1001), ..ACK });
    d.write(1000).sends_at(280, data(1001, 1000)).at(619).silent().at(620).sends_at(620, data(1001, 1000));
}

/// RFC 6298, section 2.2: 4 RTTVAR is at least the clock's granularity.
#[test]
fn the_spread_is_at_least_the_granularity() {
    let mut d = Dialogue::established(with_rto(1, 60_000, 500));
    d.write(1000).sends(data(1, 1000)).at(699).silent().at(700).sends_at(700, data(1, 1000));
}

/// RFC 6298, section 5.5: each timeout doubles the next.
#[test]
fn the_timeout_doubles() {
    let mut d = Dialogue::established(plain());
    d.write(1000).sends(data(1, 1000)).at(15_100);
    for at in [1100, 3100, 7100, 15_100] {
        d.sends_at(at, data(1, 1000));
    }
    d.silent();
}

/// RFC 6298, section 2.5: the RTO has a maximum.
#[test]
fn the_timeout_has_a_maximum() {
    let mut d = Dialogue::established(with_rto(1000, 3000, 1));
    d.write(1000).sends(data(1, 1000)).at(9100);
    for at in [1100, 3100, 6100, 9100] {
        d.sends_at(at, data(1, 1000));
    }
    d.silent();
}

/// RFC 6298, sections 3 and 5.7: a retransmitted segment gives no RTT sample, and the doubled RTO stays until
/// there is one.
#[test]
fn a_retransmitted_segment_gives_no_sample() {
    let mut d = Dialogue::established(plain());
    d.write(1000).sends(data(1, 1000)).at(1100).sends_at(1100, data(1, 1000));
    d.at(1200).gets(Seg { ack: Some(1001), ..ACK }).silent();
    assert_eq!((d.conn.rtt().srtt(), d.conn.rtt().latest()), (ms(100), ms(100)));
    d.write(1000)
        .sends_at(1200, data(1001, 1000))
        .at(3199)
        .silent()
        .at(3200)
        .sends_at(3200, data(1001, 1000));
    // a new segment, sent once, ends the backoff
    d.at(3300).gets(Seg { ack: Some(2001), ..ACK }).write(1000).sends(data(2001, 1000));
    d.at(3400).gets(Seg { ack: Some(3001), ..ACK }).write(1000).sends(data(3001, 1000));
    d.at(4399).silent().at(4400).sends_at(4400, data(3001, 1000));
}

/// RFC 7323, section 4.1: with timestamps a retransmitted segment gives an RTT sample as well.
#[test]
fn a_timestamp_makes_the_sample_good() {
    let mut config = plain();
    config.options.timestamps = true;
    let mut d = Dialogue::established(config);
    d.write(900).sends(data(1, 900)).at(1100).sends_at(1100, data(1, 900));
    d.at(1250).gets(Seg { ack: Some(901), ts: Some((5, 1100)), ..ACK });
    assert_eq!(d.conn.rtt().latest(), ms(150));
}

/// The same for a SYN: auto-tuning of the window needs an RTT even if nothing else is ever sent.
#[test]
fn a_timestamp_samples_a_lost_syn() {
    let mut config = plain();
    config.options.timestamps = true;
    let mut d = Dialogue::connect(config);
    d.at(1150).gets(Seg { ts: Some((5, 1000)), ..SYN_ACK });
    assert_eq!(d.conn.rtt().srtt(), ms(150));
}

/// RFC 6298, section 5.1: a segment sent while the timer runs does not restart it.
#[test]
fn sending_does_not_restart_a_running_timer() {
    let mut d = Dialogue::established(plain());
    d.write(1000).sends(data(1, 1000)).at(600).write(1000).sends_at(600, data(1001, 1000));
    d.at(1099).silent().at(1100).sends_at(1100, data(1, 1000)).silent();
}

/// RFC 6298, section 5.2: when everything is acknowledged the timer stops; later data restarts it.
#[test]
fn the_timer_stops_when_all_is_acknowledged() {
    let mut d = Dialogue::established(plain());
    d.write(1000).sends(data(1, 1000)).at(200).gets(Seg { ack: Some(1001), ..ACK });
    assert_eq!(d.conn.next_timer(), None);
    d.at(900)
        .write(1000)
        .sends_at(900, data(1001, 1000))
        .at(1899)
        .silent()
        .at(1900)
        .sends_at(1900, data(1001, 1000));
}

/// RFC 6298, section 5.3: an acknowledgment of new data restarts the timer; any other does not.
#[test]
fn new_data_acknowledged_restarts_the_timer() {
    let mut d = Dialogue::established(plain());
    d.write(2000).sends(data(1, 1000)).sends(data(1001, 1000));
    d.at(600).gets(Seg { ack: Some(1001), ..ACK }).at(700).gets(Seg { ack: Some(1001), ..ACK });
    d.at(1599).silent().at(1600).sends_at(1600, data(1001, 1000)).silent();
}

/// RFC 6298, section 5.4: only the earliest unacknowledged segment is retransmitted; section 5.6 starts the
/// timer.
#[test]
fn a_timeout_resends_the_earliest_segment() {
    let mut d = Dialogue::established(plain());
    d.write(4000);
    for i in 0..4 {
        d.sends(data(1 + 1000 * i, 1000));
    }
    d.at(1100)
        .sends_at(1100, data(1, 1000))
        .silent()
        .at(3099)
        .silent()
        .at(3100)
        .sends_at(3100, data(1, 1000));
}

/// RFC 9293, section 3.8.3: after this many timeouts in a row the connection is aborted.
#[test]
fn too_many_timeouts_end_the_connection() {
    let mut d = Dialogue::established(Config { max_timeouts: 3, ..plain() });
    d.write(1000).sends(data(1, 1000)).at(15_099);
    d.sends_at(1100, data(1, 1000)).sends_at(3100, data(1, 1000)).sends_at(7100, data(1, 1000)).silent();
    assert_eq!((d.conn.state(), d.event()), (State::Established, None));
    d.at(15_100).silent();
    assert_eq!((d.conn.state(), d.event()), (State::Closed, Some(Event::TimedOut)));
}

/// RFC 9293, section 3.8.3: progress resets the count.
#[test]
fn progress_starts_the_count_anew() {
    let mut d = Dialogue::established(Config { max_timeouts: 2, ..plain() });
    d.write(2000).at(3100);
    d.gets(Seg { ack: Some(1001), ..ACK }).at(10_000);
    assert_eq!((d.conn.state(), d.event()), (State::Established, None));
    d.at(200_000);
    assert_eq!((d.conn.state(), d.event()), (State::Closed, Some(Event::TimedOut)));
}

/// RFC 6298, section 3: the handshake gives the first sample, unless the SYN was retransmitted.
#[test]
fn the_handshake_gives_the_first_sample() {
    let d = Dialogue::established(plain());
    assert_eq!(d.conn.rtt().srtt(), ms(100));
    let mut d = Dialogue::connect(plain());
    d.at(1100).sends(syn()).sends(syn()).gets(SYN_ACK).sends(ack(1));
    assert!(!d.conn.rtt().has_sample());
}
