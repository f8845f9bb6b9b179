//! Whether the sender uses its congestion window.
//!
//! A window may only grow while it is the limit. Two measures:
//! - *cwnd-limited*, for every host: within the last window of data the window was full, or, in slow start,
//!   more than half of it was used.
//! - RFC 7661, with `Validation::Validate`: pipeACK is the data acknowledged in a round trip (the largest of
//!   the last three rounds); the window is validated while pipeACK >= cwnd/2. A window that stays unvalidated
//!   for the non-validated period (5 minutes) is halved (section 4.4.3).
//!
//! And RFC 5681, section 4.1, with `Validation::Restart`: idle for an RTO, restart from the initial window.

use crate::told::{Calls, Check, Use};
use bentpipe_base::{Duration, Instant};

/// RFC 7661, section 4.4.3: the non-validated period.
const NON_VALIDATED_PERIOD: Duration = Duration::from_secs(300);
/// Rounds over which pipeACK is the maximum.
const PIPE_ACK_ROUNDS: usize = 3;

/// Usage of the window.
#[derive(Clone, Debug, Default)]
pub struct WindowUsage {
    pub(crate) fullness: Fullness,
    pub(crate) pipe: PipeAck,
    /// What the sender is told, while that is written down for fast-forward.
    pub(crate) calls: Calls,
}

/// Whether the window was full within the last window of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fullness {
    pub(crate) limited: bool,
    pub(crate) most_out: u64,
    pub(crate) until: u64,
}

/// What is acknowledged in a round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PipeAck {
    pub(crate) samples: [u64; PIPE_ACK_ROUNDS],
    pub(crate) round_acked: u64,
    pub(crate) rounds: u32,
    /// When the window was last validated.
    pub(crate) validated_at: Instant,
    /// How often it was asked whether that is too long ago.
    pub(crate) asked: u32,
}

impl Fullness {
    /// See [`WindowUsage::after_send`].
    #[inline]
    pub(crate) const fn after_send(&mut self, una: u64, next: u64, in_flight: u64, full: bool) {
        if una >= self.until || full || (!self.limited && in_flight > self.most_out) {
            *self = Self { limited: full, most_out: in_flight, until: next };
        }
    }

    /// See [`WindowUsage::cwnd_limited`].
    #[inline]
    pub(crate) const fn cwnd_limited(&self, cwnd: u64, slow_start: bool) -> bool {
        self.limited || (slow_start && cwnd < 2 * self.most_out)
    }
}

impl PipeAck {
    /// Counts acknowledged bytes; `round_ended` closes a pipeACK sample.
    #[inline]
    pub(crate) const fn on_ack(&mut self, acked: u64, round_ended: bool) {
        self.round_acked += acked;
        if round_ended {
            self.samples = [self.round_acked, self.samples[0], self.samples[1]];
            self.round_acked = 0;
            self.rounds += 1;
        }
    }

    /// See [`WindowUsage::validated`].
    #[inline]
    pub(crate) fn validated(&mut self, now: Instant, cwnd: u64) -> bool {
        let pipe_ack = self.samples.into_iter().fold(self.round_acked, u64::max);
        let is_valid = self.rounds == 0 || pipe_ack >= cwnd / 2;
        if is_valid {
            self.validated_at = now;
        }
        is_valid
    }

    /// See [`WindowUsage::expired`].
    pub(crate) fn expired(&mut self, now: Instant) -> bool {
        self.asked = self.asked.wrapping_add(1);
        let has_expired = now.since(self.validated_at) >= NON_VALIDATED_PERIOD;
        if has_expired {
            self.validated_at = now;
        }
        has_expired
    }
}

impl WindowUsage {
    /// Called after sending; `full` if the window kept the next segment from being sent.
    #[inline]
    pub fn after_send(&mut self, una: u64, next: u64, in_flight: u64, full: bool) {
        self.calls.note(Use::Sent { una, next, in_flight, full });
        self.fullness.after_send(una, next, in_flight, full);
    }

    /// See [`crate::Connection::touch_sender`].
    #[inline]
    pub(crate) const fn touch(&self) -> u64 {
        self.fullness.until ^ self.pipe.round_acked
    }

    /// True if the window was the limit recently.
    #[inline]
    pub fn cwnd_limited(&mut self, cwnd: u64, slow_start: bool) -> bool {
        let answer = self.fullness.cwnd_limited(cwnd, slow_start);
        self.calls.note(Use::Limited { cwnd, slow_start, answer });
        answer
    }

    /// RFC 7661, section 4.3: true in the validated phase, and until pipeACK is defined. `decides` says
    /// whether anything depends on the answer.
    #[inline]
    pub fn validated(&mut self, now: Instant, cwnd: u64, decides: bool) -> bool {
        let answer = self.pipe.validated(now, cwnd);
        self.calls.note(Check::Validated { now, cwnd, answer: decides.then_some(answer) });
        answer
    }

    /// True if the window stayed unvalidated too long; the period then restarts at `now`.
    pub fn expired(&mut self, now: Instant) -> bool {
        let answer = self.pipe.expired(now);
        self.calls.note(Check::Expired { now, answer });
        answer
    }
}
