//! Options: what the SYNs offer, what is agreed, and its effects. Each option can be absent.

use crate::script::{ACK, Dialogue, RST, SYN, SYN_ACK, Seg, Want, ack, data, fin, plain, syn, syn_ack};
use bentpipe_base::{Flags, Size, Timestamps};
use bentpipe_tcp::{Config, DelayedAck, Event, Options, ReceiveBuffer, Stack, State};

/// Every option; the buffer needs a shift of 3.
fn modern() -> Config {
    let options = Options { mss: true, window_scale: true, sack: true, timestamps: true };
    Config { options, receive_buffer: ReceiveBuffer::Fixed(Size(65_535 << 3)), ..plain() }
}

fn stamped() -> Config {
    let mut config = plain();
    config.options.timestamps = true;
    config
}

fn sacking() -> Config {
    let mut config = plain();
    config.options.sack = true;
    config
}

fn scaling() -> Config {
    let mut config = modern();
    config.options = Options { mss: true, window_scale: true, sack: false, timestamps: false };
    config
}

/// RFC 9293, section 3.7.1: the largest segment is the smaller of the peer's MSS and ours.
#[test]
fn the_mss_of_the_peer_is_honoured() {
    for (mine, theirs, segment) in [(1000, 700, 700), (600, 1000, 600)] {
        let mut d = Dialogue::answered(Config { mss: mine, ..plain() }, Seg { mss: Some(theirs), ..SYN_ACK });
        d.write(2000).sends(data(1, segment)).sends(data(1 + u64::from(segment), segment));
    }
}

/// RFC 9293, section 3.7.1: without an MSS option segments have 536 bytes.
#[test]
fn without_an_mss_option_it_is_536() {
    let mut d = Dialogue::answered(plain(), Seg { mss: None, ..SYN_ACK });
    d.write(2000).sends(data(1, 536)).sends(data(537, 536));
    let mut d = Dialogue::accept(plain(), Seg { mss: None, ..SYN });
    d.sends(syn_ack()).gets(ACK).write(2000).sends(data(1, 536));
}

/// RFC 9293, section 3.7.1, RFC 7323 and RFC 2018: the SYN offers exactly the configured options.
#[test]
fn the_syn_offers_what_is_configured() {
    for bits in 0..16u8 {
        let on = |bit: u8| bits & (1 << bit) != 0;
        let options = Options { mss: on(0), window_scale: on(1), sack: on(2), timestamps: on(3) };
        let mut d = Dialogue::connect(Config { options, ..modern() });
        let (_, p) = d.take();
        assert_eq!(p.tcp.mss, on(0).then_some(1000));
        assert_eq!(p.tcp.window_scale, on(1).then_some(3));
        assert_eq!(p.tcp.sack_permitted, on(2));
        assert_eq!(p.tcp.timestamps, on(3).then_some(Timestamps { value: 0, echo: 0 }));
    }
}

/// RFC 7323, sections 1.3 and 2.2, RFC 2018, section 2: a SYN/ACK carries an option only if the SYN did.
#[test]
fn the_syn_ack_carries_only_what_was_offered() {
    for bits in 0..8u8 {
        let on = |bit: u8| bits & (1 << bit) != 0;
        let (scale, sack_ok, ts) = (on(0).then_some(7), on(1), on(2).then_some((50, 0)));
        let mut d = Dialogue::accept(modern(), Seg { ts, scale, sack_ok, ..SYN });
        let (_, p) = d.take();
        assert_eq!((p.tcp.mss, p.tcp.window_scale), (Some(1000), on(0).then_some(3)));
        assert_eq!((p.tcp.sack_permitted, p.tcp.window), (on(1), 65_535));
        assert_eq!(p.tcp.timestamps, on(2).then_some(Timestamps { value: 0, echo: 50 }));
    }
}

