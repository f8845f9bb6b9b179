//! A Linux host: its differences from the RFCs. Each test names the function of Linux 6.x that it follows.

use crate::script::{ACK, Dialogue, SYN_ACK, Seg, Want, ack, acks, data, nth, plain_with, sacks};
use bentpipe_base::{Duration, Flags, Size};
use bentpipe_tcp::{Config, DelayedAck, RtoConfig, Stack, Validation};

fn linux(scheme: &str) -> Config {
    plain_with(scheme).on(Stack::Linux)
}

fn flying(scheme: &str, n: u32) -> Dialogue {
    Dialogue::flying(linux(scheme), n)
}

/// `tcp_event_data_recv`: the first sixteen acknowledgments are not delayed, nor those after a pause longer
/// than the RTO.
#[test]
fn the_first_acknowledgments_are_not_delayed() {
    let delayed = Some(DelayedAck { count: 2, timeout: Duration::from_millis(40) });
    let mut d = Dialogue::established(Config { delayed_ack: delayed, ..linux("cubic") });
    let segment = |k: u64| Seg { seq: nth(k), len: 1000, ..ACK };
    for k in 0..16 {
        d.gets(segment(k)).sends(ack(nth(k + 1)));
    }
    d.gets(segment(16)).silent().gets(segment(17)).sends(ack(nth(18)));
    d.gets(segment(18)).at(139).silent().at(140).sends(ack(nth(19)));
    d.at(3000).gets(segment(19)).sends(ack(nth(20)));
}

/// `tcp_reno_ssthresh`, `cubictcp_recalc_ssthresh`: ssthresh is a share of cwnd in whole segments, whatever
/// is in flight.
#[test]
fn a_loss_reduces_from_the_window() {
    for (scheme, left) in [("cubic", 14_000), ("sack", 10_000)] {
        let mut d = flying(scheme, 21);
        d.gets(sacks(0, &[(1, 4)])).drain();
        assert_eq!(d.cwnd(), left, "{scheme}: 21 * 717 / 1024, 21 / 2");
    }
}

/// `tcp_cwnd_reduction`: the proportion refers to the window before the loss, and is rounded up to segments.
#[test]
fn recovery_sends_by_the_window_of_before() {
    let mut d = flying("sack", 10);
    d.gets(sacks(0, &[(1, 2)])).sent(&[10]);
    d.at(202).gets(sacks(0, &[(1, 3)])).sent(&[11]);
    d.at(204).gets(sacks(0, &[(1, 4)])).sent(&[0]); // ssthresh is 5, 8 are in flight
    d.gets(sacks(0, &[(1, 5)])).sent(&[]); // ceil(2 * 5/10) is one, which was sent
    d.gets(sacks(0, &[(1, 6)])).sent(&[12]); // ceil(3 * 5/10) is two
}

/// `tcp_cong_control`: the acknowledgment that ends recovery grows the window by all that it delivers.
#[test]
fn the_end_of_recovery_counts_for_growth() {
    let mut d = flying("sack", 10);
    d.gets(sacks(0, &[(1, 10)])).drain();
    d.at(300).gets(acks(10)).drain();
    assert_eq!(d.cwnd(), 5000);
    for k in 11..15 {
        d.gets(acks(k)).drain();
    }
    assert_eq!(d.cwnd(), 6000, "the one that ended it was the first of five");
}

/// `tcp_slow_start`: an acknowledgment of many segments grows the window by that many.
#[test]
fn slow_start_counts_segments() {
    let mut d = flying("cubic", 10);
    d.gets(acks(6));
    assert_eq!(d.cwnd(), 16_000);
}

/// `__tcp_set_rto`: the minimum RTO is added to the SRTT.
#[test]
fn the_smallest_timeout_is_added() {
    let mut d = flying("newreno", 4);
    d.gets(acks(1)).drain();
    d.at(1299).sent(&[]).at(1305).sends(data(nth(1), 1000)); // 200 + 100 + 1000
}

/// `tcp_schedule_loss_probe`: a probe for a single segment waits for the minimum RTO as well, for several
/// segments 2 ms.
#[test]
fn a_lone_segment_is_probed_later() {
    let rto = RtoConfig { min: Duration::from_millis(300), ..RtoConfig::default() };
    for (segments, at) in [(2, 302), (1, 500)] {
        let mut d = Dialogue::established(Config { rto, ..linux("cubic") });
        d.write(segments * 1000).drain();
        // the RTO, 100 + 300 ms after 100, is before two round trips and 300 ms
        d.at(at - 1).sent(&[]).at(at).sent(&[segments - 1]);
    }
}

