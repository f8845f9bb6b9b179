//! Cork: the application says that more follows, so a partial segment waits for it.
//!
//! Source: the behaviour of Linux (`TCP_CORK`); no RFC has it, and none forbids it (RFC 9293, section 3.7.4,
//! leaves it to a sender when to send). Full segments and the FIN leave as ever. A partial one waits until it
//! is full, until the cork is pulled (then it leaves whatever Nagle says), or 200 ms.

use crate::connection::Connection;
use crate::timers::Timer;
use bentpipe_base::{Duration, Instant};

/// No partial segment waits longer.
const LONGEST: Duration = Duration::from_millis(200);

/// Whether partial segments wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cork {
    on: bool,
    /// What was written up to here has waited long enough, or the cork was pulled on it.
    out: u64,
}

impl Connection {
    /// Holds partial segments back, or lets them go.
    pub fn cork(&mut self, on: bool) {
        self.cork.on = on;
        if !on {
            self.uncork();
        }
    }

    /// All that is written leaves now.
    pub(crate) const fn uncork(&mut self) {
        self.cork.out = self.written;
        self.timers.stop(Timer::Cork);
    }

    /// What ends at `end`, a partial segment, waits for more.
    pub(crate) fn waits_for_more(&mut self, now: Instant, end: u64) -> bool {
        if self.is_uncorked(end) || !self.cork.on {
            return false;
        }
        if !self.timers.runs(Timer::Cork) {
            self.timers.set(Timer::Cork, now + LONGEST);
        }
        true
    }

    /// Nothing holds what ends at `end`: not the cork, nor Nagle.
    #[inline]
    pub(crate) const fn is_uncorked(&self, end: u64) -> bool {
        end <= self.cork.out
    }
}