/// An old host answers every SYN without options, and the connection uses none.
#[test]
fn an_old_host_uses_no_option() {
    let options = Options { mss: false, window_scale: false, sack: false, timestamps: false };
    let mut d = Dialogue::accept(
        Config { options, ..modern() },
        Seg { scale: Some(7), sack_ok: true, ts: Some((50, 0)), ..SYN },
    );
    let (_, p) = d.take();
    assert_eq!(
        (p.tcp.mss, p.tcp.window_scale, p.tcp.sack_permitted, p.tcp.timestamps),
        (None, None, false, None)
    );
    d.gets(ACK).gets(Seg { seq: 1001, len: 1000, ..ACK }).sends(Want {
        sack: Some(&[]),
        ts: Some(None),
        ..ack(1)
    });
    d.write(1000).sends(data(1, 1000));
}

/// RFC 7323, section 2.2: with window scale on both SYNs windows are shifted, except on the SYNs themselves.
#[test]
fn windows_are_scaled_when_both_offer() {
    let config = Config { initial_window: 20, ..scaling() };
    let mut d = Dialogue::connect(config);
    let (_, p) = d.take();
    assert_eq!((p.tcp.window, p.tcp.window_scale), (65_535, Some(3)));
    d.at(100).gets(Seg { win: 2000, scale: Some(2), ..SYN_ACK });
    d.sends(Want { win: Some(65_535), ..ack(1) }); // 65 535 << 3
    d.write(10_000).sends(data(1, 1000)).sends(data(1001, 1000)).silent(); // 2000, not 2000 << 2
    d.gets(Seg { ack: Some(2001), win: 1000, ..ACK });
    for i in 2..6 {
        d.sends(data(1 + i * 1000, 1000));
    }
    d.silent(); // 1000 << 2
    d.gets(Seg { len: 800, ack: Some(6001), ..ACK }).sends(Want {
        ack: Some(801),
        win: Some(65_435),
        ..Want::default()
    });
}

/// RFC 7323, section 2.2: if only one end offers window scale, no window is scaled.
#[test]
fn windows_are_not_scaled_when_one_offers() {
    let mut d = Dialogue::answered(scaling(), SYN_ACK);
    d.gets(Seg { len: 1000, win: 2000, ..ACK }).sends(Want { win: Some(64_535), ..ack(1001) });
    d.write(10_000).sends(data(1, 1000)).sends(data(1001, 1000)).silent();
    let mut d = Dialogue::answered(plain(), Seg { scale: Some(2), ..SYN_ACK });
    d.gets(Seg { len: 1000, win: 2000, ..ACK }).sends(Want { win: Some(64_000), ..ack(1001) });
    d.write(10_000).sends(data(1, 1000)).sends(data(1001, 1000)).silent();
}

/// RFC 7323, section 2.3: a shift above 14 is taken as 14.
#[test]
fn a_shift_above_14_counts_as_14() {
    let mut d =
        Dialogue::answered(Config { initial_window: 40, ..scaling() }, Seg { scale: Some(15), ..SYN_ACK });
    d.gets(Seg { win: 1, ..ACK }).write(40_000);
    for i in 0..16 {
        d.sends(data(1 + i * 1000, 1000));
    }
    d.silent(); // 16 384, not 32 768
}

/// RFC 2018, section 2: SACK blocks are sent only if both SYNs permitted them.
#[test]
fn sack_needs_both() {
    let hole = Seg { seq: 1001, len: 1000, ..ACK };
    let mut d = Dialogue::answered(sacking(), Seg { sack_ok: true, ..SYN_ACK });
    d.gets(hole).sends(Want { sack: Some(&[(1001, 2001)]), ..ack(1) });
    let mut d = Dialogue::answered(sacking(), SYN_ACK);
    d.gets(hole).sends(Want { sack: Some(&[]), ..ack(1) });
    let mut d = Dialogue::answered(plain(), Seg { sack_ok: true, ..SYN_ACK });
    d.gets(hole).sends(Want { sack: Some(&[]), ..ack(1) });
}

