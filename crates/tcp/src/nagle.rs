//! When a partial segment, one shorter than the MSS, waits for more data: Nagle's algorithm and the cork.
//!
//! Nagle. Source: RFC 9293, section 3.7.4 (RFC 896); on Linux, Minshall's variant (draft-minshall-nagle-01;
//! `tcp_nagle_check`, `tcp_minshall_update`). The last segment written, if it is partial, waits
//! - by the RFC while anything is unacknowledged,
//! - on Linux while a partial segment is unacknowledged.
//!
//! So the end of a large write waits for a round trip by the RFC, and is sent with the rest on Linux; of
//! small writes, one per round trip is sent with either. A segment that a window cut short counts as partial
//! too. After close nothing waits, since no more data can follow.
//!
//! Cork: the application announces more data. Source: the behaviour of Linux (`TCP_CORK`); no RFC has it, and
//! none forbids it (RFC 9293, section 3.7.4, leaves it to the sender when to send). Full segments and the FIN
//! are sent as usual. A partial segment waits until it is full, until the cork is removed (then Nagle does
//! not hold it either), or 200 ms.

use crate::connection::Connection;
use crate::timers::Timer;
use bentpipe_base::shift::Walk;
use bentpipe_base::{Duration, Instant};

/// Longest time that the cork holds a partial segment.
const CORK_TIMEOUT: Duration = Duration::from_millis(200);

/// State of the cork.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cork {
    on: bool,
    /// Data up to here may be sent: it waited long enough, or the cork was removed.
    out: u64,
}

impl Cork {
    /// Visits the state of a sender of `stream`.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { on, out } = self;
        walk.same(on);
        walk.mark(stream, out);
    }
}

impl Connection {
    /// True if Nagle's algorithm holds the last segment written, which is partial.
    pub(crate) fn nagle_holds(&self) -> bool {
        let unanswered = if self.linux() {
            self.send.partial_segment_end > self.board.una()
        } else {
            self.board.flight() > 0
        };
        unanswered && self.config.nagle
    }

    /// Records that new data of `len` bytes up to `end` is sent.
    pub(crate) fn record_partial_segment(&mut self, len: u64, end: u64) {
        if len < self.full_segment() {
            self.send.partial_segment_end = end;
        }
    }

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

    /// True if the cork holds the partial segment that ends at `end`.
    pub(crate) fn cork_holds(&mut self, now: Instant, end: u64) -> bool {
        if self.is_uncorked(end) || !self.cork.on {
            return false;
        }
        if !self.timers.runs(Timer::Cork) {
            self.timers.set(Timer::Cork, now + CORK_TIMEOUT);
        }
        true
    }

    /// True if data up to `end` was released: neither the cork nor Nagle holds it.
    #[inline]
    pub(crate) const fn is_uncorked(&self, end: u64) -> bool {
        end <= self.cork.out
    }
}
