//! The state of a network as numbers that a repeated round trip moves by a constant: what exact fast-forward
//! compares and moves.
//!
//! A type says in [`Shift::shift`] what each of its fields is; nothing else is ever skipped. One walk over
//! all fields, in a fixed order, serves three purposes: it records the state, it compares a later state with
//! the recorded one, and it moves the state by `n` times the difference. A state repeats the recorded one, a
//! time `T` later, if
//! - every value that decides something is equal (`same`);
//! - every time is later by `T` (`time`), and every stream position by what its stream has moved
//!   (`position`), in 32 bits on the wire;
//! - the rest are sums that decide nothing (`count`).
//!
//! The network is deterministic and does not look at the absolute time, so it then does the same again, and
//! after `n` more rounds each value has moved `n` times as far. A value that is still the same and is read
//! only for a comparison that cannot change any more may stay (`past`, `mark`). A pending time that does not
//! move with the others, such as the end of a link's present state,
//! is an end of what may be skipped (`horizon`, `deadline`).

#[cfg(test)]
mod tests;
mod words;

use crate::events::Key;
use crate::packet::Addr;
use crate::time::{Duration, Instant};
pub use words::Words;

/// State that can be compared and moved.
pub trait Shift {
    /// Tells `walk` what each field is.
    fn shift(&mut self, walk: &mut Walk<'_>);
}

/// A direction of a connection: address and port of its sender, then of its receiver.
pub type Stream = (Addr, u16, Addr, u16);

/// A recorded state.
#[derive(Debug, Default)]
pub struct Recorded {
    /// When it was recorded.
    pub at: Instant,
    values: Vec<u64>,
    /// Wake-ups that waited, in order.
    wakes: Vec<Key>,
}

/// What the walk does with each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Record,
    Compare,
    /// By this many repetitions.
    Move(u64),
}

/// A walk over the state of a network.
#[derive(Debug)]
pub struct Walk<'a> {
    purpose: Purpose,
    recorded: &'a mut Recorded,
    /// Index of the next value.
    at: usize,
    now: Instant,
    /// By how much each stream has moved, as far as that is known.
    streams: Vec<(Stream, u64)>,
    /// What is visited refuses, or is not a repetition.
    ended: bool,
    refused: Option<&'static str>,
    /// Before this the state must have been moved to.
    horizon: Instant,
    /// Most repetitions that may be skipped.
    most: u64,
    /// All but something that is only told what happens has repeated its state, or a link's state has ended
    /// without a change: the next repetition may be one.
    drifts: bool,
    /// Calls are to be written down.
    calls: bool,
    /// How often calls are to be told again at most.
    again: Option<u64>,
}

impl<'a> Walk<'a> {
    fn new(purpose: Purpose, recorded: &'a mut Recorded, now: Instant) -> Self {
        let (horizon, most) = (Instant::NEVER, u64::MAX);
        Self {
            purpose,
            recorded,
            at: 0,
            now,
            streams: Vec::new(),
            ended: false,
            refused: None,
            horizon,
            most,
            drifts: false,
            calls: false,
            again: None,
        }
    }

    /// A walk that records the state at `now`. With `calls`, what is only told what happens writes down what
    /// it is told from then on.
    pub fn record(recorded: &'a mut Recorded, now: Instant, calls: bool) -> Self {
        recorded.at = now;
        recorded.values.clear();
        Self { calls, ..Self::new(Purpose::Record, recorded, now) }
    }

    /// A walk that compares the state at `now` with the recorded one. Once another has found that all else
    /// allows `most` repetitions, it also asks what is only told how many it allows.
    pub fn compare(recorded: &'a mut Recorded, now: Instant, most: Option<u64>) -> Self {
        Self { again: most, ..Self::new(Purpose::Compare, recorded, now) }
    }

    /// A walk that moves the state at `now`, which repeats the recorded one, by `n` repetitions.
    pub fn forward(recorded: &'a mut Recorded, now: Instant, n: u64) -> Self {
        Self::new(Purpose::Move(n), recorded, now)
    }

