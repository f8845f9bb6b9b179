//! Moving a state by n repetitions is doing n repetitions; what is none is recognised.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use super::*;
use crate::packet::Phase;
use proptest::prelude::*;

const PERIOD: Duration = Duration(7_300_001);
const OWN: Stream = (Addr(1), 10, Addr(2), 20);
const PEER: Stream = (Addr(2), 20, Addr(1), 10);

/// A state with a value of every kind.
#[derive(Clone, Debug, PartialEq)]
struct Machine {
    now: Instant,
    fixed: (u64, f64),
    next: Instant,
    never: Instant,
    maybe: Option<Instant>,
    last: Instant,
    idle_since: Instant,
    sum: u64,
    small_sum: u32,
    large_sum: u128,
    una: u64,
    recover: u64,
    passed: u64,
    seq: u32,
    ack: u32,
    stamp: (u32, Phase),
    chosen: Instant,
    written: u64,
    unwritten: u64,
    gap: u64,
    /// What is due once: a timer, and the end of a link's state with the service that must end before.
    once: Instant,
    ends: Instant,
    lead: Duration,
}

/// Bytes of both streams in a repetition, and packets that count down.
const STEP: u64 = 3000;
const BACK: u64 = 77;
const PACKETS: u64 = 3;
const FAR: Instant = Instant(u64::MAX / 2);

impl Machine {
    fn new() -> Self {
        let now = Instant(1_000_000_000_000);
        Self {
            now,
            fixed: (5, 0.1),
            next: now + Duration(400),
            never: Instant::NEVER,
            maybe: Some(now),
            last: Instant(now.0 - 5),
            idle_since: Instant(9),
            sum: 100,
            small_sum: 200,
            large_sum: u128::from(u64::MAX) - 1000,
            una: 5000,
            recover: 4000,
            passed: 0,
            seq: u32::MAX - 4000,
            ack: 55,
            stamp: (u32::MAX - 20, Phase::of(Instant(999_999))),
            chosen: Instant(5),
            written: 1 << 60,
            unwritten: 1 << 50,
            gap: 1 << 40,
            once: FAR,
            ends: FAR,
            lead: Duration(10),
        }
    }

    /// A repetition.
    fn repeat(&mut self) {
        self.now += PERIOD;
        self.next += PERIOD;
        self.maybe = self.maybe.map(|at| at + PERIOD);
        self.last += PERIOD;
        self.sum += 12;
        self.small_sum = self.small_sum.saturating_add(11);
        self.large_sum += 1000;
        self.una += STEP;
        self.recover += STEP;
        self.seq = self.seq.wrapping_add(STEP as u32);
        self.ack = self.ack.wrapping_add(BACK as u32);
        let (stamp, phase) = self.stamp;
        let ns = PERIOD.0 + u64::from(phase.ns());
        self.stamp = (stamp.wrapping_add((ns / 1_000_000) as u32), Phase::of(Instant(ns)));
        self.unwritten -= STEP;
        self.gap -= PACKETS;
    }

    /// Bytes that are left before the end of what is written is in sight.
    const fn left(&self) -> u64 {
        self.written.saturating_sub(self.una)
    }
}

impl Shift for Machine {
    fn shift(&mut self, walk: &mut Walk<'_>) {
        let (own, peer) = (walk.stream(OWN), walk.stream(PEER));
        walk.same(&self.fixed);
        walk.position(own, &mut self.una);
        let mut read = BACK * (self.sum - 100) / 12;
        walk.position(peer, &mut read);
        for at in [&mut self.next, &mut self.never] {
            walk.time(at);
        }
        walk.maybe_time(&mut self.maybe);
        walk.past(&mut self.last);
        walk.past(&mut self.idle_since);
        walk.count(&mut self.sum);
        walk.count_u32(&mut self.small_sum);
        walk.count_u128(&mut self.large_sum);
        walk.mark(own, &mut self.recover);
        walk.mark(own, &mut self.passed);
        walk.wire_position(own, &mut self.seq);
        walk.wire_position(peer, &mut self.ack);
        walk.stamp(&mut self.stamp.0, &mut self.stamp.1);
        walk.choice(&mut self.chosen);
        let left = self.left();
        walk.written(own, &mut self.written, left);
        walk.unwritten(own, &mut self.unwritten);
        walk.countdown(&mut self.gap);
        walk.deadline(&mut self.once);
        walk.horizon(self.ends, self.lead);
    }
}

/// How many repetitions may be skipped up to `until`, if `after` follows `before`.
fn allowed(before: &Machine, after: &Machine, until: Instant) -> u64 {
    let mut recorded = record(before);
    compare(&mut recorded, after).repetitions(until)
}