/// RFC 7323, section 3.2: once agreed, every segment has timestamps; they use 12 bytes of its payload (RFC
/// 6691).
#[test]
fn timestamps_stand_on_every_segment() {
    let mut d = Dialogue::connect(stamped());
    d.sends(Want { ts: Some(Some((0, 0))), ..syn() });
    d.at(100).gets(Seg { ts: Some((7, 0)), ..SYN_ACK }).sends(Want { ts: Some(Some((100, 7))), ..ack(1) });
    d.at(150).write(1000).sends(Want { ts: Some(Some((150, 7))), ..data(1, 988) });
    d.sends(Want { ts: Some(Some((150, 7))), ..data(989, 12) });
    d.at(160).gets(Seg { ack: Some(1001), ts: Some((9, 150)), ..ACK });
    d.close().sends(Want { ts: Some(Some((160, 9))), ..fin(1001) });
    d.at(1160).sends(Want { ts: Some(Some((1160, 9))), ..fin(1001) }).silent();
}

/// RFC 7323, section 3.2: if only one end offers timestamps, they are not used.
#[test]
fn timestamps_need_both() {
    let mut d = Dialogue::answered(stamped(), SYN_ACK);
    d.write(1000).sends(Want { ts: Some(None), ..data(1, 1000) });
    let mut d = Dialogue::answered(plain(), Seg { ts: Some((7, 0)), ..SYN_ACK });
    d.write(1000).sends(Want { ts: Some(None), ..data(1, 1000) });
}

/// RFC 7323, section 4.3: a segment beyond Last.ACK.sent does not change the echoed timestamp; the one that
/// fills the gap does.
#[test]
fn an_out_of_order_segment_is_not_echoed() {
    let mut d = Dialogue::established(stamped());
    d.gets(Seg { seq: 1001, len: 1000, ts: Some((50, 0)), ..ACK })
        .sends(Want { ts: Some(Some((100, 1))), ..ack(1) });
    d.gets(Seg { seq: 1, len: 1000, ts: Some((60, 0)), ..ACK })
        .sends(Want { ts: Some(Some((100, 60))), ..ack(2001) });
}

/// RFC 7323, section 4.3: with delayed ACKs the timestamp of the first unacknowledged segment is echoed.
#[test]
fn a_delayed_ack_echoes_the_first_segment() {
    let delayed_ack = Some(DelayedAck { count: 2, timeout: bentpipe_base::Duration::from_millis(40) });
    let mut d = Dialogue::established(Config { delayed_ack, ..stamped() });
    d.gets(Seg { len: 988, ts: Some((10, 0)), ..ACK }).silent();
    d.gets(Seg { seq: 989, len: 988, ts: Some((20, 0)), ..ACK })
        .sends(Want { ts: Some(Some((100, 10))), ..ack(1977) });
}

/// RFC 7323, section 5.3: a segment with an old timestamp is dropped and acknowledged.
#[test]
fn an_old_timestamp_is_dropped() {
    let mut d = Dialogue::established(stamped());
    d.gets(Seg { len: 100, ts: Some((10, 0)), ..ACK }).sends(ack(101));
    d.gets(Seg { seq: 101, len: 100, ts: Some((9, 0)), ..ACK })
        .sends(Want { ts: Some(Some((100, 10))), ..ack(101) });
    d.silent();
    assert_eq!(d.conn.readable(), 100);
    // the timestamp clock may stand still, and it wraps
    d.gets(Seg { seq: 101, len: 100, ts: Some((10, 0)), ..ACK }).sends(ack(201));
    d.gets(Seg { seq: 201, len: 100, ts: Some((1 << 31, 0)), ..ACK }).sends(ack(301));
    d.gets(Seg { seq: 301, len: 100, ts: Some((3 << 30, 0)), ..ACK }).sends(ack(401));
    d.gets(Seg { seq: 401, len: 100, ts: Some((5, 0)), ..ACK }).sends(ack(501));
}

