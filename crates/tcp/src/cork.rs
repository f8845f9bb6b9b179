//! Cork: the application announces more data, so a partial segment waits for it.
//!
//! Source: the behaviour of Linux (`TCP_CORK`); no RFC has it, and none forbids it (RFC 9293, section 3.7.4,
//! leaves it to the sender when to send). Full segments and the FIN are sent as usual. A partial segment
//! waits until it is full, until the cork is removed (then Nagle does not hold it either), or 200 ms.

use crate::connection::Connection;
use crate::timers::Timer;
use bentpipe_base::{Duration, Instant};

/// Longest wait of a partial segment.
const LONGEST: Duration = Duration::from_millis(200);

/// State of the cork.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cork {
    on: bool,
    /// Data up to here may leave: it waited long enough, or the cork was removed.
    out: u64,
}

impl Connection {
    /// Sets or removes the cork, which holds partial segments back.
    pub fn cork(&mut self, on: bool) {
        self.cork.on = on;
        if !on {
            self.uncork();
        }
    }

    /// Releases everything written so far.
    pub(crate) const fn uncork(&mut self) {
        self.cork.out = self.written;
        self.timers.stop(Timer::Cork);
    }

    /// True if the partial segment that ends at `end` waits for more data.
    pub(crate) fn waits_for_more(&mut self, now: Instant, end: u64) -> bool {
        if self.is_uncorked(end) || !self.cork.on {
            return false;
        }
        if !self.timers.runs(Timer::Cork) {
            self.timers.set(Timer::Cork, now + LONGEST);
        }
        true
    }

    /// True if data up to `end` was released: neither the cork nor Nagle holds it.
    #[inline]
    pub(crate) const fn is_uncorked(&self, end: u64) -> bool {
        end <= self.cork.out
    }
}