/// `tcp_timeout_mark_lost`, `tcp_enter_loss`: segments sent within the last round trip do not count as lost,
/// and the window is one more than these.
#[test]
fn a_timeout_keeps_what_is_young() {
    let mut d = Dialogue::established(Config { initial_window: 2, ..linux("cubic") });
    d.write(2000).sent(&[0, 1]);
    // a tail loss probe at 302; the timeout is at 302 + 1100, and two segments are written just before it
    d.at(302).sent(&[1]).at(1350).drain();
    d.write(2000);
    d.at(1402).drain();
    assert_eq!(d.conn.stats().timeouts, 1);
    assert!(d.conn.scoreboard().lost() <= 2000, "{:?}", d.conn.scoreboard());
}

/// `tcp_process_loss`: an original that arrives after a timeout shows at once that the timeout was spurious.
#[test]
fn an_original_after_the_timeout_undoes_it() {
    let mut d = flying("cubic", 6);
    d.at(302).drain(); // the tail loss probe
    d.at(1402).drain(); // the timeout
    assert_eq!((d.cwnd(), d.conn.stats().timeouts), (1000, 1));
    d.gets(sacks(0, &[(1, 2)])).drain();
    assert_eq!((d.conn.stats().undone, d.cwnd()), (1, 6000));
}

/// `tcp_newreno_mark_lost`, `tcp_cwnd_reduction`: without SACK the hole shown by a partial ACK is sent when
/// the reduction allows it.
#[test]
fn a_partial_ack_waits_for_the_reduction() {
    let mut d = flying("newreno", 20);
    d.gets_times(3, acks(0)).drain();
    assert_eq!(d.cwnd(), 10_000);
    d.gets_times(4, acks(0)).drain(); // five delivered, of which half are sent: three
    d.gets(acks(2)).silent(); // one more than the duplicates counted: half of six is three, already sent
    d.gets(acks(2)).sends(data(nth(2), 1000));
}

/// `tcp_fastretrans_alert`: segments lost during recovery and still missing at its end reduce the window
/// again.
#[test]
fn what_recovery_leaves_lost_lowers_the_window_again() {
    let mut d = flying("sack", 20);
    d.gets(sacks(0, &[(1, 5)])).drain();
    assert_eq!(d.cwnd(), 10_000);
    // new data sent in recovery is lost as well, and retransmitted in it
    d.at(210).gets(sacks(0, &[(1, 20)])).drain();
    let next = (d.conn.scoreboard().next() - 1) / 1000;
    d.at(310).gets(sacks(0, &[(1, 20), (21, next)])).drain();
    d.at(320).gets(sacks(20, &[(21, next)])).drain();
    assert_eq!(d.cwnd(), 5000);
}

/// `tcp_process_loss`: without SACK, each duplicate caused by F-RTO's segments allows a lost segment.
#[test]
fn duplicates_after_a_timeout_clock_the_resending() {
    let mut d = flying("newreno", 6);
    d.at(1500).drain();
    d.gets(acks(1)).sent(&[6, 7]).gets(acks(1)).sent(&[1]).gets(acks(1)).sent(&[2]);
}

/// `tcp_is_non_sack_preventing_reopen`: without SACK recovery lasts until data beyond it is acknowledged.
#[test]
fn recovery_without_sack_ends_beyond_its_data() {
    let mut d = flying("newreno", 10);
    d.gets_times(9, acks(0)).drain();
    let end = (d.conn.scoreboard().next() - 1) / 1000;
    d.at(300).gets(acks(10)).drain();
    d.gets_times(3, acks(10)).drain();
    let before = d.conn.stats().retransmits;
    assert!(end > 10 && before <= 2);
}

/// `tcp_cwnd_restart`: the window is halved for every RTO of idle time, down to the initial window.
#[test]
fn idle_time_halves_the_window() {
    let config = Config { initial_window: 2, validation: Validation::Restart, ..linux("cubic") };
    let mut d = Dialogue::established(config);
    d.write(30_000).drain();
    for round in 2..6 {
        d.round(100 * round);
    }
    let before = d.cwnd();
    assert!(before >= 16_000);
    let rto = d.conn.rtt().rto().0 / 1_000_000;
    d.at(600 + rto + 100).write(1000);
    assert_eq!(d.cwnd(), before / 2);
}

/// `bictcp_update`: before any loss, and after a timeout, avoidance adds a segment at least for every twenty.
#[test]
fn without_a_plateau_twenty_segments_add_one() {
    let config = Config { initial_ssthresh: Some(Size(40_000)), ..linux("cubic") };
    let mut d = Dialogue::flying(config, 40);
    let grown: Vec<_> = (2..6).map(|i| d.round(100 * i) / 1000).collect();
    assert!(grown.windows(2).all(|w| (2..=3).contains(&(w[1] - w[0]))), "{grown:?}");
}