    pub(crate) const fn purpose(&self) -> Purpose {
        self.purpose
    }

    pub(crate) const fn wakes(&mut self) -> &mut Vec<Key> {
        &mut self.recorded.wakes
    }

    /// The state does not repeat the recorded one.
    pub(crate) const fn end(&mut self) {
        self.ended = true;
    }

    /// Something that is no repetition happens at `at`.
    pub(crate) fn fixed_end(&mut self, at: Instant) {
        self.horizon = self.horizon.min(at);
    }

    /// The time since the recorded state.
    pub const fn period(&self) -> Duration {
        self.now.since(self.recorded.at)
    }

    /// The present time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// By how much a walk that moves does so in time; zero for the others.
    pub fn distance(&self) -> Duration {
        match self.purpose {
            Purpose::Move(n) => self.period() * n,
            _ => Duration::ZERO,
        }
    }

    /// True once nothing more needs to be visited: the state refuses, or does not repeat the recorded one.
    #[inline]
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Why the state cannot be moved, if it refuses.
    pub const fn refusal(&self) -> Option<&'static str> {
        self.refused
    }

    /// How many repetitions may be skipped up to `until`, after a comparison; 0 if this is none.
    pub fn repetitions(&self, until: Instant) -> u64 {
        let period = self.period();
        if self.ended || period.is_zero() {
            return 0;
        }
        // what is due at the horizon has not happened at the end of the last repetition
        let end = until.min(Instant(self.horizon.0.saturating_sub(1)));
        (end.since(self.now).0 / period.0).min(self.most)
    }

    /// The state cannot be moved, for this reason.
    #[cold]
    pub fn refuse(&mut self, why: &'static str) {
        self.refused.get_or_insert(why);
        self.ended = true;
    }

    /// Refuses unless `is_plain`.
    #[inline]
    pub fn expect(&mut self, is_plain: bool, why: &'static str) {
        if !is_plain {
            self.refuse(why);
        }
    }

    /// Visits one value; `repeats` says whether the recorded and the present one are alike.
    #[inline]
    fn value(&mut self, present: u64, repeats: impl FnOnce(&mut Self, u64) -> bool) -> u64 {
        if self.ended {
            return present;
        }
        if self.purpose == Purpose::Record {
            self.recorded.values.push(present);
            return present;
        }
        let before = self.recorded.values.get(self.at).copied();
        self.at += 1;
        let Some(before) = before else {
            self.ended = true;
            return present;
        };
        if let Purpose::Move(n) = self.purpose {
            repeats(self, before); // for the steps of streams
            return present.wrapping_add(present.wrapping_sub(before).wrapping_mul(n));
        }
        if !repeats(self, before) {
            self.ended = true;
        }
        present
    }

    /// A value that decides something, or that is not a sum.
    #[inline]
    pub fn same<T: Words + ?Sized>(&mut self, value: &T) {
        value.words(&mut |word| {
            self.value(word, |_, before| before == word);
        });
    }

    /// A point in time; [`Instant::NEVER`] stays.
    #[inline]
    pub fn time(&mut self, at: &mut Instant) {
        let present = at.0;
        at.0 = self.value(present, |walk, before| walk.moved(before, present));
    }

    fn moved(&self, before: u64, present: u64) -> bool {
        let never = Instant::NEVER.0;
        let is_moved = present.wrapping_sub(before) == self.period().0;
        (before == never && present == never) || (before != never && present != never && is_moved)
    }

    /// A point in time that may have stayed the same if it is over.
    #[inline]
    pub fn past(&mut self, at: &mut Instant) {
        let (present, then) = (at.0, self.recorded.at);
        at.0 = self.value(present, |walk, before| {
            (before == present && before <= then.0) || walk.moved(before, present)
        });
    }

    /// What happens at this time is no repetition, and what ends `lead` from now on must end before it. One
    /// that is over, and only waits for something to happen, must be over in the recorded state too.
    pub fn horizon(&mut self, at: Instant, lead: Duration) {
        self.value(at.0, |walk, before| {
            if at > walk.now {
                walk.horizon = walk.horizon.min(Instant(at.0.saturating_sub(lead.0)));
            }
            // a repetition must not contain the end of a state, although nothing has changed then
            walk.drifts |= before != at.0;
            at > walk.now || (before == at.0 && at <= walk.recorded.at)
        });
    }

    /// A timer: it moves, or it stays and limits what is skipped.
    #[inline]
    pub fn deadline(&mut self, at: &mut Instant) {
        let present = *at;
        at.0 = self.value(present.0, |walk, before| {
            if walk.moved(before, present.0) {
                return true;
            }
            walk.horizon = walk.horizon.min(present);
            before == present.0 && present > walk.now
        });
    }

    /// An optional point in time.
    pub fn maybe_time(&mut self, at: &mut Option<Instant>) {
        self.same(&at.is_some());
        if let Some(at) = at {
            self.time(at);
        }
    }

    /// A sum that decides nothing.
    #[inline]
    pub fn count(&mut self, sum: &mut u64) {
        *sum = self.value(*sum, |_, _| true);
    }

    /// A sum that decides nothing and stops at its largest value.
    #[inline]
    pub fn count_u32(&mut self, sum: &mut u32) {
        let moved = self.value(u64::from(*sum), |_, _| true);
        *sum = u32::try_from(moved).unwrap_or(u32::MAX);
    }

    /// A sum of 128 bits that decides nothing.
    pub fn count_u128(&mut self, sum: &mut u128) {
        let halves = [*sum as u64, (*sum >> 64) as u64];
        let at = self.at;
        for half in halves {
            self.value(half, |_, _| true);
        }
        if let (Purpose::Move(n), Some(&[low, high])) = (self.purpose, self.recorded.values.get(at..at + 2)) {
            let before = u128::from(high) << 64 | u128::from(low);
            *sum += (*sum - before) * u128::from(n);
        }
    }

    /// Index of a stream.
    pub fn stream(&mut self, stream: Stream) -> usize {
        self.streams.iter().position(|(known, _)| *known == stream).unwrap_or_else(|| {
            self.streams.push((stream, u64::MAX));
            self.streams.len() - 1
        })
    }

    /// True if the stream has moved by this, which it has if nothing else was said so far.
    fn is_step(&mut self, stream: usize, step: u64) -> bool {
        let known = &mut self.streams[stream].1;
        if *known == u64::MAX {
            *known = step;
        }
        *known == step
    }

    /// A position in a stream.
    #[inline]
    pub fn position(&mut self, stream: usize, position: &mut u64) {
        let present = *position;
        *position = self.value(present, |walk, before| walk.is_step(stream, present.wrapping_sub(before)));
    }

    /// A position that may have stayed the same, because it is passed: whatever is compared with it has gone
    /// further. 0 stands for none.
    #[inline]
    pub fn mark(&mut self, stream: usize, position: &mut u64) {
        let present = *position;
        *position = self.value(present, |walk, before| {
            before == present || walk.is_step(stream, present.wrapping_sub(before))
        });
    }

    /// The 32 bits of a position that are on the wire.
    #[inline]
    pub fn wire_position(&mut self, stream: usize, seq: &mut u32) {
        let present = *seq;
        let moved = self.value(u64::from(present), |walk, before| {
            let step = walk.streams[stream].1;
            // a stream whose ends were not visited before its packets is unknown
            step != u64::MAX && present.wrapping_sub(before as u32) == step as u32
        });
        *seq = moved as u32;
    }

    /// A value of a clock that counts milliseconds.
    #[inline]
    pub fn stamp(&mut self, stamp: &mut u32) {
        const MS: u64 = 1_000_000;
        let present = *stamp;
        let moved = self.value(u64::from(present), |walk, before| {
            let period = walk.period().0;
            period % MS == 0 && present.wrapping_sub(before as u32) == (period / MS) as u32
        });
        *stamp = moved as u32;
    }

    /// The position after the last byte written to a stream: it moves, or stays `left` bytes ahead of where
    /// the present repetition ends.
    pub fn written(&mut self, stream: usize, written: &mut u64, left: u64) {
        let present = *written;
        *written = self.value(present, |walk, before| {
            let step = walk.streams[stream].1;
            if before == present {
                // without a step nothing is sent
                walk.most = walk.most.min(left.checked_div(step).unwrap_or(u64::MAX));
            }
            before == present || walk.is_step(stream, present.wrapping_sub(before))
        });
    }

    /// Bytes that are still to be written to a stream.
    pub fn unwritten(&mut self, stream: usize, bytes: &mut u64) {
        let present = *bytes;
        *bytes = self.value(present, |walk, before| {
            let step = before.wrapping_sub(present);
            let left = present.saturating_sub(1).checked_div(step).unwrap_or(u64::MAX);
            walk.most = walk.most.min(left);
            before == present || walk.is_step(stream, step)
        });
    }

    /// A number that becomes smaller, and decides nothing before it would fall below 0.
    pub fn countdown(&mut self, left: &mut u64) {
        let present = *left;
        *left = self.value(present, |walk, before| {
            let step = before.wrapping_sub(present);
            walk.most = walk.most.min(present.checked_div(step).unwrap_or(u64::MAX));
            before >= present
        });
    }

    /// What the walk is for, for a state that is only told what happens.
    pub const fn skip(&self) -> Skip {
        match self.purpose {
            Purpose::Record => Skip::Record { calls: self.calls },
            Purpose::Compare => Skip::Compare { most: self.again },
            Purpose::Move(n) => Skip::Move(n),
        }
    }

    /// Compares `count` values without an end to the walk; true if they repeat the recorded ones.
    pub fn try_values(&mut self, count: usize, visit: impl FnOnce(&mut Self)) -> bool {
        if self.ended {
            return true;
        }
        let at = self.at;
        visit(self);
        self.at = at + count;
        !core::mem::take(&mut self.ended)
    }

    /// By how much a stream moves in a repetition.
    pub fn step(&self, stream: usize) -> u64 {
        self.streams[stream].1
    }

    /// No more repetitions than this may be skipped.
    pub fn at_most(&mut self, repetitions: u64) {
        self.most = self.most.min(repetitions);
    }

    /// The state repeats itself but for something that is only told what happens.
    pub const fn drifts(&mut self) {
        self.drifts = true;
    }

    /// True if this is no repetition, but the next may be one.
    pub const fn has_drifted(&self) -> bool {
        self.drifts
    }

    /// A field that is a type of its own.
    #[inline]
    pub fn inner<T: Shift + ?Sized>(&mut self, inner: &mut T) {
        if !self.ended {
            inner.shift(self);
        }
    }
}

