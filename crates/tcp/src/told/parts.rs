//! The parts of what a sender is only told: each is told n repetitions at once.

use super::{Check, RoundCalls, Timing, Use};
use crate::connection::Round;
use crate::rtt::RttEstimator;
use crate::usage::{Fullness, PipeAck};
use bentpipe_base::shift::{Skip, Walk};
use bentpipe_base::{Duration, Instant};

/// A place in stream and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) una: u64,
    pub(crate) now: Instant,
}

/// By how many bytes and how much time.
pub(crate) type Distance = (u64, Duration);

/// State that is only told what happens, and does not depend on the other parts. Each comes round on its
/// own: with rounds of 127 segments, windows of 128 and repetitions of 193, all together would do so only
/// after 16 256 repetitions.
pub(crate) trait Part: Clone {
    /// What it is told in a repetition.
    type Calls: ?Sized;
    /// Tells `calls`, all later by `by`; `end` is when they end. False if an answer is another one, or a
    /// timer would expire.
    fn tell(&mut self, calls: &Self::Calls, by: Distance, end: Instant) -> bool;
    /// True if both states are alike, each relative to its place: told the same, both do the same.
    fn is_like(&self, here: Place, other: &Self, there: Place, calls: &Self::Calls) -> bool;
    /// Since `known` the state has come round; it does so `cycles` times more, `by` in all.
    fn come_round(&mut self, known: &Self, cycles: u64, by: Distance);

    /// Tells `calls` for `n` repetitions, each a `step` later, from `place` on. Returns after how many an
    /// answer would be another one, `n` if none; the state is that up to there.
    fn replay(&mut self, calls: &Self::Calls, mut place: Place, (step, period): Distance, n: u64) -> u64 {
        let mut done = 0;
        // a state to compare with, replaced after 1, 2, 4, ... repetitions (Brent, BIT 20, 1980)
        let (mut known, mut known_place, mut known_at, mut known_for) = (self.clone(), place, 0, 1);
        let mut has_come_round = false;
        while done < n {
            let next = Place { una: place.una + step, now: place.now + period };
            let before = self.clone();
            if !self.tell(calls, ((done + 1) * step, period * (done + 1)), next.now) {
                *self = before;
                return done;
            }
            (done, place) = (done + 1, next);
            if has_come_round {
                continue;
            }
            if self.is_like(place, &known, known_place, calls) {
                // come round: whole cycles change only counts, positions and times
                let length = done - known_at;
                let cycles = (n - done) / length;
                let (bytes, time) = (step * length * cycles, period * (length * cycles));
                self.come_round(&known, cycles, (bytes, time));
                done += length * cycles;
                place = Place { una: place.una + bytes, now: place.now + time };
                has_come_round = true;
            } else if done - known_at >= known_for {
                (known, known_place, known_at) = (self.clone(), place, done);
                known_for *= 2;
            }
        }
        done
    }
}

