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

use crate::told::{Call, Calls};
use bentpipe_base::shift::Walk;
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
    pub(crate) validated_at: Instant,
    /// What the sender is told, while that is written down for fast-forward.
    pub(crate) calls: Calls,
}

impl WindowUsage {
    /// Visits the state of a sender of `stream`, but for when it was validated.
    pub(crate) fn values(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { limited, most_out, until, pipe_ack, round_acked, rounds, validated_at: _, calls: _ } =
            self;
        walk.same(&(*limited, *most_out));
        walk.position(stream, until);
        walk.same(&(*pipe_ack, *round_acked));
        walk.count_u32(rounds);
    }

    /// True if both states are alike, each relative to what is acknowledged.
    pub(crate) fn is_like(&self, una: u64, other: &Self, others: u64) -> bool {
        let state = |usage: &Self, una: u64| {
            (usage.limited, usage.most_out, usage.until.wrapping_sub(una), usage.pipe_ack, usage.round_acked)
        };
        state(self, una) == state(other, others)
    }

    /// Since `before` the state has come round; it does so `cycles` times more, `bytes` in all.
    pub(crate) fn come_round(&mut self, before: &Self, cycles: u64, bytes: u64) {
        let rounds = u64::from(self.rounds.wrapping_sub(before.rounds));
        self.rounds = self.rounds.wrapping_add((rounds * cycles) as u32);
        self.until += bytes;
    }

    /// Called after sending; `full` if the window kept the next segment from being sent.
    #[inline]
    pub fn after_send(&mut self, una: u64, next: u64, in_flight: u64, full: bool) {
        self.calls.note(Call::Sent { una, next, in_flight, full });
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
    pub fn cwnd_limited(&mut self, cwnd: u64, slow_start: bool) -> bool {
        let answer = self.limited || (slow_start && cwnd < 2 * self.most_out);
        self.calls.note(Call::Limited { cwnd, slow_start, answer });
        answer
    }

    /// Counts acknowledged bytes; `round_ended` closes a pipeACK sample.
    #[inline]
    pub fn on_ack(&mut self, acked: u64, round_ended: bool) {
        self.calls.note(Call::Acked(acked));
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
