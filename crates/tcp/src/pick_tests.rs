use super::*;
use crate::board::AckSummary;
use crate::delivery::{DeliveryRate, Snapshot};
use bentpipe_base::Instant;

fn push(board: &mut Scoreboard, end: u64) {
    board.push(end, Instant::ZERO, Snapshot::default());
}

fn acknowledge(board: &mut Scoreboard, ack: u64) {
    board.acknowledge(ack, &mut DeliveryRate::default(), &mut AckSummary::default());
}

fn sack(board: &mut Scoreboard, left: u64, right: u64) {
    board.sack(left, right, &mut DeliveryRate::default(), &mut AckSummary::default());
}

/// `count` segments of 100 B, the SYN acknowledged.
fn segments(count: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    push(&mut board, 1);
    for k in 0..count {
        push(&mut board, 101 + 100 * k);
    }
    acknowledge(&mut board, 1);
    board
}

/// Ten segments of 100 B, of which the third to fifth are SACKed.
fn board() -> Scoreboard {
    let mut board = segments(10);
    sack(&mut board, 201, 501);
    board
}

fn choose(pick: &mut CopySelector, carry: ProbeCarry, count: usize) -> Vec<u64> {
    let board = board();
    let take = |_| {
        let (start, end) = pick.choose(&board, carry, 1000).expect("there is data");
        assert!(end - start == 100 || (start, end) == (901, 1000), "the end of the data is not copied");
        start / 100
    };
    (0..count).map(take).collect()
}

#[test]
fn what_a_probe_copies() {
    let new = || CopySelector::new(1);
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
        first[choose(&mut CopySelector::new(seed), ProbeCarry::Random, 1)[0] as usize] += 1;
    }
    assert!(open.iter().all(|k| (860..1140).contains(&first[*k as usize])), "{first:?}");
}

/// Segments sent between two choices are as likely as those left from before: after three of eight, and with
/// three more, each of the eight left is chosen one time in eight.
#[test]
fn later_segments_are_no_more_likely_than_earlier_ones() {
    let mut times = [0; 8];
    for seed in 0..8000 {
        let mut pick = CopySelector::new(seed);
        let mut board = segments(8);
        let mut next =
            |board: &Scoreboard| pick.choose(board, ProbeCarry::Random, u64::MAX).map(|c| c.0 / 100);
        let taken: Vec<_> = (0..3).filter_map(|_| next(&board)).collect();
        for k in 8..11 {
            push(&mut board, 101 + 100 * k);
        }
        let left: Vec<_> = (0..11).filter(|k| !taken.contains(k)).collect();
        let fourth = next(&board).and_then(|k| left.iter().position(|l| *l == k));
        times[fourth.expect("one not copied yet")] += 1;
    }
    assert!(times.iter().all(|t| (880..1120).contains(t)), "{times:?}");
}

/// A window of 100 000 segments, all copied twice: a choice that looks at each of them would take minutes.
#[test]
fn a_large_window_costs_no_more() {
    const COUNT: u64 = 100_000;
    let (board, mut pick) = (segments(COUNT), CopySelector::new(1));
    for _ in 0..2 {
        let mut seen = vec![false; COUNT as usize];
        for _ in 0..COUNT {
            let (start, _) = pick.choose(&board, ProbeCarry::Random, u64::MAX).expect("there is data");
            assert!(
                !core::mem::replace(&mut seen[(start / 100) as usize], true),
                "each once before any twice"
            );
        }
    }
}

/// Acknowledged, SACKed or empty segments are never chosen; of a partly acknowledged one only the rest is
/// copied.
#[test]
fn what_has_arrived_is_forgotten() {
    let (mut board, mut pick) = (segments(1000), CopySelector::new(1));
    assert!(pick.choose(&board, ProbeCarry::Random, u64::MAX).is_some());
    sack(&mut board, 99_801, 99_901);
    acknowledge(&mut board, 99_701);
    let mut next = || pick.choose(&board, ProbeCarry::Random, u64::MAX);
    for _ in 0..2 {
        let mut pair = [next(), next()];
        pair.sort_unstable();
        assert_eq!(pair, [Some((99_701, 99_801)), Some((99_901, 100_001))]);
    }
    assert_eq!(pick.held, 2, "the rest was thrown away as it was drawn");
    let (mut board, mut pick) = (segments(1000), CopySelector::new(1));
    assert!(pick.choose(&board, ProbeCarry::Random, u64::MAX).is_some());
    acknowledge(&mut board, 99_951);
    pick.prune(&board);
    assert_eq!(pick.held, 1);
    assert_eq!(pick.choose(&board, ProbeCarry::Random, u64::MAX), Some((99_951, 100_001)));
}

/// A FIN alone is not copied: `LastSent` copies the last segment before it, the others never choose it. With
/// nothing else there is nothing to copy.
#[test]
fn a_fin_alone_is_never_copied() {
    for carry in [ProbeCarry::LastSent, ProbeCarry::OldestInTurn, ProbeCarry::Random, ProbeCarry::NewestOnce]
    {
        let (mut board, mut pick) = (segments(2), CopySelector::new(1));
        push(&mut board, 202);
        let count = if carry == ProbeCarry::NewestOnce { 2 } else { 20 };
        for _ in 0..count {
            let (start, end) = pick.choose(&board, carry, 201).expect("there is data");
            assert!(end == start + 100 && (carry != ProbeCarry::LastSent || end == 201), "{carry:?}");
        }
        acknowledge(&mut board, 201);
        assert_eq!(pick.choose(&board, carry, 201), None, "{carry:?}");
    }
}

/// Newest first, each once. Segments sent later come before those left; acknowledged ones are forgotten.
#[test]
fn each_once_the_newest_first() {
    let mut pick = CopySelector::new(1);
    assert_eq!(choose(&mut pick, ProbeCarry::NewestOnce, 3), [9, 8, 7]);
    let mut later = board();
    push(&mut later, 1101);
    push(&mut later, 1102); // a FIN: no data
    let mut next = || pick.choose(&later, ProbeCarry::NewestOnce, 1101);
    let picked: Vec<_> = core::iter::from_fn(&mut next).map(|(start, _)| start / 100).collect();
    assert_eq!(picked, [10, 6, 5, 1, 0]);
    assert_eq!(next(), None);
    acknowledge(&mut later, 1102);
    pick.prune(&later);
    assert!(pick.done.is_empty());
}
