//! What a sender is only told under exact fast-forward: rounds of data, the use of the window, the RTT.
//!
//! Rounds and the use of the window are counted by positions: a round ends when what was sent when it began
//! is acknowledged. Its length is seldom that of a repetition (31 segments of 32, or 128 while the remainders
//! of a link's rate come round after 193). The estimator of the RTT takes some thousand samples to reach the
//! value at which it stays. But as long as the window is no limit and the retransmission timer does not
//! expire, all three decide nothing: they are told what happens. So what they are told during one repetition
//! is written down, and told again for each that is skipped, until their state relative to stream and time
//! comes round too. A repetition in which they would answer otherwise than in the first is not skipped.

use crate::config::Validation;
use crate::connection::{Connection, Round};
use crate::rtt::RttEstimator;
use crate::scheme::Detection;
use crate::timers::Timer;
use crate::usage::{Fullness, PipeAck, WindowUsage};
use bentpipe_base::shift::{Skip, Walk};
use bentpipe_base::{Duration, Instant};

/// Most calls written down.
const MOST_CALLS: usize = 1 << 15;
/// Number of values that [`Told::values`] visits.
const VALUES: usize = 15;

/// An acknowledgment: data up to `una` is acknowledged, and up to `next` sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) una: u64,
    pub(crate) next: u64,
    /// Bytes that it acknowledges; in a list, with those of all before.
    pub(crate) bytes: u64,
}

/// What the use of the window is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// After sending.
    Sent { una: u64, next: u64, in_flight: u64, full: bool },
    /// Whether the window was the limit, and the answer.
    Limited { cwnd: u64, slow_start: bool, answer: bool },
}

/// What the estimator of the RTT and its timer are told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timing {
    /// A sample of the RTT.
    RoundTrip { rtt: Duration, una: u64, next: u64, per_round: (u64, u64) },
    /// The retransmission timer restarts, or stops.
    Restart { now: Instant, stops: bool },
}

/// The calls of a repetition, while they are written down: those of each part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Option<Box<Lists>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    acked: Vec<Acked>,
    uses: Vec<Use>,
    timings: Vec<Timing>,
}

impl Calls {
    /// Writes a call down, if it is wanted.
    #[inline]
    pub(crate) fn note(&mut self, call: impl Call) {
        if self.0.is_some() {
            self.write_down(call);
        }
    }

    #[inline(never)]
    fn write_down(&mut self, call: impl Call) {
        let Some(lists) = &mut self.0 else { return };
        if call.write_down(lists) >= MOST_CALLS {
            self.0 = None;
        }
    }
}

/// Something that is told.
pub(crate) trait Call {
    /// Adds it to its list; returns the length.
    fn write_down(self, lists: &mut Lists) -> usize;
}

impl Call for Acked {
    fn write_down(mut self, lists: &mut Lists) -> usize {
        self.bytes += lists.acked.last().map_or(0, |last| last.bytes);
        lists.acked.push(self);
        lists.acked.len()
    }
}

impl Call for Use {
    fn write_down(self, lists: &mut Lists) -> usize {
        lists.uses.push(self);
        lists.uses.len()
    }
}

impl Call for Timing {
    fn write_down(self, lists: &mut Lists) -> usize {
        lists.timings.push(self);
        lists.timings.len()
    }
}

/// A place in stream and time.
#[derive(Clone, Copy, Debug)]
struct Place {
    una: u64,
    now: Instant,
}

/// By how many bytes and how much time.
type Distance = (u64, Duration);

/// State that is only told what happens, and does not depend on the other parts. Each comes round on its
/// own: with rounds of 127 segments, windows of 128 and repetitions of 193, all together would do so only
/// after 16 256 repetitions.
trait Part: Clone {
    /// What it is told.
    type Call;
    /// Tells `calls`, all later by `by`; `end` is when they end. False if an answer is another one, or the
    /// retransmission timer would expire.
    fn tell(&mut self, calls: &[Self::Call], by: Distance, end: Instant) -> bool;
    /// True if both states are alike, each relative to its place.
    fn is_like(&self, here: Place, other: &Self, there: Place) -> bool;
    /// Since `known` the state has come round; it does so `cycles` times more, `by` in all.
    fn come_round(&mut self, known: &Self, cycles: u64, by: Distance);

