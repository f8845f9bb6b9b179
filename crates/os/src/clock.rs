//! The monotonic clock, as time since the start of a run.

use bentpipe_base::Instant;
use rustix::time::{ClockId, clock_gettime};

/// A clock that counts nanoseconds from its start. It never goes back, and stops while the machine is
/// suspended (`CLOCK_MONOTONIC`).
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: u64,
}

impl Clock {
    /// Starts a clock at the current time.
    pub fn start() -> Self {
        Self { start: monotonic() }
    }

    /// `CLOCK_MONOTONIC` itself, which starts when the machine boots.
    pub const fn of_the_machine() -> Self {
        Self { start: 0 }
    }

    /// Time since the start.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant(monotonic() - self.start)
    }

    /// Converts `monotonic` nanoseconds of `CLOCK_MONOTONIC` to this clock. Times before the start become the
    /// start.
    #[inline]
    pub const fn at(&self, monotonic: u64) -> Instant {
        Instant(monotonic.saturating_sub(self.start))
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[inline]
pub fn monotonic() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// `CLOCK_REALTIME` in nanoseconds: the clock of the kernel's receive timestamps.
#[inline]
pub fn realtime() -> u64 {
    nanoseconds(ClockId::Realtime)
}

fn nanoseconds(id: ClockId) -> u64 {
    let t = clock_gettime(id);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
