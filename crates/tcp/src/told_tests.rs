//! What is told n times at once leaves the state that telling it call by call leaves.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use super::*;
use crate::config::{RtoConfig, Stack};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

/// One repetition of a sender with a window of `window` segments: each acknowledgment of one or more segments
/// lets as many leave. `acks` say how many segments each acknowledges.
struct Repetition {
    lists: Lists,
    /// Where it ends.
    place: Place,
    step: Distance,
}

fn repetition(mss: u64, window: u64, acks: &[u64], rtts: &[u64]) -> Repetition {
    checked_repetition(mss, window, acks, rtts, Checks::None)
}

/// What is asked about the use of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Checks {
    None,
    /// Whether it is validated, with each acknowledgment; the window has so many segments.
    Validated(u64),
    /// That, and whether it was not for too long.
    Expired(u64),
}

fn checked_repetition(mss: u64, window: u64, acks: &[u64], rtts: &[u64], checks: Checks) -> Repetition {
    let start = Instant::ZERO + Duration::from_secs(100);
    let (mut una, mut now) = (1 + 1000 * mss, start);
    let first = una;
    let mut calls = Calls(Some(Box::default()));
    for (i, segments) in acks.iter().enumerate() {
        now += MS * 7;
        una += segments * mss;
        let rtt = MS * rtts[i % rtts.len()];
        let before = una + (window - segments) * mss;
        calls.note(Timing::RoundTrip {
            rtt,
            una,
            next: before,
            per_round: (window * mss, 2 * mss),
            seen: None,
        });
        calls.note(Timing::NoProbe { now });
        calls.note(Timing::Restart { now, stops: i % 5 == 4 });
        if i % 3 > 0 {
            calls.note(Timing::Probe { now, more: MS * 2 });
        }
        if let Checks::Validated(cwnd) | Checks::Expired(cwnd) = checks {
            calls.note(Check::Validated { now, cwnd: cwnd * mss, answer: None });
        }
        calls.note(Acked { una, next: before, bytes: segments * mss });
        calls.note(Use::Limited { cwnd: 3 * window * mss, slow_start: true, answer: false });
        calls.note(Use::Sent { una, next: una + window * mss, in_flight: window * mss, full: false });
        if matches!(checks, Checks::Expired(_)) && i % 3 == 0 {
            calls.note(Check::Expired { now, answer: false });
        }
    }
    // the repetition ends a little later
    let step = (una - first, now.since(start) + MS);
    let place = Place { una, now: now + MS };
    Repetition { lists: *calls.0.unwrap(), place, step }
}

fn told(of: &Repetition, end: u64, until: u64, most_out: u64) -> Told {
    told_on(Stack::Rfc, of, end, until, most_out)
}

fn told_on(stack: Stack, of: &Repetition, end: u64, until: u64, most_out: u64) -> Told {
    let mut rtt = RttEstimator::new(stack, RtoConfig::default());
    rtt.take(MS * 300, (0, 0), (1, 1));
    Told {
        rounds: Rounds {
            round: Round { number: 7, end: of.place.una + end },
            pipe: PipeAck {
                samples: [5, 6, 7],
                round_acked: 9,
                rounds: 3,
                validated_at: Instant(of.place.now.0.saturating_sub(7)),
                asked: 1,
            },
        },
        fullness: Fullness { limited: false, most_out, until: of.place.una + until },
        clock: Clock { rtt, retransmit: of.place.now + Duration::from_secs(1), probe: Instant::NEVER },
    }
}

/// All fields, to compare.
fn fields(told: &Told) -> String {
    format!("{told:?}")
}

