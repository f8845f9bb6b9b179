//! What a sender is only told under exact fast-forward: rounds of data, the use of the window, the RTT.
//!
//! Rounds and the use of the window are counted by positions: a round ends when what was sent when it began
//! is acknowledged. Its length is seldom that of a repetition (31 segments of 32, or 128 while the remainders
//! of a link's rate come round after 193). The estimator of the RTT takes some thousand samples to reach the
//! value at which it stays. But as long as the window is no limit, and neither the retransmission timer nor
//! that of the tail loss probe expires, all three decide nothing: they are told what happens. So what they
//! are told during one repetition is written down, and told again for each that is skipped, until their state
//! relative to stream and time comes round too. A repetition in which they would answer otherwise than in the
//! first is not skipped.
//!
//! With RFC 7661 a window is also validated by what is acknowledged in a round (pipeACK). Whether it is
//! decides nothing unless the window is the limit; when it last was decides something only once nothing is
//! outstanding. Both questions are written down too, the first with the answer only if that decides.

mod parts;

use crate::connection::{Connection, Round};
use crate::rtt::{RttEstimator, SeenRtt};
use crate::timers::Timer;
use crate::usage::{Fullness, PipeAck, WindowUsage};
use bentpipe_base::shift::{Skip, Walk};
use bentpipe_base::{Duration, Instant};
use parts::{Clock, Rounds};
pub(crate) use parts::{Distance, Part, Place, visit};

/// Most calls written down.
const MOST_CALLS: usize = 1 << 15;
/// Number of values that [`Told::values`] visits.
const VALUES: usize = 18;

/// An acknowledgment: data up to `una` is acknowledged, and up to `next` sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) una: u64,
    pub(crate) next: u64,
    /// Bytes that it acknowledges; in a list, with those of all before.
    pub(crate) bytes: u64,
}

/// A question about the use of the window (RFC 7661), and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    /// Whether it is validated; no answer if that decides nothing.
    Validated { now: Instant, cwnd: u64, answer: Option<bool> },
    /// Whether it was not for too long.
    Expired { now: Instant, answer: bool },
}

/// What the use of the window is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// After sending.
    Sent { una: u64, next: u64, in_flight: u64, full: bool },
    /// Whether the window was the limit, and the answer.
    Limited { cwnd: u64, slow_start: bool, answer: bool },
}

/// What the estimator of the RTT and its timers are told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timing {
    /// A sample of the RTT. If something else looks at the RTT, the sender has `seen` this afterwards.
    RoundTrip { rtt: Duration, una: u64, next: u64, per_round: (u64, u64), seen: Option<SeenRtt> },
    /// The retransmission timer restarts, or stops.
    Restart { now: Instant, stops: bool },
    /// Whether the sender was idle for longer than the RTO, and the answer.
    Idle { idle: Duration, answer: bool },
    /// The tail loss probe's timer is set, unless it runs: to two round trips and `more`.
    Probe { now: Instant, more: Duration },
    /// It stops.
    NoProbe { now: Instant },
    /// Something else depends on the RTO.
    Read,
}

/// The calls of a repetition, while they are written down: those of each part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Option<Box<Lists>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    rounds: RoundCalls,
    uses: Vec<Use>,
    timings: Vec<Timing>,
}

/// Acknowledgments, and questions, each with the number of acknowledgments before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundCalls {
    acked: Vec<Acked>,
    checks: Vec<(usize, Check)>,
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
        let acked = &mut lists.rounds.acked;
        self.bytes += acked.last().map_or(0, |last| last.bytes);
        acked.push(self);
        acked.len()
    }
}

impl Call for Check {
    fn write_down(self, lists: &mut Lists) -> usize {
        let RoundCalls { acked, checks } = &mut lists.rounds;
        checks.push((acked.len(), self));
        checks.len()
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

/// The state of what is only told.
#[derive(Clone, Debug)]
struct Told {
    rounds: Rounds,
    fullness: Fullness,
    clock: Clock,
}

impl Told {
    fn values(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Fullness { limited, most_out, until } = &mut self.fullness;
        walk.same(&(*limited, *most_out));
        walk.position(stream, until);
        let PipeAck { samples, round_acked, rounds, validated_at, asked } = &mut self.rounds.pipe;
        walk.same(&(*samples, *round_acked));
        walk.count_u32(rounds);
        // decides nothing while nobody asks: see the part
        walk.past(validated_at);
        walk.same(asked);
        let Round { number, end } = &mut self.rounds.round;
        walk.count(number);
        walk.position(stream, end);
        self.clock.rtt.moving(walk, stream);
        walk.time(&mut self.clock.retransmit);
        walk.time(&mut self.clock.probe);
    }

    /// Tells all parts what they were told, `n` times; see [`Part::replay`]. The state is of use only if the
    /// answer is `n`.
    fn replay(&mut self, calls: &Lists, place: Place, step: Distance, n: u64) -> u64 {
        let n = self.clock.replay(&calls.timings, place, step, n);
        let n = self.fullness.replay(&calls.uses, place, step, n);
        self.rounds.replay(&calls.rounds, place, step, n)
    }
}

impl Connection {
    /// Writes down what is told.
    #[inline]
    pub(crate) fn note(&mut self, call: impl Call) {
        self.usage.calls.note(call);
    }

    fn told(&self) -> Told {
        let [retransmit, probe] = [Timer::Retransmit, Timer::TailProbe]
            .map(|timer| self.timers.at(timer).unwrap_or(Instant::NEVER));
        let WindowUsage { fullness, pipe, calls: _ } = self.usage;
        let rounds = Rounds { round: self.round, pipe };
        Told { rounds, fullness, clock: Clock { rtt: self.rtt.clone(), retransmit, probe } }
    }

    fn put_back(&mut self, told: Told) {
        let Told { rounds, fullness, clock } = told;
        self.round = rounds.round;
        (self.usage.fullness, self.usage.pipe) = (fullness, rounds.pipe);
        self.rtt = clock.rtt;
        self.timers.set(Timer::Retransmit, clock.retransmit);
        self.timers.set(Timer::TailProbe, clock.probe);
    }

    /// True if something else looks at the RTT.
    fn looks_at_rtt(&self) -> bool {
        self.config.pacing || self.linux()
    }

    /// Visits what is only told to a sender of `stream`.
    pub(crate) fn shift_told(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let mut told = self.told();
        self.rtt.shift_resting(walk);
        if self.looks_at_rtt() {
            walk.same(&self.rtt.seen());
        }
        walk.same(&[Timer::Retransmit, Timer::TailProbe].map(|timer| self.timers.runs(timer)));
        let place = Place { una: self.board.una(), now: walk.now() };
        let values = VALUES + if self.linux() { RttEstimator::LINUX_VALUES } else { 0 };
        let each = |told: &mut Told, walk: &mut Walk<'_>| told.values(walk, stream);
        visit(walk, stream, (&mut told, &mut self.usage.calls.0), (values, each), |told, calls, step, n| {
            told.replay(calls, place, step, n)
        });
        if matches!(walk.skip(), Skip::Move(_)) {
            self.put_back(told);
        }
        self.cc.shift_told(walk, stream, place.una);
    }
}

#[cfg(test)]
#[path = "told_tests.rs"]
mod tests;
