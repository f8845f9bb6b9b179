//! Converts the kernel's receive timestamps, which are in wall-clock time, to the monotonic clock.
//!
//! The difference between the two clocks is measured every few milliseconds; slewing the wall clock (adjtime,
//! at most 500 ppm) changes it by a few microseconds in between. If the wall clock is stepped, a stamp may be
//! wrong until the next measurement, but it stays within known bounds: a packet arrived after the queue was
//! last seen empty, not before the previous packet, and not after it was read.

use crate::clock::{monotonic, realtime};

/// How long a measured difference is used, in ns.
const KEEP: u64 = 10_000_000;
/// A measurement that took longer than this, in ns, was interrupted.
const GOOD: u64 = 2_000;

#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// Wall clock minus monotonic clock.
    difference: u64,
    measured: u64,
    /// Lower bound of the next packet's arrival time.
    floor: u64,
}

impl Stamps {
    /// Returns the monotonic arrival time of a packet that was just read with this stamp.
    pub(super) fn convert(&mut self, stamp: Option<u64>) -> u64 {
        let now = monotonic();
        if stamp.is_some() && (self.measured == 0 || now - self.measured > KEEP) {
            self.measure(now);
        }
        self.bounded(stamp, now)
    }

    /// Records that the queue is empty now.
    pub(super) fn empty(&mut self) {
        self.floor = self.floor.max(monotonic());
    }

    fn bounded(&mut self, stamp: Option<u64>, now: u64) -> u64 {
        let at = stamp.and_then(|s| s.checked_sub(self.difference)).unwrap_or(now);
        self.floor = at.min(now).max(self.floor.min(now));
        self.floor
    }

    fn measure(&mut self, mut before: u64) {
        // several tries: an interrupt between the readings would falsify the difference
        for _ in 0..4 {
            let (wall, after) = (realtime(), monotonic());
            let took = after.saturating_sub(before);
            self.difference = wall.saturating_sub(before + took / 2);
            self.measured = after;
            if took < GOOD {
                return;
            }
            before = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_moved_to_the_monotonic_clock() {
        let mut stamps = Stamps::default();
        let (wall, before) = (realtime(), monotonic());
        let at = stamps.convert(Some(wall));
        assert!(at.abs_diff(before) < 1_000_000, "{at} {before}");
        assert!(stamps.convert(Some(wall)) >= at);
    }

    #[test]
    fn a_wall_clock_that_was_set_misleads_only_within_what_is_known() {
        let mut stamps = Stamps { difference: 1_000_000, measured: 1, floor: 500 };
        assert_eq!(stamps.bounded(Some(1_000_700), 900), 700);
        assert_eq!(stamps.bounded(Some(3), 1000), 1000); // set far back: the time of reading
        assert_eq!(stamps.bounded(Some(1_000_003), 1100), 1000); // set back: not before the previous packet
        assert_eq!(stamps.bounded(Some(9_000_000), 1200), 1200); // set forward: not in the future
        assert_eq!(stamps.bounded(None, 1300), 1300);
    }
}
