//! The RTT variance as Linux computes it.
//!
//! Source: the behaviour of Linux 6.x (`tcp_rtt_estimator`, `__tcp_set_rto`).
//! - The deviation follows as in RFC 6298, but with a gain of 1/32 instead of 1/4 when the round trip has
//!   fallen, so that a shorter one does not raise the timeout.
//! - The largest deviation within a round trip counts, at least the minimum RTO: RTTVAR rises to it at once
//!   and falls by a quarter of the difference once per round trip.
//! - RTO = SRTT + RTTVAR. So the minimum RTO is added to the round trip, where RFC 6298 has a lower bound
//!   for the sum.

use bentpipe_base::Duration;
use bentpipe_base::shift::Walk;

/// The deviation. All values are four times the mean deviation, in nanoseconds: what RFC 6298 calls 4 RTTVAR.
#[derive(Clone, Debug)]
pub(crate) struct LinuxVariance {
    deviation: u64,
    /// The largest in the present round trip of data.
    largest: u64,
    rttvar: u64,
    /// The round trip ends when data beyond this position is acknowledged: everything sent when it began.
    round_end: u64,
    least: u64,
}

impl LinuxVariance {
    /// Visits the state at a sender of `stream`.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { deviation, largest, rttvar, round_end, least: _ } = self;
        walk.same(&[*deviation, *largest, *rttvar]);
        walk.position(stream, round_end);
    }

    /// Returns the state relative to where data is acknowledged.
    pub(crate) const fn relative_to(&self, una: u64) -> [u64; 4] {
        [self.deviation, self.largest, self.rttvar, self.round_end.wrapping_sub(una)]
    }

    /// Moves the state by so many bytes.
    pub(crate) const fn forward(&mut self, bytes: u64) {
        self.round_end += bytes;
    }

    /// Creates the deviation; `least` is the minimum RTO.
    pub(crate) const fn new(least: Duration) -> Self {
        Self { deviation: 0, largest: 0, rttvar: 0, round_end: 0, least: least.0 }
    }

    /// Takes the first sample: the timeout is three round trips.
    pub(crate) fn first(&mut self, rtt: Duration, next: u64) {
        self.deviation = rtt.0 * 2;
        self.rttvar = self.deviation.max(self.least);
        self.largest = self.rttvar;
        self.round_end = next;
    }

    /// Takes a sample that differs from the SRTT by `error`; `shorter` if it was below it. Data is
    /// acknowledged up to `una` and sent up to `next`.
    pub(crate) fn sample(&mut self, error: u64, shorter: bool, una: u64, next: u64) {
        let quarter = self.deviation / 4;
        self.deviation = match error.checked_sub(quarter) {
            Some(rise) if shorter => self.deviation + rise / 8,
            Some(rise) => self.deviation + rise,
            None => self.deviation - (quarter - error),
        };
        if self.deviation > self.largest {
            self.largest = self.deviation;
            self.rttvar = self.rttvar.max(self.largest);
        }
        if una > self.round_end {
            self.rttvar -= self.rttvar.saturating_sub(self.largest) / 4;
            self.round_end = next;
            self.largest = self.least;
        }
    }

    /// Returns what is added to the SRTT.
    pub(crate) const fn spread(&self) -> Duration {
        Duration(self.rttvar)
    }

    /// Returns the mean deviation, for display.
    pub(crate) const fn mean(&self) -> Duration {
        Duration(self.deviation / 4)
    }
}