    /// Tells `calls` for `n` repetitions, each a `step` later, from `place` on. Returns after how many an
    /// answer would be another one, `n` if none; the state is that up to there.
    fn replay(&mut self, calls: &[Self::Call], mut place: Place, (step, period): Distance, n: u64) -> u64 {
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
            if self.is_like(place, &known, known_place) {
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

/// Rounds, and what is acknowledged in each.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    round: Round,
    pipe: PipeAck,
}

impl Part for Rounds {
    type Call = Acked;

    /// The same as an acknowledgment at a time: those up to the end of each round are taken together, since
    /// `una` never becomes smaller.
    fn tell(&mut self, calls: &[Acked], (by, _): Distance, _: Instant) -> bool {
        let (mut at, mut taken) = (0, 0);
        while at < calls.len() {
            let end = self.round.end.saturating_sub(by);
            at += calls[at..].partition_point(|call| call.una < end);
            let is_end = at < calls.len();
            let last = calls[at.min(calls.len() - 1)];
            if is_end {
                self.round.advance(last.una + by, last.next + by);
                at += 1;
            }
            self.pipe.on_ack(last.bytes - taken, is_end);
            taken = last.bytes;
        }
        true
    }

    fn is_like(&self, here: Place, other: &Self, there: Place) -> bool {
        let state =
            |it: &Self, una: u64| (it.round.end.wrapping_sub(una), it.pipe.samples, it.pipe.round_acked);
        state(self, here.una) == state(other, there.una)
    }

    fn come_round(&mut self, known: &Self, cycles: u64, (bytes, _): Distance) {
        self.round.number += (self.round.number - known.round.number) * cycles;
        self.round.end += bytes;
        let rounds = u64::from(self.pipe.rounds.wrapping_sub(known.pipe.rounds));
        self.pipe.rounds = self.pipe.rounds.wrapping_add((rounds * cycles) as u32);
    }
}

impl Part for Fullness {
    type Call = Use;

    fn tell(&mut self, calls: &[Use], (bytes, _): Distance, _: Instant) -> bool {
        calls.iter().all(|call| match *call {
            Use::Sent { una, next, in_flight, full } => {
                self.after_send(una + bytes, next + bytes, in_flight, full);
                true
            }
            Use::Limited { cwnd, slow_start, answer } => self.cwnd_limited(cwnd, slow_start) == answer,
        })
    }

    fn is_like(&self, here: Place, other: &Self, there: Place) -> bool {
        let state = |it: &Self, una: u64| (it.limited, it.most_out, it.until.wrapping_sub(una));
        state(self, here.una) == state(other, there.una)
    }

    fn come_round(&mut self, _: &Self, _: u64, (bytes, _): Distance) {
        self.until += bytes;
    }
}

/// The estimator of the RTT, and the timer that follows from it.
#[derive(Clone, Debug)]
struct Clock {
    rtt: RttEstimator,
    retransmit: Instant,
}

impl Part for Clock {
    type Call = Timing;

    fn tell(&mut self, calls: &[Timing], (bytes, time): Distance, end: Instant) -> bool {
        for call in calls {
            match *call {
                Timing::RoundTrip { rtt, una, next, per_round } => {
                    self.rtt.take(rtt, (una + bytes, next + bytes), per_round);
                }
                Timing::Restart { now, stops } => {
                    let now = now + time;
                    if self.retransmit <= now {
                        return false;
                    }
                    self.retransmit = if stops { Instant::NEVER } else { now + self.rtt.rto() };
                }
            }
        }
        self.retransmit > end
    }

    fn is_like(&self, here: Place, other: &Self, there: Place) -> bool {
        let ahead =
            |it: &Self, place: Place| it.retransmit.as_deadline().map(|at| at.0.wrapping_sub(place.now.0));
        ahead(self, here) == ahead(other, there) && self.rtt.is_like(&other.rtt)
    }

    fn come_round(&mut self, _: &Self, _: u64, (_, time): Distance) {
        if self.retransmit != Instant::NEVER {
            self.retransmit += time;
        }
    }
}

/// The state of what is only told.
#[derive(Clone, Debug)]
struct Told {
    rounds: Rounds,
    fullness: Fullness,
    clock: Clock,
    validated_at: Instant,
}

impl Told {
    fn values(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Fullness { limited, most_out, until } = &mut self.fullness;
        walk.same(&(*limited, *most_out));
        walk.position(stream, until);
        let PipeAck { samples, round_acked, rounds } = &mut self.rounds.pipe;
        walk.same(&(*samples, *round_acked));
        walk.count_u32(rounds);
        let Round { number, end } = &mut self.rounds.round;
        walk.count(number);
        walk.position(stream, end);
        self.clock.rtt.moving(walk);
        walk.time(&mut self.clock.retransmit);
    }

    /// Tells all parts what they were told, `n` times; see [`Part::replay`]. The state is of use only if the
    /// answer is `n`.
    fn replay(&mut self, calls: &Lists, place: Place, step: Distance, n: u64) -> u64 {
        let n = self.clock.replay(&calls.timings, place, step, n);
        let n = self.fullness.replay(&calls.uses, place, step, n);
        self.rounds.replay(&calls.acked, place, step, n)
    }
}

impl Connection {
    /// Writes down what is told.
    #[inline]
    pub(crate) fn note(&mut self, call: impl Call) {
        self.usage.calls.note(call);
    }

    fn told(&self) -> Told {
        let retransmit = self.timers.at(Timer::Retransmit).unwrap_or(Instant::NEVER);
        let WindowUsage { fullness, pipe, validated_at, calls: _ } = self.usage;
        let rounds = Rounds { round: self.round, pipe };
        Told { rounds, fullness, clock: Clock { rtt: self.rtt.clone(), retransmit }, validated_at }
    }

    fn put_back(&mut self, told: Told) {
        let Told { rounds, fullness, clock, validated_at } = told;
        self.round = rounds.round;
        (self.usage.fullness, self.usage.pipe, self.usage.validated_at) =
            (fullness, rounds.pipe, validated_at);
        self.rtt = clock.rtt;
        self.timers.set(Timer::Retransmit, clock.retransmit);
    }

    /// True if something else looks at rounds.
    fn looks_at_rounds(&self) -> bool {
        self.linux() || self.config.validation == Validation::Validate
    }

    /// True if something else looks at the RTT.
    fn looks_at_rtt(&self) -> bool {
        self.config.pacing || self.recovery.detection() == Detection::Rack
    }

    /// Visits what is only told to a sender of `stream`.
    pub(crate) fn shift_told(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let mut told = self.told();
        self.rtt.shift_resting(walk);
        if self.looks_at_rounds() {
            if self.config.validation == Validation::Validate {
                walk.time(&mut told.validated_at);
            } else {
                walk.past(&mut told.validated_at);
            }
            told.values(walk, stream);
            return self.put_back(told);
        }
        walk.past(&mut told.validated_at);
        if self.looks_at_rtt() {
            self.rtt.moving(walk);
            walk.time(&mut told.clock.retransmit.clone());
        }
        let place = Place { una: self.board.una(), now: walk.now() };
        let steps = |walk: &Walk<'_>| (walk.step(stream), walk.period());
        match walk.skip() {
            Skip::Record { calls } => {
                told.values(walk, stream);
                self.usage.calls = Calls(calls.then(Default::default));
            }
            Skip::Compare { most } => {
                let is_alike = walk.try_values(VALUES, |walk| told.values(walk, stream));
                match (&self.usage.calls.0, most) {
                    _ if is_alike => {}
                    (None, _) => walk.drifts(),
                    (Some(calls), Some(most)) => {
                        let n = self.told().replay(calls, place, steps(walk), most);
                        walk.at_most(n);
                    }
                    (Some(_), None) => {}
                }
            }
            Skip::Move(n) => {
                told.values(walk, stream);
                if let Some(calls) = &self.usage.calls.0 {
                    let validated_at = told.validated_at;
                    told = self.told();
                    told.validated_at = validated_at;
                    told.replay(calls, place, steps(walk), n);
                }
                self.put_back(told);
            }
        }
    }
}

#[cfg(test)]
#[path = "told_tests.rs"]
mod tests;