fn record(machine: &Machine) -> Recorded {
    let mut recorded = Recorded::default();
    let mut walk = Walk::record(&mut recorded, machine.now, false);
    machine.clone().shift(&mut walk);
    assert_eq!(walk.refusal(), None);
    recorded
}

fn compare<'a>(recorded: &'a mut Recorded, machine: &Machine) -> Walk<'a> {
    let mut walk = Walk::compare(recorded, machine.now, None);
    let mut visited = machine.clone();
    visited.shift(&mut walk);
    assert_eq!(visited, *machine, "a comparison changes nothing");
    walk
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The law of all this: a move by n is n repetitions, from any repetition on.
    #[test]
    fn a_move_by_n_is_n_repetitions(first in 0u64..50, n in 0u64..2000) {
        let mut before = Machine::new();
        (0..first).for_each(|_| before.repeat());
        let mut after = before.clone();
        after.repeat();
        prop_assert!(allowed(&before, &after, FAR) > 1_000_000);
        let mut plain = after.clone();
        (0..n).for_each(|_| plain.repeat());
        let mut recorded = record(&before);
        let mut walk = Walk::forward(&mut recorded, after.now, n);
        after.shift(&mut walk);
        prop_assert_eq!(walk.distance(), PERIOD * n);
        let streams = [OWN, PEER].map(|stream| walk.stream(stream));
        prop_assert_eq!(streams.map(|stream| walk.step(stream)), [STEP, BACK]);
        after.now += walk.distance();
        prop_assert_eq!(after, plain);
    }
}

/// No more is skipped than lies before something that does not repeat itself.
#[test]
fn what_ends_limits_what_is_skipped() {
    let limit = |change: &dyn Fn(&mut Machine), until: Instant| {
        let mut before = Machine::new();
        change(&mut before);
        let mut after = before.clone();
        after.repeat();
        allowed(&before, &after, until)
    };
    let now = Machine::new().now + PERIOD;
    for n in [0, 1, 2, 1000] {
        let end = now + PERIOD * n;
        let just_before = Instant(end.0 - 1);
        // the end of the run
        assert_eq!(limit(&|_| {}, end), n);
        assert_eq!(limit(&|_| {}, just_before), n.saturating_sub(1));
        // a timer that is due when the last repetition ends comes after it
        assert_eq!(limit(&|m| m.once = end + Duration(1), FAR), n);
        if n > 0 {
            assert_eq!(limit(&|m| m.once = end, FAR), n - 1);
        }
        // a service that lasts for 10 ns more must end before the link changes
        assert_eq!(limit(&|m| m.ends = end + Duration(11), FAR), n);
        assert_eq!(limit(&|m| m.ends = end + Duration(10), FAR), n.saturating_sub(1));
        // data still to be written: the last byte is written by a repetition of its own
        let rest = STEP * (n + 1) + 1;
        assert_eq!(limit(&|m| m.unwritten = rest, FAR), n);
        assert_eq!(limit(&|m| m.unwritten = rest - 1, FAR), n.saturating_sub(1));
        // data written, of which the end comes in sight
        assert_eq!(limit(&|m| m.written = m.una + STEP * (n + 1), FAR), n);
        assert_eq!(limit(&|m| m.written = m.una + STEP * (n + 1) - 1, FAR), n.saturating_sub(1));
        // packets before the next loss
        assert_eq!(limit(&|m| m.gap = PACKETS * (n + 1), FAR), n);
        assert_eq!(limit(&|m| m.gap = PACKETS * (n + 1) + 2, FAR), n);
    }
    let mut recorded = record(&Machine::new());
    let mut after = Machine::new();
    after.repeat();
    let mut walk = compare(&mut recorded, &after);
    walk.at_most(3);
    walk.at_most(5);
    assert_eq!(walk.repetitions(FAR), 3);
    walk.fixed_end(after.now + PERIOD * 2);
    assert_eq!(walk.repetitions(FAR), 1);
}