/// RFC 2883: a duplicate dropped for its old timestamp is reported in a DSACK, as by Linux's
/// `tcp_send_dupack`: a low-priority probe may arrive after newer data and can be recognised only this way.
/// Data that never arrived is not reported.
#[test]
fn old_text_with_an_old_timestamp_draws_a_dsack() {
    let mut config = stamped();
    config.options.sack = true;
    let mut d = Dialogue::established(config);
    d.gets(Seg { len: 100, ts: Some((10, 0)), ..ACK }).sends(ack(101));
    d.gets(Seg { seq: 101, len: 100, ts: Some((20, 0)), ..ACK }).sends(ack(201));
    d.gets(Seg { seq: 1, len: 100, ts: Some((15, 0)), ..ACK }).sends(Want {
        sack: Some(&[(1, 101)]),
        ts: Some(Some((100, 20))),
        ..ack(201)
    });
    for seq in [151, 201] {
        d.gets(Seg { seq, len: 100, ts: Some((15, 0)), ..ACK }).sends(Want { sack: Some(&[]), ..ack(201) });
    }
    d.silent();
    assert_eq!(d.conn.readable(), 200);
}

/// Linux's `tcp_sequence` and `tcp_replace_ts_recent`: a duplicate of the newest acknowledged segment updates
/// the echoed timestamp, an older one does not. By RFC 7323, section 5.3, neither does.
#[test]
fn linux_echoes_what_repeats_the_newest_segment() {
    for (stack, echo) in [(Stack::Linux, 30), (Stack::Rfc, 20)] {
        let mut d = Dialogue::established(Config { stack, ..stamped() });
        d.gets(Seg { len: 100, ts: Some((10, 0)), ..ACK }).sends(ack(101));
        d.gets(Seg { seq: 101, len: 100, ts: Some((20, 0)), ..ACK }).sends(ack(201));
        d.gets(Seg { len: 100, ts: Some((25, 0)), ..ACK })
            .sends(Want { ts: Some(Some((100, 20))), ..ack(201) });
        let newest = Seg { seq: 101, len: 100, ts: Some((30, 0)), ..ACK };
        d.gets(newest).sends(Want { ts: Some(Some((100, echo))), ..ack(201) }).silent();
    }
}

/// RFC 7323, section 3.2: once timestamps are agreed, a segment without them is dropped silently, except a
/// RST, and a SYN, which may belong to a new connection and causes a challenge ACK (RFC 5961, section 4.2).
#[test]
fn a_segment_without_timestamps_is_dropped() {
    let mut d = Dialogue::established(stamped());
    d.write(988).sends(data(1, 988));
    d.gets(Seg { len: 100, ack: Some(989), ..ACK }).silent();
    assert_eq!((d.conn.readable(), d.conn.unacknowledged()), (0, 988));
    d.gets(Seg { seq: 50, ..SYN }).sends(ack(1)).silent();
    d.gets(RST);
    assert_eq!(d.conn.state(), State::Closed);
}

/// RFC 7323, section 5.2: a RST is not subject to PAWS.
#[test]
fn an_old_timestamp_does_not_save_from_a_rst() {
    let mut d = Dialogue::established(stamped());
    d.gets(Seg { len: 100, ts: Some((10, 0)), ..ACK }).sends(ack(101));
    d.gets(Seg { seq: 101, ts: Some((2, 0)), ..RST }).silent();
    assert_eq!((d.conn.state(), d.event()), (State::Closed, Some(Event::Reset)));
}

/// RFC 7323, section 5.5: after 24 days without a segment an old timestamp is accepted.
#[test]
fn after_24_days_an_old_timestamp_is_believed() {
    const DAY: u64 = 24 * 3600 * 1000;
    for (days, taken) in [(23, 0), (25, 100)] {
        let mut d = Dialogue::established(stamped());
        d.gets(Seg { ts: Some((10, 0)), ..ACK }).silent();
        d.at(days * DAY).gets(Seg { len: 100, ts: Some((9, 0)), ..ACK }).sends(ack(1 + taken)).silent();
        assert_eq!(d.conn.readable(), taken);
    }
}