/// `tcp_cwnd_validate`: a full window counts as used, even if the peer's window or a repair limits the
/// sender.
#[test]
fn a_window_beyond_the_peers_stops_at_twice_of_it() {
    let mut d = Dialogue::established(Config { initial_window: 10, ..linux("sack") });
    d.write(1_000_000).drain();
    for i in 2..12 {
        d.at(100 * i);
        let (una, next) = (d.conn.scoreboard().una(), d.conn.scoreboard().next());
        for position in (una + 1..=next).filter(|p| (p - 1) % 1000 == 0) {
            d.gets(Seg { ack: Some(position), win: 20_000, ..ACK });
        }
        d.drain();
    }
    assert!((20_000..=41_000).contains(&d.cwnd()), "{}", d.cwnd());
}

/// `tcp_nagle_check`, `tcp_minshall_update`: a short segment waits only while another short one is
/// unacknowledged (Minshall's variant of Nagle's algorithm).
#[test]
fn the_end_of_a_large_write_leaves_with_the_rest() {
    let mut d = Dialogue::established(Config { nagle: true, ..linux("sack") });
    d.write(2500).sends(data(1, 1000)).sends(data(1001, 1000)).sends(data(2001, 500)).silent();
    // the next short segment waits, full ones do not; it is sent when the short one is acknowledged
    d.write(1300).sends(data(2501, 1000)).silent();
    d.at(200).gets(Seg { ack: Some(2001), ..ACK }).silent();
    d.at(201).gets(Seg { ack: Some(2501), ..ACK }).sends_at(201, data(3501, 300)).silent();
}

/// `tcp_minshall_check`: only one small write is in flight at a time, as with Nagle's algorithm.
#[test]
fn one_small_write_is_on_the_way_at_a_time() {
    let mut d = Dialogue::established(Config { nagle: true, ..linux("sack") });
    d.write(300).sends(data(1, 300)).write(200).silent().write(200).silent();
    d.at(200).gets(Seg { ack: Some(301), ..ACK }).sends_at(200, data(301, 400)).silent();
    d.close().sends(Want { flags: Some(Flags::FIN), ..Want::default() });
}

/// `tcp_minshall_update`: a segment shortened by the peer's window counts as short.
#[test]
fn a_segment_cut_by_the_window_is_short() {
    let mut d = Dialogue::answered(Config { nagle: true, ..linux("sack") }, Seg { win: 900, ..SYN_ACK });
    d.write(1000).sends(data(1, 900)).silent();
    d.gets(Seg { win: 5000, ..ACK }).silent();
    d.at(200).gets(Seg { ack: Some(901), win: 5000, ..ACK }).sends_at(200, data(901, 100));
}

/// A Linux host that has sent its first sixteen acknowledgments without delay; 16 kB were read.
fn delaying() -> Dialogue {
    delaying_with("cubic")
}

fn delaying_with(scheme: &str) -> Dialogue {
    let delayed = Some(DelayedAck { count: 2, timeout: Duration::from_millis(40) });
    let mut d = Dialogue::established(Config { delayed_ack: delayed, ..linux(scheme) });
    for k in 0..16 {
        d.gets(Seg { seq: nth(k), len: 1000, ..ACK }).sends(ack(nth(k + 1)));
    }
    d.read(16_000).silent();
    d
}

/// `tcp_cleanup_rbuf`: a short segment is acknowledged when all data was read; a full one is not, unless it
/// has PSH.
#[test]
fn what_was_read_to_the_end_is_acknowledged() {
    let mut d = delaying();
    let (full, short) = (Seg { len: 1000, ..ACK }, Seg { len: 10, ..ACK });
    d.gets(Seg { seq: 16_001, ..full }).read(1000).silent().at(139).silent().at(140).sends(ack(17_001));
    d.gets(Seg { seq: 17_001, ..short }).silent().read(9).silent().read(1).sends(ack(17_011)).silent();
    d.gets(Seg { seq: 17_011, flags: Flags::PSH, ..full }).silent().read(1000).sends(ack(18_011)).silent();
}

/// `__tcp_ack_snd_check`: more than one full segment is acknowledged at once, even if less than two.
#[test]
fn a_full_segment_and_a_byte_are_acknowledged() {
    let mut d = delaying();
    d.gets(Seg { seq: 16_001, len: 1000, ..ACK }).silent();
    d.gets(Seg { seq: 17_001, len: 1, ..ACK }).sends(ack(17_002)).silent();
}

