use super::*;
use bentpipe_base::Seq;

/// Copies leave at equal intervals while no data waits for the pacer; those skipped are not sent later.
#[test]
fn spare_copies_leave_at_the_rate() {
    let mut probes = Probes::new(ProbeSignal::Dsack, 1);
    let clock = ProbeClock::Spare(Duration(100));
    let mut due = |now, waits, last| probes.due(Instant(now), clock, waits, Instant(last));
    assert_eq!(due(1000, false, 1000), Err(Some(Instant(1100))));
    assert_eq!(due(1100, false, 1000), Ok(()));
    assert_eq!(due(1100, false, 1000), Err(Some(Instant(1200))));
    // called late: the next one is due all the same
    assert_eq!((due(1350, false, 1000), due(1350, false, 1000)), (Ok(()), Ok(())));
    assert_eq!(due(1350, false, 1000), Err(Some(Instant(1400))));
    assert_eq!(due(1360, true, 1000), Err(None), "data comes first");
    assert_eq!((due(5000, false, 1400), due(5000, false, 1400)), (Ok(()), Err(Some(Instant(5100)))));
}

fn header(probe: ProbeOption) -> TcpHeader {
    TcpHeader { probe, seq: Seq(1), ..TcpHeader::default() }
}

#[test]
fn each_answer_counts_once() {
    let mut probes = Probes::new(ProbeSignal::Option, 1);
    assert_eq!(probes.sent_copy(Instant::ZERO, 1, 101, 0), ProbeOption::Probe(0));
    let echo = header(ProbeOption::Echo(0));
    let own = ProbeAnswer { probes: 1, own: true, own_dsack: true };
    assert_eq!(probes.claim(&echo, Some((1, 101)), None), own);
    assert_eq!(probes.claim(&echo, None, None), ProbeAnswer { probes: 0, own_dsack: false, ..own });
    // the retransmission arrives after the copy: a DSACK of our own, but no probe
    assert_eq!(
        probes.claim(&header(ProbeOption::None), Some((1, 101)), None),
        ProbeAnswer { probes: 0, ..own }
    );
    // forged, or for something else
    assert_eq!(probes.claim(&header(ProbeOption::Echo(7)), Some((101, 201)), None), ProbeAnswer::default());

    let mut probes = Probes::new(ProbeSignal::Dsack, 1);
    assert_eq!(probes.sent_copy(Instant::ZERO, 1, 101, 0), ProbeOption::None);
    assert_eq!(probes.sent_copy(Instant::ZERO, 1, 101, 0), ProbeOption::None);
    let dsack = |p: &mut Probes| p.claim(&header(ProbeOption::None), Some((1, 101)), None).probes;
    assert_eq!([dsack(&mut probes), dsack(&mut probes), dsack(&mut probes)], [1, 1, 0]);
    assert_eq!((probes.sent(), probes.acknowledged(), probes.lost()), (2, 2, 0));
}

/// A receiver that merges segments reports copies of neighbours in one DSACK.
#[test]
fn one_dsack_may_tell_of_several() {
    let mut probes = Probes::new(ProbeSignal::Dsack, 1);
    for (start, end) in [(1, 101), (101, 201), (101, 201), (301, 401)] {
        probes.sent_copy(Instant::ZERO, start, end, 0);
    }
    let mut claim = |left, right| probes.claim(&header(ProbeOption::None), Some((left, right)), None);
    let own = |probes| ProbeAnswer { probes, own: true, own_dsack: true };
    assert_eq!(claim(1, 201), own(2));
    assert_eq!(claim(101, 201), own(1), "its second copy");
    assert_eq!(claim(1, 201), own(0));
    assert_eq!(claim(201, 301), ProbeAnswer::default());
    assert_eq!((probes.acknowledged(), probes.sent()), (3, 4));
}

#[test]
fn what_is_not_heard_of_in_time_is_lost() {
    let board = Scoreboard::default();
    let mut probes = Probes::new(ProbeSignal::Dsack, 1);
    probes.sent_copy(Instant::ZERO, 1, 101, 0);
    probes.sent_copy(Instant(500), 101, 201, 0);
    probes.claim(&header(ProbeOption::None), Some((101, 201)), None);
    probes.expire(Instant(600), &board, Duration(100));
    assert_eq!((probes.lost(), probes.waits()), (1, true));
    probes.expire(Instant(700), &board, Duration(100));
    assert_eq!((probes.lost(), probes.waits()), (1, false));
}