/// What a walk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// The state is recorded.
    Record {
        /// What is told from now on is written down.
        calls: bool,
    },
    /// The state is compared.
    Compare {
        /// Everything else repeats itself this often: what was told is told again.
        most: Option<u64>,
    },
    /// The state is moved by this many repetitions.
    Move(u64),
}

/// Implements [`Shift`] for a struct: a kind of value and its fields, all of them. `unused` is not part of
/// the state: it never changes, or is a cache.
#[macro_export]
macro_rules! shift_fields {
    ($type:ty { $($kind:ident: $($field:ident),+;)* }) => {
        impl $crate::shift::Shift for $type {
            fn shift(&mut self, walk: &mut $crate::shift::Walk<'_>) {
                let Self { $($($field,)+)* } = self;
                $( $( $crate::shift_fields!(@ $kind walk $field); )+ )*
            }
        }
    };
    (@ unused $walk:ident $field:ident) => { let _ = $field; };
    (@ same $walk:ident $field:ident) => { $walk.same(&*$field); };
    (@ time $walk:ident $field:ident) => { $walk.time($field); };
    (@ past $walk:ident $field:ident) => { $walk.past($field); };
    (@ count $walk:ident $field:ident) => { $walk.count($field); };
    (@ inner $walk:ident $field:ident) => { $walk.inner($field); };
}
