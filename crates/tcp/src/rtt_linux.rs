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
use bentpipe_base::shift::Words;

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

impl Words for LinuxVariance {
    /// The end of the round trip is a position, so this repeats itself only while nothing is sent.
    fn words(&self, each: &mut dyn FnMut(u64)) {
        [self.deviation, self.largest, self.rttvar, self.round_end, self.least].words(each);
    }
}

impl LinuxVariance {
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
