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

use bentpipe_base::{Duration, Instant};

/// RFC 7661, section 4.4.3: the non-validated period.
const NON_VALIDATED_PERIOD: Duration = Duration::from_secs(300);
/// Rounds over which pipeACK is the maximum.
const PIPE_ACK_ROUNDS: usize = 3;

/// Usage of the window.
#[derive(Clone, Debug, Default)]
pub struct WindowUsage {
    limited: bool,
    most_out: u64,
    until: u64,
    pipe_ack: [u64; PIPE_ACK_ROUNDS],
    round_acked: u64,
    rounds: u32,
    /// When the window was last validated.
    validated_at: Instant,
}

impl WindowUsage {
    /// Called after sending; `full` if the window kept the next segment from being sent.
    #[inline]
    pub fn after_send(&mut self, una: u64, next: u64, in_flight: u64, full: bool) {
        if una >= self.until || full || (!self.limited && in_flight > self.most_out) {
            self.limited = full;
            self.most_out = in_flight;
            self.until = next;
        }
    }

    /// See [`crate::Connection::touch_sender`].
    #[inline]
    pub(crate) const fn touch(&self) -> u64 {
        self.until ^ self.round_acked
    }

    /// True if the window was the limit recently.
    #[inline]
    pub const fn cwnd_limited(&self, cwnd: u64, slow_start: bool) -> bool {
        self.limited || (slow_start && cwnd < 2 * self.most_out)
    }

    /// Counts acknowledged bytes; `round_ended` closes a pipeACK sample.
    #[inline]
    pub const fn on_ack(&mut self, acked: u64, round_ended: bool) {
        self.round_acked += acked;
        if round_ended {
            self.pipe_ack = [self.round_acked, self.pipe_ack[0], self.pipe_ack[1]];
            self.round_acked = 0;
            self.rounds += 1;
        }
    }

    /// RFC 7661, section 4.3: true in the validated phase, and until pipeACK is defined.
    #[inline]
    pub fn validated(&mut self, now: Instant, cwnd: u64) -> bool {
        let pipe_ack = self.pipe_ack.iter().copied().fold(self.round_acked, u64::max);
        let valid = self.rounds == 0 || pipe_ack >= cwnd / 2;
        if valid {
            self.validated_at = now;
        }
        valid
    }

    /// True if the window stayed unvalidated too long; the period then restarts at `now`.
    pub fn expired(&mut self, now: Instant) -> bool {
        let expired = now.since(self.validated_at) >= NON_VALIDATED_PERIOD;
        if expired {
            self.validated_at = now;
        }
        expired
    }
}