/// A change of a machine, and what it is.
type Change = (&'static str, fn(&mut Machine));

/// Every value that is not what a repetition makes of it is noticed.
#[test]
fn another_value_is_no_repetition() {
    let before = Machine::new();
    let mut after = before.clone();
    after.repeat();
    let wrong: [Change; 24] = [
        ("another value", |m| m.fixed.0 += 1),
        ("another bit of a floating-point value", |m| m.fixed.1 = f64::from_bits(m.fixed.1.to_bits() + 1)),
        ("a time too early", |m| m.next = Instant(m.next.0 - 1)),
        ("a time that stays", |m| m.next = Instant(m.next.0 - PERIOD.0)),
        ("a time that ceases to be", |m| m.next = Instant::NEVER),
        ("a time that begins to be", |m| m.never = Instant(5)),
        ("a time that is gone", |m| m.maybe = None),
        ("a past that is later, but not by the period", |m| m.last += Duration(1)),
        ("a past that was not over, and stays", |m| m.last = Instant(m.last.0 - PERIOD.0 + 6)),
        ("a position", |m| m.una += 1),
        ("a mark that moves in part", |m| m.recover -= 1),
        ("a mark that begins", |m| m.passed = 1),
        ("a position on the wire", |m| m.seq = m.seq.wrapping_add(1)),
        ("the position of the other stream", |m| m.ack = m.ack.wrapping_sub(1)),
        ("a stamp", |m| m.stamp.0 = m.stamp.0.wrapping_add(1)),
        ("what a stamp leaves out", |m| m.stamp.1 = Phase::of(Instant(u64::from(m.stamp.1.ns()) + 1))),
        ("something that milliseconds have decided", |m| m.chosen += PERIOD),
        ("written in part", |m| m.written += 1),
        ("another amount to be written", |m| m.unwritten += 1),
        ("a new gap", |m| m.gap += 2 * PACKETS),
        ("a timer that moves in part", |m| m.once += Duration(1)),
        ("a timer that is over", |m| m.once = Instant(m.now.0)),
        ("the end of a state that is over", |m| m.ends = Instant(m.now.0)),
        ("another period", |m| m.now += Duration(1)),
    ];
    for (what, change) in wrong {
        let mut other = after.clone();
        change(&mut other);
        // a past that stays must have been over when the state was recorded
        let mut recorded = before.clone();
        if what.starts_with("a past that was not over") {
            recorded.last = other.last;
            assert!(recorded.last > recorded.now);
        }
        assert_eq!(allowed(&recorded, &other, FAR), 0, "{what}");
    }
    assert!(allowed(&before, &after, FAR) > 0);
    assert_eq!(allowed(&before, &before, FAR), 0, "no time has passed");
}

/// What may stay, and what decides nothing.
#[test]
fn sums_and_what_is_over_may_be_anything() {
    let before = Machine::new();
    let mut after = before.clone();
    after.repeat();
    let right: [fn(&mut Machine); 5] = [
        |m| m.large_sum += 1,
        |m| m.small_sum -= 5,
        |m| m.last = Instant(m.last.0 - PERIOD.0),
        |m| m.recover -= STEP,
        |m| m.gap += PACKETS,
    ];
    for (i, change) in right.into_iter().enumerate() {
        let mut other = after.clone();
        change(&mut other);
        assert!(allowed(&before, &other, FAR) > 0, "{i}");
    }
}

/// Of a stamp without what it leaves out, and of what milliseconds decide, nothing is known unless a period
/// has whole ones.
#[test]
fn milliseconds_repeat_themselves_with_periods_of_whole_ones() {
    let mut recorded = Recorded::default();
    let allowed = |recorded: &mut Recorded, period: u64, visit: &dyn Fn(&mut Walk<'_>, u32)| {
        visit(&mut Walk::record(recorded, Instant(50), false), 10);
        let mut walk = Walk::compare(recorded, Instant(50 + period), None);
        visit(&mut walk, 17);
        walk.repetitions(FAR) > 0
    };
    for (period, repeats) in [(7_000_000, true), (7_000_001, false), (6_999_999, false)] {
        assert_eq!(
            allowed(&mut recorded, period, &|walk, mut n| walk.coarse_stamp(&mut n)),
            repeats,
            "{period}"
        );
        let choice = |walk: &mut Walk<'_>, _: u32| walk.choice(&mut Instant(walk.now().0 - 7));
        assert_eq!(allowed(&mut recorded, period, &choice), repeats, "{period}");
        assert!(
            allowed(&mut recorded, period, &|walk, _| walk.choice(&mut Instant(5))),
            "it decided nothing"
        );
        assert!(!allowed(&mut recorded, period, &|walk, _| walk.choice(&mut Instant(50))), "before or after");
    }
    // a clock that comes round, within a repetition and often
    let mut recorded = Recorded::default();
    let (mut stamp, mut phase) = (u32::MAX, Phase::of(Instant(700_000)));
    Walk::record(&mut recorded, Instant(50), false).stamp(&mut stamp, &mut phase);
    let period = 1_500_000;
    (stamp, phase) = (1, Phase::of(Instant(200_000)));
    let mut walk = Walk::compare(&mut recorded, Instant(50 + period), None);
    walk.stamp(&mut stamp, &mut phase);
    assert!(walk.repetitions(FAR) > 0);
    let n = (1 << 33) - 1;
    Walk::forward(&mut recorded, Instant(50 + period), n).stamp(&mut stamp, &mut phase);
    // 3 * 2^32 ms less a period
    assert_eq!((stamp, phase.ns()), (u32::MAX, 700_000));
}

/// The state of a link that has ended without a change: no repetition, but the next may be one.
#[test]
fn the_end_of_a_state_within_a_repetition_drifts() {
    let before = Machine { ends: Instant(Machine::new().now.0 + 5), ..Machine::new() };
    let mut after = before.clone();
    after.repeat();
    after.ends = after.now + Duration(3_000_000_000);
    let mut recorded = record(&before);
    assert!(compare(&mut recorded, &after).has_drifted());
    let mut later = after.clone();
    later.repeat();
    let mut recorded = record(&after);
    let walk = compare(&mut recorded, &later);
    assert!(!walk.has_drifted() && walk.repetitions(FAR) > 0);
    // one that was over in both states only waits
    let mut before = Machine { ends: Instant(3), ..Machine::new() };
    let mut recorded = record(&before);
    before.repeat();
    assert!(compare(&mut recorded, &before).repetitions(FAR) > 0);
}

#[test]
fn a_refusal_ends_the_walk_and_the_first_reason_stays() {
    let mut recorded = Recorded::default();
    let mut walk = Walk::record(&mut recorded, Instant(1), false);
    walk.expect(true, "nothing");
    assert!(!walk.has_ended());
    walk.expect(false, "first");
    walk.refuse("second");
    assert_eq!((walk.refusal(), walk.has_ended()), (Some("first"), true));
    // nothing is visited any more
    walk.inner(&mut Machine::new());
    assert!(recorded.values.is_empty());
}

/// A state with more or fewer values is another one.
#[test]
fn a_walk_beyond_the_recorded_values_is_no_repetition() {
    let mut recorded = Recorded::default();
    Walk::record(&mut recorded, Instant(1), false).count(&mut 1);
    let mut walk = Walk::compare(&mut recorded, Instant(2), None);
    walk.count(&mut 2);
    assert!(!walk.has_ended());
    walk.count(&mut 3);
    assert!(walk.has_ended());
}

/// A packet of a stream whose ends were not visited is unknown.
#[test]
fn a_wire_position_needs_a_known_stream() {
    let mut recorded = Recorded::default();
    let visit = |walk: &mut Walk<'_>, position: Option<u64>, mut seq: u32| {
        let own = walk.stream(OWN);
        if let Some(mut position) = position {
            walk.position(own, &mut position);
        }
        walk.wire_position(own, &mut seq);
    };
    // by whatever its sequence number has moved
    for (positions, seq, repeats) in [
        ([Some(10), Some(20)], 110, true),
        ([None; 2], 100, false),
        ([None; 2], 110, false),
        ([None; 2], 99, false),
    ] {
        visit(&mut Walk::record(&mut recorded, Instant(1), false), positions[0], 100);
        let mut walk = Walk::compare(&mut recorded, Instant(2), None);
        visit(&mut walk, positions[1], seq);
        assert_eq!(!walk.has_ended(), repeats, "{positions:?} {seq}");
    }
}

