//! When a driver wakes up, and up to which time a turn handles events.
//!
//! An emulated link must be exact: the sending of a packet starts early, by the time that sending took
//! recently; the last microseconds are spent polling the clock, and packets leave together only when they are
//! due densely. A gateway must be cheap: events that are due soon are handled together, and it never polls
//! the clock.

use bentpipe_base::{Duration, Instant};

/// How a driver waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Packets leave when they are due; events happen at their times, however late the thread is.
    Exact,
    /// Events due within 50 us are handled together; after a stop, held packets leave first. Time never lags
    /// behind by more than [`crate::CATCH_UP`].
    Cheap,
}

/// The last part of a wait, which is spent polling the clock: nine of ten sleeps overshoot by less.
pub(crate) const SPIN: Duration = Duration::from_micros(40);
/// Events due within this time of now are handled together: a turn costs one or two system calls.
pub(crate) const COALESCE: Duration = Duration::from_micros(50);
/// When packets are due densely, more than [`DENSE`] in a [`SPELL`], they leave together, at least this long
/// after the previous ones: a super-packet costs little more than a packet, and 100 us is a tenth of
/// [`crate::LATE`].
const APART: Duration = Duration::from_micros(100);
const DENSE: u32 = 40;
const SPELL: Duration = Duration::from_millis(1);

/// How long before its due time the sending of a packet starts: the median of the recent times from waking up
/// until the kernel had the packet. After a sleep this takes ten times as long as during work, because caches
/// are cold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lead(pub(crate) Duration);

impl Lead {
    /// Upper limit: longer times mean that the thread was interrupted.
    const MOST: Duration = Duration::from_micros(100);
    const STEP: u64 = 1_000;

    /// Learns from the time that a first packet after a sleep took. Equal steps converge to the median.
    pub(crate) fn learn(&mut self, took: Duration) {
        let up = took > self.0;
        let lead = if up { self.0.0 + Self::STEP } else { self.0.0.saturating_sub(Self::STEP) };
        self.0 = Duration(lead).min(Self::MOST);
    }

    /// Returns the time up to which a turn at `now` handles events, if the next event is at `next`.
    pub(crate) fn reach(self, now: Instant, next: Option<Instant>) -> Instant {
        next.filter(|at| *at > now && *at <= now + self.0).unwrap_or(now)
    }
}

/// How densely packets leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Density {
    /// When the last packets left.
    last: Instant,
    /// Start of the current spell, and packets that have left in it.
    begin: Instant,
    count: u32,
    pub(crate) is_dense: bool,
}

impl Density {
    pub(crate) fn left(&mut self, now: Instant, packets: u32) {
        self.last = now;
        self.count += packets;
        if now.since(self.begin) >= SPELL {
            self.is_dense = self.count > DENSE;
            (self.begin, self.count) = (now, 0);
        }
    }

    /// Returns when packets that are due at `at` are sent.
    pub(crate) fn when(&self, at: Instant) -> Instant {
        if self.is_dense { at.max(self.last + APART) } else { at }
    }
}