/// `__tcp_ack_snd_check`: after each cumulative acknowledgment three segments beyond a gap are acknowledged at
/// once, and those of the next millisecond together; without SACK all are at once.
#[test]
fn acknowledgments_beyond_a_gap_wait_for_each_other() {
    let mut d = delaying();
    let segment = |k: u64| Seg { seq: nth(k), len: 1000, ..ACK };
    for k in 17..20 {
        d.gets(segment(k)).sends(ack(nth(16)));
    }
    d.gets(segment(20)).gets(segment(21)).silent();
    d.at(101).sends(Want { sack: Some(&[(17_001, 22_001)]), ..ack(nth(16)) }).silent();
    d.gets(segment(22)).silent().gets(segment(16)).sends(ack(nth(23))).silent();
    d.gets(segment(24)).sends(ack(nth(23)));
    let mut d = delaying_with("reno");
    for k in 17..22 {
        d.gets(segment(k)).sends(ack(nth(16)));
    }
}

/// `tcp_event_data_sent`: an end that answers within 40 ms delays the next acknowledgment to send it with
/// data; `tcp_delack_timer_handler`: until a delay ended without data.
#[test]
fn an_end_that_answers_waits_with_its_acknowledgments() {
    let mut d = delaying();
    let short = Seg { len: 10, ..ACK };
    d.gets(Seg { seq: 16_001, ..short }).write(10).sends(Want { ack: Some(16_011), ..data(1, 10) });
    d.read(10).silent();
    d.at(150).gets(Seg { seq: 16_011, ack: Some(11), ..short }).read(10).silent();
    d.at(189).silent().at(190).sends(ack(16_021)); // no data was written
    d.gets(Seg { seq: 16_021, ack: Some(11), ..short }).read(10).sends(ack(16_031));
    // data sent later than that is not an answer
    d.at(240).write(10).sends(data(11, 10)).gets(Seg { seq: 16_031, ack: Some(21), ..short });
    d.read(10).sends(ack(16_041)).silent();
}

/// `tcp_cwnd_validate`, `tcp_slow_start`: packets are counted, not bytes: short segments use the window and
/// grow it like full ones.
#[test]
fn short_segments_count_as_segments() {
    let mut d = Dialogue::established(Config { initial_window: 4, ..linux("sack") });
    for k in 0..4 {
        d.write(100).sends(data(1 + 100 * k, 100));
    }
    assert_eq!(d.cwnd(), 4000);
    d.at(200).gets(Seg { ack: Some(201), ..ACK }).gets(Seg { ack: Some(401), ..ACK }).silent();
    assert_eq!(d.cwnd(), 8000);
}

/// `__tcp_transmit_skb`: the last segment of a burst of several has PSH, one on its own has none.
#[test]
fn the_last_of_a_burst_has_psh() {
    let pushed =
        |d: &mut Dialogue| d.drain().iter().map(|p| p.tcp.flags.has(Flags::PSH)).collect::<Vec<bool>>();
    let config = |of: Config| Config { initial_window: 4, ..of };
    let mut d = Dialogue::established(config(linux("sack")));
    d.write(1_000_000);
    assert_eq!(pushed(&mut d), [false, true, false, true]);
    // the peer's window has room for one more
    d.at(200).gets(Seg { win: 4000, ..acks(1) });
    assert_eq!(pushed(&mut d), [false]);
    d.at(300).gets(Seg { win: 8000, ..acks(5) });
    assert_eq!(pushed(&mut d)[..2], [false, true]);
    let mut d = Dialogue::established(config(plain_with("sack")));
    d.write(1_000_000);
    assert_eq!(pushed(&mut d), [false; 4], "by the RFCs a burst is nothing of its own");
}

/// `tcp_rack_advance`: RACK uses the RTT of the delivered segment with the highest sequence number, though
/// another was sent later.
#[test]
fn racks_round_trip_is_of_the_last_in_sequence() {
    let mut d = Dialogue::established(Config { initial_window: 10, ..linux("sack") });
    d.write(6000).sent(&[0, 1, 2, 3, 4, 5]).at(150).write(4000).sent(&[6, 7, 8, 9]);
    d.at(200).gets(sacks(0, &[(2, 5)])).sent(&[0]);
    // the repair of 0 took 100 ms, 1 was late, after 200: segments sent at 150 are no more than 150 old
    d.at(300).gets(acks(5)).sent(&[]);
    // the last deadline: 150 + 200 + 25, plus 2 for the timer
    d.at(376).sent(&[]).at(377).sends(data(nth(5), 1000));
}