/// A duplicate ACK that echoes `echo`, at `now` ms; an answer takes 100 ms at least.
fn duplicate(probes: &mut Probes, now: u64, echo: u32) -> (u32, bool) {
    let ms = Duration::from_millis;
    let mut header = header(ProbeOption::None);
    header.timestamps = Some(bentpipe_base::Timestamps { value: 0, echo });
    let bare = DuplicateAck { now: Instant::ZERO + ms(now), min_age: ms(100), max_age: ms(300) };
    let claim = probes.claim(&header, None, Some(bare));
    (claim.probes, claim.own)
}

/// Copies at 2, 3 and 4 ms, data at 1 and 3 ms.
fn stamped() -> Probes {
    let mut probes = Probes::new(ProbeSignal::Timestamps, 1);
    probes.data_timestamp_sent(1);
    assert!(probes.is_taken(1) && !probes.is_taken(2));
    for ms in 2..5 {
        probes.sent_copy(Instant::ZERO + Duration::from_millis(ms), 1, 101, ms as u32);
        assert!(probes.is_taken(ms as u32));
        if ms == 3 {
            probes.data_timestamp_sent(3);
        }
    }
    probes
}

/// Each copy is identified once, by a timestamp of its own; a repeated echo is a sign of loss.
#[test]
fn an_echo_names_a_copy() {
    let mut probes = stamped();
    assert_eq!(duplicate(&mut probes, 102, 2), (1, true));
    assert_eq!(duplicate(&mut probes, 103, 3), (0, true), "of the copy or of the data");
    assert_eq!(duplicate(&mut probes, 104, 4), (1, true));
    assert_eq!(duplicate(&mut probes, 105, 4), (0, false), "what arrives beyond a hole echoes the last");
    let new_data = probes.claim(&header(ProbeOption::None), None, None);
    assert_eq!((new_data, probes.acknowledged()), (ProbeAnswer::default(), 2));
}

/// A receiver that follows RFC 7323, section 5.3, echoes the data's timestamp: one duplicate ACK for each
/// copy is no sign of loss, unless it is too early, too late, or a later copy was answered.
#[test]
fn an_echo_that_names_none_is_put_down_to_a_copy() {
    let mut probes = stamped();
    let strict = [102, 103, 104, 105].map(|now| duplicate(&mut probes, now, 1));
    assert_eq!((strict, probes.acknowledged()), ([(0, true), (0, true), (0, true), (0, false)], 0));
    assert_eq!(duplicate(&mut stamped(), 101, 1), (0, false));
    assert_eq!(duplicate(&mut stamped(), 305, 1), (0, false));
    let mut probes = stamped();
    assert_eq!([duplicate(&mut probes, 104, 4), duplicate(&mut probes, 105, 4)], [(1, true), (0, false)]);
}

/// Signals in order of preference: option, DSACK, timestamps; these only for probes, while no loss is
/// repaired.
#[test]
fn signals_in_their_order() {
    let config = crate::Config::default();
    let all = NegotiatedOptions {
        probe_option: true,
        sack: true,
        timestamps: true,
        ..NegotiatedOptions::none(&config)
    };
    let [dsack, stamps] = [
        NegotiatedOptions { probe_option: false, ..all },
        NegotiatedOptions { probe_option: false, sack: false, ..all },
    ];
    let none = NegotiatedOptions { timestamps: false, ..stamps };
    assert_eq!(
        [all, dsack, stamps, none].map(|a| Probes::signal_of(&a, true)),
        [ProbeSignal::Option, ProbeSignal::Dsack, ProbeSignal::Timestamps, ProbeSignal::None]
    );
    assert_eq!(
        [all, dsack, stamps, none].map(|a| Probes::signal_of(&a, false)),
        [ProbeSignal::Dsack, ProbeSignal::Dsack, ProbeSignal::None, ProbeSignal::None]
    );
    let of = |signal, episode| Probes::new(signal, 1).signal_during(episode);
    assert_eq!(of(ProbeSignal::Timestamps, Episode::Open), ProbeSignal::Timestamps);
    assert_eq!(of(ProbeSignal::Timestamps, Episode::Fast), ProbeSignal::None);
    assert_eq!(of(ProbeSignal::Dsack, Episode::Fast), ProbeSignal::Dsack);
}
