use super::*;
use crate::delivery::Snapshot;
use bentpipe_base::Seq;

/// Ten segments of 100 B, of which the third to fifth are SACKed.
fn board() -> Scoreboard {
    let mut board = Scoreboard::default();
    let mut rate = crate::delivery::DeliveryRate::default();
    let mut digest = crate::board::Digest::default();
    board.push(1, Instant::ZERO, Snapshot::default(), 0);
    for k in 0..10 {
        board.push(101 + 100 * k, Instant::ZERO, Snapshot::default(), 0);
    }
    board.acknowledge(1, Instant::ZERO, &mut rate, &mut digest);
    board.sack(201, 501, Instant::ZERO, &mut rate, &mut digest);
    board
}

fn choose(probes: &mut Probes, carry: ProbeCarry, count: usize) -> Vec<u64> {
    let board = board();
    let pick = |_| {
        let (start, end) = probes.choose(&board, carry, 1000).expect("there is data");
        probes.sent_copy(Instant::ZERO, start, end);
        assert!(end - start == 100 || (start, end) == (901, 1000), "the end of the data is not copied");
        start / 100
    };
    (0..count).map(pick).collect()
}

#[test]
fn what_a_probe_copies() {
    let new = || Probes::new(true, true, 1);
    assert_eq!(choose(&mut new(), ProbeCarry::LastSent, 3), [9, 9, 9]);
    assert_eq!(choose(&mut new(), ProbeCarry::OldestInTurn, 9), [0, 1, 5, 6, 7, 8, 9, 0, 1]);
    let picked = choose(&mut new(), ProbeCarry::Random, 14);
    let open = [0, 1, 5, 6, 7, 8, 9];
    for half in [&picked[..7], &picked[7..]] {
        let mut sorted = half.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, open, "each once before any twice");
    }
    assert_ne!(picked[..7], open, "not in order");
    assert_ne!(picked[..7], picked[7..], "nor the same twice");
    // uniform: each of the seven is the first about one time in seven
    let mut first = [0; 10];
    for seed in 0..7000 {
        first[choose(&mut Probes::new(true, true, seed), ProbeCarry::Random, 1)[0] as usize] += 1;
    }
    assert!(open.iter().all(|k| (860..1140).contains(&first[*k as usize])), "{first:?}");
}

/// Newest first, each once; what is sent later comes before what is left, and what is acknowledged is forgotten.
#[test]
fn each_once_the_newest_first() {
    let mut probes = Probes::new(false, true, 1);
    assert_eq!(choose(&mut probes, ProbeCarry::NewestOnce, 3), [9, 8, 7]);
    let mut later = board();
    later.push(1101, Instant::ZERO, Snapshot::default(), 0);
    later.push(1102, Instant::ZERO, Snapshot::default(), 0); // a FIN: no data
    let mut next = || probes.choose(&later, ProbeCarry::NewestOnce, 1101);
    let picked: Vec<_> = core::iter::from_fn(&mut next).map(|(start, _)| start / 100).collect();
    assert_eq!(picked, [10, 6, 5, 1, 0]);
    assert_eq!(next(), None);
    probes.tidy(Instant::ZERO, 1102, Duration(100));
    assert!(probes.done.is_empty());
}

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
    let mut probes = Probes::new(false, true, 1);
    probes.sent_copy(Instant::ZERO, 1, 101);
    probes.sent_copy(Instant(500), 101, 201);
    probes.claim(&header(ProbeOption::None), Some((101, 201)));
    probes.tidy(Instant(600), 101, Duration(100));
    assert_eq!((probes.lost(), probes.waits()), (1, true));
    probes.tidy(Instant(700), 201, Duration(100));
    assert_eq!((probes.lost(), probes.waits()), (1, false));
    assert_eq!(Probes::new(false, false, 1).signal(), ProbeSignal::None);
}
