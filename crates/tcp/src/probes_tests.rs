use super::*;
use bentpipe_base::Seq;

/// At equal intervals while nothing waits for its pace; afterwards nothing is caught up.
#[test]
fn spare_copies_leave_at_the_rate() {
    let mut probes = Probes::new(false, true, 1);
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
    let mut probes = Probes::new(true, true, 1);
    assert_eq!(probes.sent_copy(Instant::ZERO, 1, 101), ProbeOption::Probe(0));
    let echo = header(ProbeOption::Echo(0));
    let own = Claim { probes: 1, own: true, own_dsack: true };
    assert_eq!(probes.claim(&echo, Some((1, 101))), own);
    assert_eq!(probes.claim(&echo, None), Claim { probes: 0, own_dsack: false, ..own });
    // the retransmission arrives after the copy did: our doing, and no probe
    assert_eq!(probes.claim(&header(ProbeOption::None), Some((1, 101))), Claim { probes: 0, ..own });
    // forged, or of something else
    assert_eq!(probes.claim(&header(ProbeOption::Echo(7)), Some((101, 201))), Claim::default());

    let mut probes = Probes::new(false, true, 1);
    assert_eq!(probes.sent_copy(Instant::ZERO, 1, 101), ProbeOption::None);
    assert_eq!(probes.sent_copy(Instant::ZERO, 1, 101), ProbeOption::None);
    let dsack = |p: &mut Probes| p.claim(&header(ProbeOption::None), Some((1, 101))).probes;
    assert_eq!([dsack(&mut probes), dsack(&mut probes), dsack(&mut probes)], [1, 1, 0]);
    assert_eq!((probes.sent(), probes.acknowledged(), probes.lost()), (2, 2, 0));
}

#[test]
fn what_is_not_heard_of_in_time_is_lost() {
    let board = Scoreboard::default();
    let mut probes = Probes::new(false, true, 1);
    probes.sent_copy(Instant::ZERO, 1, 101);
    probes.sent_copy(Instant(500), 101, 201);
    probes.claim(&header(ProbeOption::None), Some((101, 201)));
    probes.tidy(Instant(600), &board, Duration(100));
    assert_eq!((probes.lost(), probes.waits()), (1, true));
    probes.tidy(Instant(700), &board, Duration(100));
    assert_eq!((probes.lost(), probes.waits()), (1, false));
    assert_eq!(Probes::new(false, false, 1).signal(), ProbeSignal::None);
}