/// Visits a state of `count` values that is only told `calls`, which are written down if that is wanted.
/// `replay` tells them again so many times, and returns how often the answers are the same.
pub(crate) fn visit<T: Clone, C: Default>(
    walk: &mut Walk<'_>,
    stream: usize,
    (state, calls): (&mut T, &mut Option<C>),
    (count, values): (usize, impl Fn(&mut T, &mut Walk<'_>)),
    replay: impl Fn(&mut T, &C, Distance, u64) -> u64,
) {
    let mut other = state.clone();
    match walk.skip() {
        Skip::Record { calls: are_wanted } => {
            values(&mut other, walk);
            *calls = are_wanted.then(Default::default);
        }
        Skip::Compare { most } => {
            let is_alike = walk.try_values(count, |walk| values(&mut other, walk));
            match (calls, most) {
                _ if is_alike => {}
                (None, _) => walk.drifts(),
                (Some(calls), Some(most)) => {
                    let step = (walk.step(stream), walk.period());
                    walk.at_most(replay(&mut state.clone(), calls, step, most));
                }
                (Some(_), None) => {}
            }
        }
        Skip::Move(n) => {
            values(&mut other, walk);
            match calls {
                None => *state = other,
                Some(calls) => {
                    replay(state, calls, (walk.step(stream), walk.period()), n);
                }
            }
        }
    }
}

/// Rounds, what is acknowledged in each, and whether that uses the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) round: Round,
    pub(crate) pipe: PipeAck,
}

impl Rounds {
    fn check(&mut self, check: Check, time: Duration) -> bool {
        match check {
            Check::Validated { now, cwnd, answer } => {
                let is_valid = self.pipe.validated(now + time, cwnd);
                answer.is_none_or(|answer| answer == is_valid)
            }
            Check::Expired { now, answer } => self.pipe.expired(now + time) == answer,
        }
    }
}

impl Part for Rounds {
    type Calls = RoundCalls;

    /// The same as an acknowledgment at a time: those up to the end of each round, or up to the next check,
    /// are taken together, since `una` never becomes smaller.
    fn tell(&mut self, calls: &RoundCalls, (by, time): Distance, _: Instant) -> bool {
        let RoundCalls { acked, checks } = calls;
        let (mut at, mut taken) = (0, 0);
        let mut checks = checks.iter().peekable();
        loop {
            while let Some((_, check)) = checks.next_if(|(before, _)| *before <= at) {
                if !self.check(*check, time) {
                    return false;
                }
            }
            if at >= acked.len() {
                return true;
            }
            let limit = checks.peek().map_or(acked.len(), |(before, _)| *before);
            let end = self.round.end.saturating_sub(by);
            at += acked[at..limit].partition_point(|call| call.una < end);
            let is_end = at < limit;
            let last = acked[at.min(limit - 1)];
            if is_end {
                self.round.advance(last.una + by, last.next + by);
                at += 1;
            }
            self.pipe.on_ack(last.bytes - taken, is_end);
            taken = last.bytes;
        }
    }

    /// When the window was last validated decides nothing where nobody asks whether that was too long ago.
    /// It then may have stayed: states that are alike otherwise validate the window at the same places. One
    /// set at the very place might have been set before or after it.
    fn is_like(&self, here: Place, other: &Self, there: Place, calls: &RoundCalls) -> bool {
        let state =
            |it: &Self, una: u64| (it.round.end.wrapping_sub(una), it.pipe.samples, it.pipe.round_acked);
        let ago = |it: &Self, now: Instant| now.0.wrapping_sub(it.pipe.validated_at.0);
        let has_moved = ago(self, here.now) == ago(other, there.now);
        let is_asked = calls.checks.iter().any(|(_, check)| matches!(check, Check::Expired { .. }));
        let validated_at = other.pipe.validated_at;
        let stays = !is_asked && self.pipe.validated_at == validated_at && validated_at < there.now;
        state(self, here.una) == state(other, there.una)
            && (self.pipe.rounds == 0) == (other.pipe.rounds == 0)
            && (has_moved || stays)
    }

    fn come_round(&mut self, known: &Self, cycles: u64, (bytes, time): Distance) {
        let times = |present: u32, before: u32| {
            present.wrapping_add((u64::from(present.wrapping_sub(before)) * cycles) as u32)
        };
        self.round.number += (self.round.number - known.round.number) * cycles;
        self.round.end += bytes;
        self.pipe.rounds = times(self.pipe.rounds, known.pipe.rounds);
        self.pipe.asked = times(self.pipe.asked, known.pipe.asked);
        if self.pipe.validated_at != known.pipe.validated_at {
            self.pipe.validated_at += time;
        }
    }
}

impl Part for Fullness {
    type Calls = [Use];

    fn tell(&mut self, calls: &[Use], (bytes, _): Distance, _: Instant) -> bool {
        calls.iter().all(|call| match *call {
            Use::Sent { una, next, in_flight, full } => {
                self.after_send(una + bytes, next + bytes, in_flight, full);
                true
            }
            Use::Limited { cwnd, slow_start, answer } => self.cwnd_limited(cwnd, slow_start) == answer,
        })
    }

    fn is_like(&self, here: Place, other: &Self, there: Place, _: &[Use]) -> bool {
        let state = |it: &Self, una: u64| (it.limited, it.most_out, it.until.wrapping_sub(una));
        state(self, here.una) == state(other, there.una)
    }

    fn come_round(&mut self, _: &Self, _: u64, (bytes, _): Distance) {
        self.until += bytes;
    }
}

/// The estimator of the RTT, and the timers that follow from it.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    pub(crate) rtt: RttEstimator,
    pub(crate) retransmit: Instant,
    /// The tail loss probe.
    pub(crate) probe: Instant,
}

impl Clock {
    /// True if a timer has expired, or expires now: it is not known what comes first.
    fn is_due(&self, now: Instant) -> bool {
        self.retransmit.min(self.probe) <= now
    }
}

impl Part for Clock {
    type Calls = [Timing];

    fn tell(&mut self, calls: &[Timing], (bytes, time): Distance, end: Instant) -> bool {
        for call in calls {
            match *call {
                Timing::RoundTrip { rtt, una, next, per_round, seen } => {
                    self.rtt.take(rtt, (una + bytes, next + bytes), per_round);
                    // who looks at it must see the same as in the first repetition, whenever that is
                    if seen.is_some_and(|seen| seen != self.rtt.seen()) {
                        return false;
                    }
                }
                Timing::Restart { now, stops } => {
                    let now = now + time;
                    if self.is_due(now) {
                        return false;
                    }
                    self.retransmit = if stops { Instant::NEVER } else { now + self.rtt.rto() };
                }
                Timing::Probe { now, more } => {
                    let now = now + time;
                    if self.is_due(now) {
                        return false;
                    }
                    if self.probe == Instant::NEVER && self.retransmit != Instant::NEVER {
                        self.probe = (now + self.rtt.probe_timeout(more)).min(self.retransmit);
                    }
                }
                Timing::NoProbe { now } => {
                    if self.is_due(now + time) {
                        return false;
                    }
                    self.probe = Instant::NEVER;
                }
                Timing::Idle { idle, answer } => {
                    if answer || idle > self.rtt.rto() {
                        return false;
                    }
                }
                Timing::Read => return false,
            }
        }
        !self.is_due(end)
    }

    fn is_like(&self, here: Place, other: &Self, there: Place, _: &[Timing]) -> bool {
        let ahead = |it: &Self, place: Place| {
            [it.retransmit, it.probe].map(|at| at.as_deadline().map(|at| at.0.wrapping_sub(place.now.0)))
        };
        ahead(self, here) == ahead(other, there) && self.rtt.is_like(here.una, &other.rtt, there.una)
    }

    fn come_round(&mut self, _: &Self, _: u64, (bytes, time): Distance) {
        self.rtt.come_round(bytes);
        for at in [&mut self.retransmit, &mut self.probe] {
            if *at != Instant::NEVER {
                *at += time;
            }
        }
    }
}