/// What is only told has values that may differ; the values behind them are still compared with their own.
#[test]
fn values_that_are_tried_do_not_end_the_walk() {
    let mut recorded = Recorded::default();
    let visit = |walk: &mut Walk<'_>, values: [u64; 2]| {
        for value in values {
            walk.same(&value);
        }
    };
    let mut walk = Walk::record(&mut recorded, Instant(1), true);
    assert_eq!(walk.skip(), Skip::Record { calls: true });
    visit(&mut walk, [5, 6]);
    walk.same(&7_u64);
    for (values, behind, alike, repeats) in [
        ([5, 6], 7, true, true),
        ([4, 6], 7, false, true),
        ([5, 4], 7, false, true),
        ([4, 4], 8, false, false),
    ] {
        let mut walk = Walk::compare(&mut recorded, Instant(2), Some(3));
        assert_eq!(walk.skip(), Skip::Compare { most: Some(3) });
        assert_eq!(walk.try_values(2, |walk| visit(walk, values)), alike);
        walk.same(&u64::from(behind as u8));
        assert_eq!(!walk.has_ended(), repeats, "{values:?} {behind}");
    }
    assert_eq!(Walk::forward(&mut recorded, Instant(2), 4).skip(), Skip::Move(4));
}

/// A sum of 32 bits stops at its largest value, as the one that is counted does.
#[test]
fn a_small_sum_does_not_overflow() {
    let mut recorded = Recorded::default();
    Walk::record(&mut recorded, Instant(1), false).count_u32(&mut 10);
    let mut sum = 1000;
    Walk::forward(&mut recorded, Instant(2), u64::from(u32::MAX)).count_u32(&mut sum);
    assert_eq!(sum, u32::MAX);
}