/// Tells repetition number `k` call by call, as the connection does.
fn one_by_one(told: &mut Told, of: &Repetition, k: u64) {
    let (bytes, time) = (of.step.0 * k, of.step.1 * k);
    let mut before = 0;
    let RoundCalls { acked, checks } = &of.lists.rounds;
    let ask = |told: &mut Told, i: usize| {
        for (_, check) in checks.iter().filter(|(at, _)| *at == i) {
            match *check {
                Check::Validated { now, cwnd, .. } => {
                    told.rounds.pipe.validated(now + time, cwnd);
                }
                Check::Expired { now, answer } => {
                    assert_eq!(told.rounds.pipe.expired(now + time), answer);
                }
            }
        }
    };
    for (i, acked) in acked.iter().enumerate() {
        ask(told, i);
        let has_ended = told.rounds.round.advance(acked.una + bytes, acked.next + bytes);
        told.rounds.pipe.on_ack(acked.bytes - before, has_ended);
        before = acked.bytes;
    }
    ask(told, acked.len());
    for call in &of.lists.uses {
        if let Use::Sent { una, next, in_flight, full } = *call {
            told.fullness.after_send(una + bytes, next + bytes, in_flight, full);
        }
    }
    for call in &of.lists.timings {
        match *call {
            Timing::RoundTrip { rtt, una, next, per_round, .. } => {
                told.clock.rtt.take(rtt, (una + bytes, next + bytes), per_round);
            }
            Timing::Restart { now, stops } => {
                let at = now + time + told.clock.rtt.rto();
                told.clock.retransmit = if stops { Instant::NEVER } else { at };
            }
            Timing::Probe { now, more } => {
                let clock = &mut told.clock;
                if clock.probe == Instant::NEVER && clock.retransmit != Instant::NEVER {
                    clock.probe = (now + time + clock.rtt.srtt() * 2 + more).min(clock.retransmit);
                }
            }
            Timing::NoProbe { .. } => told.clock.probe = Instant::NEVER,
            Timing::Idle { .. } | Timing::Read => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// With rounds, windows and repetitions of any lengths, few and many times.
    #[test]
    fn many_repetitions_at_once_are_those_one_by_one(
        mss in 1u64..1460,
        window in 3u64..40,
        acks in proptest::collection::vec(1u64..3, 1..60),
        rtts in proptest::collection::vec(290u64..310, 1..3),
        (end, until) in (0u64..60_000, 0u64..60_000),
        checks in prop_oneof![
            Just(Checks::None),
            (0u64..100).prop_map(Checks::Validated),
            (0u64..100).prop_map(Checks::Expired),
        ],
        stack in prop_oneof![Just(Stack::Rfc), Just(Stack::Linux)],
        n in 0u64..400,
    ) {
        let of = checked_repetition(mss, window, &acks, &rtts, checks);
        // the window was never full: its use is the largest
        let mut at_once = told_on(stack, &of, end, until, window * mss);
        let mut plain = at_once.clone();
        prop_assert_eq!(at_once.replay(&of.lists, of.place, of.step, n), n);
        for k in 1..=n {
            one_by_one(&mut plain, &of, k);
        }
        prop_assert_eq!(fields(&at_once), fields(&plain));
    }

    /// Rounds end where they end, whatever the acknowledgments are.
    #[test]
    fn acknowledgments_up_to_the_end_of_a_round_are_taken_together(
        acks in proptest::collection::vec((0u64..50, 1u64..200, 0u64..50), 0..40),
        (end, by) in (0u64..2000, 0u64..3000),
    ) {
        let mut lists = Lists::default();
        let mut una = 0;
        for (forward, ahead, bytes) in acks {
            una += forward;
            Acked { una, next: una + ahead, bytes }.write_down(&mut lists);
        }
        let of = Repetition { lists, place: Place { una: 0, now: Instant::ZERO }, step: (by, MS) };
        let mut at_once = told(&of, end, 0, 0);
        let mut plain = at_once.clone();
        at_once.rounds.tell(&of.lists.rounds, of.step, Instant::ZERO);
        one_by_one(&mut plain, &of, 1);
        prop_assert_eq!(format!("{:?}", at_once.rounds), format!("{:?}", plain.rounds));
    }

    /// States are alike if they are the same relative to their places, and only then.
    #[test]
    fn states_are_alike_relative_to_their_places(bytes in 0u64..1_000_000, ms in 0u64..1_000_000) {
        let of = repetition(1000, 10, &[1; 10], &[300]);
        let (here, there) = (of.place, Place { una: of.place.una + bytes, now: of.place.now + MS * ms });
        let mut a = told(&of, 500, 700, 10_000);
        let mut b = a.clone();
        b.rounds.round.end += bytes;
        b.fullness.until += bytes;
        b.clock.retransmit += MS * ms;
        a.clock.probe = here.now + MS * 30;
        b.clock.probe = there.now + MS * 30;
        b.rounds.pipe.validated_at += MS * ms;
        let alike_if = |a: &Told, b: &Told, lists: &Lists| {
            [
                a.rounds.is_like(here, &b.rounds, there, &lists.rounds),
                a.fullness.is_like(here, &b.fullness, there, &lists.uses),
                a.clock.is_like(here, &b.clock, there, &lists.timings),
            ]
        };
        let alike = |a: &Told, b: &Told| alike_if(a, b, &of.lists);
        prop_assert_eq!(alike(&a, &b), [true; 3]);
        // sums decide nothing
        b.rounds.round.number += 3;
        b.rounds.pipe.rounds += 3;
        b.rounds.pipe.asked += 3;
        prop_assert_eq!(alike(&a, &b), [true; 3]);
        let differs = |part: usize, change: fn(&mut Told)| {
            let mut other = b.clone();
            change(&mut other);
            let expected: [bool; 3] = core::array::from_fn(|i| i != part);
            assert_eq!(alike(&a, &other), expected);
        };
        differs(0, |b| b.rounds.round.end += 1);
        differs(0, |b| b.rounds.pipe.round_acked += 1);
        differs(0, |b| b.rounds.pipe.samples[2] += 1);
        differs(0, |b| b.rounds.pipe.rounds = 0);
        differs(0, |b| b.rounds.pipe.validated_at += Duration(1));
        differs(1, |b| b.fullness.until += 1);
        differs(1, |b| b.fullness.most_out += 1);
        differs(1, |b| b.fullness.limited = true);
        differs(2, |b| b.clock.retransmit += Duration(1));
        differs(2, |b| b.clock.retransmit = Instant::NEVER);
        differs(2, |b| b.clock.probe += Duration(1));
        differs(2, |b| b.clock.rtt.take(MS * 299, (0, 0), (1, 1)));
        differs(2, |b| b.clock.rtt.back_off());
        // the time of the last validation may stay, but not if it is asked whether that is too long ago
        b.rounds.pipe.validated_at = a.rounds.pipe.validated_at;
        let asked = checked_repetition(1000, 10, &[1; 10], &[300], Checks::Expired(30)).lists;
        let has_moved = here.now == there.now;
        prop_assert_eq!(alike_if(&a, &b, &of.lists), [true; 3]);
        prop_assert_eq!(alike_if(&a, &b, &asked), [has_moved, true, true]);
    }
}

/// In slow start a window counts as used if more than half of it is out. Once 16 segments were, of 20; when
/// they are passed 10 are, which is less than half of a bit more than 20: the answer is another one.
#[test]
fn a_repetition_with_another_answer_is_not_skipped() {
    let mss = 1000;
    let mut of = repetition(mss, 10, &[1; 10], &[300]);
    for call in &mut of.lists.uses {
        if let Use::Limited { cwnd, answer, .. } = call {
            (*cwnd, *answer) = (20 * mss + 1, true);
        }
    }
    for (until, expected) in
        [(0, 0), (9000, 0), (9001, 1), (25_000, 2), (29_000, 2), (29_001, 3), (100_000, 10)]
    {
        let first = told(&of, 500, until, 16 * mss);
        // each repetition asks 10 times; the first other answer is that after what passes `until`
        let mut fullness = first.fullness;
        assert_eq!(fullness.replay(&of.lists.uses, of.place, of.step, 50), expected, "{until}");
        let mut all = first.clone();
        assert_eq!(all.replay(&of.lists, of.place, of.step, 50), expected, "{until}: all parts");
        // the state is that before the other answer
        let mut before = first.fullness;
        assert_eq!(before.replay(&of.lists.uses, of.place, of.step, expected), expected);
        assert_eq!(fullness, before, "{until}");
    }
}

/// Who looks at the RTT must see in each repetition what was seen in the first.
#[test]
fn an_rtt_that_others_see_is_the_same_each_time() {
    let mut of = repetition(1000, 10, &[1; 10], &[300]);
    let mut clock = told_on(Stack::Linux, &of, 500, 700, 10_000).clock;
    // it rests at 300 ms, and 1 s above
    assert_eq!(clock.replay(&of.lists.timings, of.place, of.step, 100), 100);
    let rested = clock.rtt.clone();
    for call in &mut of.lists.timings {
        if let Timing::RoundTrip { seen, .. } = call {
            *seen = Some(rested.seen());
        }
    }
    let mut moved = of.step;
    let n = 1_000_000_000;
    (moved.0, moved.1) = (moved.0 * 100, moved.1 * 100);
    let place = Place { una: of.place.una + moved.0, now: of.place.now + moved.1 };
    for call in &mut of.lists.timings {
        match call {
            Timing::RoundTrip { una, next, .. } => (*una, *next) = (*una + moved.0, *next + moved.0),
            Timing::Restart { now, .. } | Timing::Probe { now, .. } | Timing::NoProbe { now } => {
                *now += moved.1;
            }
            Timing::Idle { .. } | Timing::Read => {}
        }
    }
    let (calls, step) = (&of.lists.timings, of.step);
    assert_eq!(clock.clone().replay(calls, place, step, n), n);
    // another round trip before, of which something is left
    clock.rtt.take(MS * 340, (place.una, place.una + 10_000), (1, 1));
    assert_eq!(clock.replay(calls, place, step, n), 0);
}

/// RFC 7661: pipeACK is at most ten segments, and does not validate a window of 30. When that has been so for
/// five minutes the window is reduced, if it is asked: that is no repetition.
#[test]
fn a_window_that_expires_ends_what_is_skipped() {
    let first = |checks| {
        let of = checked_repetition(1000, 10, &[1; 10], &[300], checks);
        (told(&of, 500, 700, 10_000).rounds, of)
    };
    let (mut rounds, of) = first(Checks::Expired(30));
    let (validated_at, period) = (rounds.pipe.validated_at, of.step.1);
    let asked_last = of.lists.rounds.checks.iter().rev().find_map(|(_, check)| match check {
        Check::Expired { now, .. } => Some(*now),
        Check::Validated { .. } => None,
    });
    let expires = validated_at + Duration::from_secs(300);
    let n = rounds.replay(&of.lists.rounds, of.place, of.step, 1_000_000);
    let asked = |n: u64| asked_last.unwrap() + period * n;
    assert!(asked(n) < expires && asked(n + 1) >= expires, "{n}");
    assert_eq!((rounds.pipe.validated_at, rounds.pipe.asked), (validated_at, 1 + 4 * n as u32));
    // nobody asks: nothing ends, and it comes round
    let (mut rounds, of) = first(Checks::Validated(30));
    let n = 1_000_000_000_000;
    assert_eq!(rounds.replay(&of.lists.rounds, of.place, of.step, n), n);
    assert_eq!(rounds.pipe.validated_at, validated_at);
    // one that is validated in each repetition is so in the last
    let (mut rounds, of) = first(Checks::Expired(15));
    assert_eq!(rounds.replay(&of.lists.rounds, of.place, of.step, 1_000_000), 1_000_000);
    assert!(rounds.pipe.validated_at > of.place.now + period * 999_999);
}

/// An answer that decides whether the window grows must be the same each time.
#[test]
fn a_validation_that_decides_is_the_same_each_time() {
    for (decides, expected) in [(false, 20), (true, 2)] {
        let mut of = checked_repetition(1000, 10, &[1; 10], &[300], Checks::Validated(30));
        for (_, check) in &mut of.lists.rounds.checks {
            if let Check::Validated { answer, .. } = check {
                *answer = decides.then_some(true);
            }
        }
        // once 16 segments were acknowledged in a round; two rounds later that is forgotten
        let mut rounds = told(&of, 9500, 700, 10_000).rounds;
        rounds.pipe.samples = [16_000, 0, 0];
        assert_eq!(rounds.replay(&of.lists.rounds, of.place, of.step, 20), expected, "{decides}");
    }
}

/// The timer restarts 8 ms before a repetition ends, and for the first time 7 ms after it begins: if there is
/// a silence as long as the timeout between them, it expires.
#[test]
fn a_repetition_in_which_the_timer_expires_is_not_skipped() {
    let of = repetition(1000, 10, &[1; 10], &[300]);
    let state = told(&of, 500, 700, 10_000).clock;
    // the last call stops the timer: without it, it runs
    let calls = &of.lists.timings[..of.lists.timings.len() - 1];
    let rto = state.rtt.rto();
    for (silence, expected) in [(MS * 15, 30), (rto - Duration(1), 30), (rto, 0), (rto * 2, 0)] {
        let more = silence - MS * 15;
        let place = Place { now: of.place.now + more, ..of.place };
        let mut clock = Clock { retransmit: Instant(of.place.now.0 - (MS * 8).0) + rto, ..state.clone() };
        assert_eq!(clock.replay(calls, place, (of.step.0, of.step.1 + more), 30), expected, "{silence:?}");
    }
    // due when the repetition ends: it is not known what comes first
    let mut clock = Clock { retransmit: of.place.now + of.step.1, ..state };
    assert_eq!(clock.replay(&[], of.place, of.step, 5), 0);
    clock.retransmit += Duration(1);
    assert_eq!(clock.replay(&[], of.place, of.step, 5), 1);
    // the tail loss probe, which runs from the last acknowledgment to the first of the next repetition
    let calls =
        [calls, &[Timing::Probe { now: Instant(of.place.now.0 - (MS * 8).0), more: MS * 2 }]].concat();
    for (silence, expected) in [(MS * 15, 30), (MS * 601, 30), (MS * 602, 0), (MS * 700, 0)] {
        let more = silence - MS * 15;
        let place = Place { now: of.place.now + more, ..of.place };
        let armed = Instant(of.place.now.0 - (MS * 8).0);
        let (retransmit, probe) = (armed + rto, armed + MS * 602);
        let mut clock = Clock { retransmit, probe, rtt: of_300_ms() };
        assert_eq!(clock.replay(&calls, place, (of.step.0, of.step.1 + more), 30), expected, "{silence:?}");
    }
}

/// An estimator that rests at round trips of 300 ms.
fn of_300_ms() -> RttEstimator {
    let mut rtt = RttEstimator::new(Stack::Rfc, RtoConfig::default());
    rtt.take(MS * 300, (0, 0), (1, 1));
    rtt
}

/// A state that never comes round is told each time; one that has is not told again.
#[test]
fn a_billion_repetitions_cost_no_more_than_until_it_comes_round() {
    let of = repetition(1000, 10, &[1; 7], &[300]);
    let n = 1_000_000_000;
    let mut all = told(&of, 500, 700, 10_000);
    assert_eq!(all.replay(&of.lists, of.place, of.step, n), n);
    // 7e9 segments, a round for every nine: the tenth of a window leaves only after an acknowledgment
    let rounds = all.rounds.round.number - 7;
    assert!((n * 7 / 9..=n * 7 / 9 + 1).contains(&rounds), "{rounds}");
    let end = of.place.una + of.step.0 * n;
    assert!((end..=end + 10_000).contains(&all.rounds.round.end));
    assert!((end..=end + 10_000).contains(&all.fullness.until));
}

#[test]
fn calls_are_written_down_only_if_they_are_wanted_and_not_without_end() {
    let acked = Acked { una: 1, next: 2, bytes: 3 };
    let mut unwanted = Calls::default();
    unwanted.note(acked);
    assert!(unwanted.0.is_none());
    let mut calls = Calls(Some(Box::default()));
    for _ in 0..3 {
        calls.note(acked);
    }
    calls.note(Check::Expired { now: Instant::ZERO, answer: false });
    assert_eq!(calls.0.as_ref().unwrap().rounds.checks[0].0, 3, "after three acknowledgments");
    let sums: Vec<_> = calls.0.as_ref().unwrap().rounds.acked.iter().map(|call| call.bytes).collect();
    assert_eq!(sums, [3, 6, 9]);
    for _ in 3..MOST_CALLS - 1 {
        calls.note(acked);
    }
    assert!(calls.0.is_some());
    calls.note(acked);
    assert!(calls.0.is_none(), "too many to tell them again");
}