/// RFC 5961, section 5.2, and RFC 7323, section 4.3: a segment rejected for its acknowledgment does not
/// update the timestamp. Otherwise one forged segment would make PAWS drop all that the peer sends. In a
/// Linux host (`tcp_ack`) this also applies to data that has arrived before.
#[test]
fn a_refused_segment_gives_no_timestamp() {
    for stack in [Stack::Rfc, Stack::Linux] {
        let mut d = Dialogue::established(Config { stack, ..stamped() });
        for refused in [2, 1 << 31, (1 << 32) - 70_000] {
            d.gets(Seg { len: 100, ack: Some(refused), ts: Some((1 << 20, 0)), ..ACK })
                .sends(Want { ts: Some(Some((100, 1))), ..ack(1) })
                .silent();
        }
        d.gets(Seg { len: 100, ts: Some((20, 0)), ..ACK })
            .sends(Want { ts: Some(Some((100, 20))), ..ack(101) });
        for refused in [2, 1 << 31, (1 << 32) - 70_000] {
            d.gets(Seg { len: 100, ack: Some(refused), ts: Some((1 << 20, 0)), ..ACK })
                .sends(Want { ts: Some(Some((100, 20))), ..ack(101) })
                .silent();
        }
        d.gets(Seg { seq: 101, len: 100, ts: Some((21, 0)), ..ACK })
            .sends(Want { ts: Some(Some((100, 21))), ..ack(201) })
            .silent();
        assert_eq!(d.conn.readable(), 200);
    }
}

/// The same in SYN-RECEIVED (RFC 9293, section 3.10.7.4, fifth check): a wrong acknowledgment causes a RST
/// and changes nothing.
#[test]
fn a_refused_answer_to_a_syn_ack_gives_no_timestamp() {
    for stack in [Stack::Rfc, Stack::Linux] {
        let mut d = Dialogue::accept(Config { stack, ..stamped() }, Seg { ts: Some((5, 0)), ..SYN });
        d.sends(Want { ts: Some(Some((0, 5))), ..syn_ack() });
        d.gets(Seg { ack: Some(7), ts: Some((1 << 20, 0)), ..ACK });
        d.sends(Want { seq: Some(7), flags: Some(Flags::RST), ..Want::default() }).silent();
        d.gets(Seg { len: 100, ts: Some((6, 0)), ..ACK }).sends(Want { ts: Some(Some((0, 6))), ..ack(101) });
        assert_eq!(d.conn.state(), State::Established);
    }
}

/// RFC 7323, section 3.2: a RST of a connection that agreed on timestamps carries them.
#[test]
fn a_reset_carries_timestamps() {
    for stack in [Stack::Rfc, Stack::Linux] {
        let mut d = Dialogue::established(Config { stack, ..stamped() });
        d.gets(Seg { len: 100, ts: Some((10, 0)), ..ACK }).sends(ack(101)).at(250);
        d.with(|c, _| c.abort());
        d.sends(Want { ts: Some(Some((250, 10))), flags: Some(Flags::RST), ..Want::default() }).silent();
        let mut d = Dialogue::established(Config { stack, ..plain() });
        d.with(|c, _| c.abort());
        d.sends(Want { ts: Some(None), flags: Some(Flags::RST), ..Want::default() }).silent();
    }
}

/// RFC 7323, section 4.1: an echo gives a plausible RTT only: none from the future or older than any timeout,
/// and at least one tick.
#[test]
fn an_echo_that_cannot_be_gives_no_round_trip() {
    for (echo, sample) in [(2000, None), (1 << 30, None), (1 << 31, None), (1101, Some(299)), (1400, Some(1))]
    {
        let mut d = Dialogue::established(stamped());
        d.write(988).drain();
        d.at(1400).drain(); // retransmitted at 1100
        let before = d.conn.stats().rtt.count();
        d.gets(Seg { ack: Some(989), ts: Some((2, echo)), ..ACK });
        assert_eq!(d.conn.unacknowledged(), 0);
        let taken = (d.conn.stats().rtt.count() > before).then(|| d.conn.rtt().latest().0 / 1_000_000);
        assert_eq!(taken, sample, "{echo}");
    }
}
