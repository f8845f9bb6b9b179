//! Clocks that count milliseconds.

use super::{Purpose, Walk};
use crate::packet::Phase;
use crate::time::Instant;

impl Walk<'_> {
    /// A value of a clock that counts milliseconds, and what it leaves out: it moves to the nanosecond. What
    /// milliseconds decide need not repeat itself with it: see [`Self::choice`].
    #[inline]
    pub fn stamp(&mut self, stamp: &mut u32, phase: &mut Phase) {
        /// The clock comes round after this time.
        const ALL: u64 = Phase::MS << 32;
        let present = u64::from(*stamp) * Phase::MS + u64::from(phase.ns());
        self.value(present, |walk, before| (before + walk.period().0 % ALL) % ALL == present);
        if let Purpose::Move(_) = self.purpose {
            let moved = Instant((present + self.distance().0 % ALL) % ALL);
            (*stamp, *phase) = ((moved.0 / Phase::MS) as u32, Phase::of(moved));
        }
    }

    /// A value of such a clock of which it is not known what it leaves out.
    #[inline]
    pub fn coarse_stamp(&mut self, stamp: &mut u32) {
        let present = *stamp;
        let moved = self.value(u64::from(present), |walk, before| {
            let ms = (walk.period().0 / Phase::MS) as u32;
            walk.has_whole_milliseconds() && present.wrapping_sub(before as u32) == ms
        });
        *stamp = moved as u32;
    }

    /// When the milliseconds of a stamp last decided something: not within a repetition, unless that takes
    /// whole ones.
    #[inline]
    pub fn choice(&mut self, at: &mut Instant) {
        let (present, then) = (at.0, self.recorded.at);
        at.0 = self.value(present, |walk, before| {
            let stays = before == present && before < then.0;
            stays || (walk.has_whole_milliseconds() && walk.moved(before, present))
        });
    }

    const fn has_whole_milliseconds(&self) -> bool {
        self.period().0.is_multiple_of(Phase::MS)
    }
}
