//! The variance of round trips as Linux has it.
//!
//! Source: the behaviour of Linux 6.x (`tcp_rtt_estimator`, `__tcp_set_rto`).
//! - The deviation follows as in RFC 6298, but with a gain of 1/32 instead of 1/4 when the round trip has
//!   fallen, so that a shorter one does not raise the timeout.
//! - What counts is the largest deviation of a round trip of data, at least the smallest timeout: RTTVAR
//!   jumps up to it at once and comes down by a quarter of the difference once per round trip.
//! - RTO = SRTT + RTTVAR. So the smallest timeout is an addition to the round trip, where RFC 6298 has a
//!   floor below the sum.

use bentpipe_base::Duration;

/// The deviation. All values are four times the mean deviation, in nanoseconds: what RFC 6298 calls 4 RTTVAR.
#[derive(Clone, Debug)]
pub(crate) struct LinuxVariance {
    deviation: u64,
    /// The largest of the present round trip of data.
    largest: u64,
    rttvar: u64,
    /// Position sent when that round trip began.
    round_end: u64,
    least: u64,
}

impl LinuxVariance {
    /// `least` is the smallest timeout.
    pub(crate) const fn new(least: Duration) -> Self {
        Self { deviation: 0, largest: 0, rttvar: 0, round_end: 0, least: least.0 }
    }

    /// The first sample: the timeout is three round trips.
    pub(crate) fn first(&mut self, rtt: Duration, next: u64) {
        self.deviation = rtt.0 * 2;
        self.rttvar = self.deviation.max(self.least);
        self.largest = self.rttvar;
        self.round_end = next;
    }

    /// A sample that missed the smoothed round trip by `error`; `shorter` when it was below it. `una` and
    /// `next` are what is acknowledged and sent.
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

    /// What is added to the smoothed round trip.
    pub(crate) const fn spread(&self) -> Duration {
        Duration(self.rttvar)
    }

    /// The mean deviation, for people.
    pub(crate) const fn mean(&self) -> Duration {
        Duration(self.deviation / 4)
    }
}
