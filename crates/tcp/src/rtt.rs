//! Round-trip time and retransmission timeout.
//!
//! Source: RFC 6298. SRTT and RTTVAR with gains 1/8 and 1/4, RTO = SRTT + max(G, 4 RTTVAR), doubled on each
//! timeout. Karn: a retransmitted segment gives no sample unless timestamps tell the copies apart. With many
//! samples in one round trip the gains are divided by their expected number (RFC 7323, appendix G), so that
//! the memory of the estimator stays several round trips long. Defaults: first RTO 1 s, minimum 1 s, maximum
//! 60 s, granularity 1 ms.

use crate::config::{RtoConfig, Stack};
use crate::rtt_linux::LinuxVariance;
use bentpipe_base::Duration;
use bentpipe_base::shift::Walk;

/// What others look at, see [`RttEstimator::seen`].
pub(crate) type SeenRtt = [Duration; 4];

/// The estimator. Usable without a connection.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    config: RtoConfig,
    srtt: Duration,
    rttvar: Duration,
    rto: Duration,
    backoff: u32,
    /// The smallest sample; `None` before the first.
    min: Option<Duration>,
    latest: Duration,
    linux: Option<LinuxVariance>,
}

impl RttEstimator {
    /// Visits what samples that repeat themselves do not change.
    pub(crate) fn shift_resting(&self, walk: &mut Walk<'_>) {
        walk.same(&(self.backoff, self.min));
    }

    /// Visits what they change until it rests, at a sender of `stream`.
    pub(crate) fn moving(&mut self, walk: &mut Walk<'_>, stream: usize) {
        walk.same(&self.seen());
        if let Some(linux) = &mut self.linux {
            linux.shift(walk, stream);
        }
    }

    /// Number of values that [`Self::moving`] visits besides, for Linux.
    pub(crate) const LINUX_VALUES: usize = 4;

    /// Returns all that others look at: SRTT, RTTVAR, RTO and the last sample.
    #[inline]
    pub(crate) const fn seen(&self) -> SeenRtt {
        [self.srtt, self.rttvar, self.rto, self.latest]
    }

    /// True if both states are alike, each relative to where data is acknowledged.
    pub(crate) fn is_like(&self, una: u64, other: &Self, other_una: u64) -> bool {
        let state = |it: &Self, una: u64| {
            (it.seen(), it.backoff, it.min, it.linux.as_ref().map(|linux| linux.relative_to(una)))
        };
        state(self, una) == state(other, other_una)
    }

    /// The state has come round; its place in the stream is so many bytes further.
    pub(crate) const fn come_round(&mut self, bytes: u64) {
        if let Some(linux) = &mut self.linux {
            linux.forward(bytes);
        }
    }

    /// Creates the estimator of `stack`, without a sample.
    pub fn new(stack: Stack, config: RtoConfig) -> Self {
        Self {
            config,
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            rto: config.initial,
            backoff: 0,
            min: None,
            latest: Duration::ZERO,
            linux: (stack == Stack::Linux).then(|| LinuxVariance::new(config.min)),
        }
    }

    /// Takes a sample as the stack does. Round trips are counted by `una` (acknowledged) and `next` (sent);
    /// `per_round` is the number of samples expected in one, as a dividend and a divisor; at least 1 counts.
    #[inline]
    pub fn take(&mut self, rtt: Duration, (una, next): (u64, u64), per_round: (u64, u64)) {
        let first = self.min.is_none();
        self.latest = rtt;
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.backoff = 0;
        let Some(linux) = &mut self.linux else { return self.sample(rtt, first, per_round) };
        if first {
            self.srtt = rtt;
            linux.first(rtt, next);
        } else {
            linux.sample(self.srtt.0.abs_diff(rtt.0), rtt < self.srtt, una, next);
            self.srtt = Duration(weigh(self.srtt.0, rtt.0, 3));
        }
        self.rttvar = linux.mean();
        self.rto = (self.srtt + linux.spread()).min(self.config.max);
    }

    /// Takes a sample as in RFC 6298.
    #[inline]
    fn sample(&mut self, rtt: Duration, first: bool, per_round: (u64, u64)) {
        if first {
            self.srtt = rtt; // RFC 6298 (2.2)
            self.rttvar = rtt / 2;
        } else {
            // RFC 6298 (2.3), gains divided as in RFC 7323 appendix G; n rounded down to a power of two
            let shift = log2_of_quotient(per_round);
            let error = self.srtt.0.abs_diff(rtt.0);
            self.rttvar = Duration(weigh(self.rttvar.0, error, 2 + shift));
            self.srtt = Duration(weigh(self.srtt.0, rtt.0, 3 + shift));
        }
        let spread = self.config.granularity.max(self.rttvar * 4);
        self.rto = (self.srtt + spread).clamp(self.config.min, self.config.max);
    }

    /// Returns the RTO, doubled for each timeout since the last sample, at most the maximum.
    #[inline]
    pub fn rto(&self) -> Duration {
        if self.backoff == 0 {
            return self.rto;
        }
        Duration(self.rto.0.saturating_mul(1 << self.backoff.min(20))).min(self.config.max)
    }

    /// Doubles the timeout (RFC 6298 (5.5)).
    pub const fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Raises the RTO to 3 s at least, since the SYN timed out (RFC 6298 (5.7)).
    pub fn after_lost_syn(&mut self) {
        self.rto = self.rto.max(Duration::from_secs(3)).min(self.config.max);
    }

    /// Undoes the doubling: the timeout was spurious.
    pub const fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Returns the time after which a tail loss probe is sent (RFC 8985, section 7.2): two round trips and
    /// `more`, at least one tick.
    pub(crate) fn probe_timeout(&self, more: Duration) -> Duration {
        let round_trips = if self.has_sample() { self.srtt * 2 } else { Duration::from_secs(1) };
        (round_trips + more).max(self.config.granularity)
    }
    /// Returns the smoothed round-trip time; zero before the first sample.
    #[inline]
    pub const fn srtt(&self) -> Duration {
        self.srtt
    }
    /// Returns the mean deviation.
    pub const fn rttvar(&self) -> Duration {
        self.rttvar
    }
    /// Returns the last sample.
    pub const fn latest(&self) -> Duration {
        self.latest
    }
    /// Returns the smallest sample ever.
    pub const fn min(&self) -> Option<Duration> {
        self.min
    }
    /// True once a sample was taken.
    #[inline]
    pub const fn has_sample(&self) -> bool {
        self.min.is_some()
    }
}

/// Returns the binary logarithm of a quotient, rounded down; 0 if that is less than 1. There is no division.
const fn log2_of_quotient((dividend, divisor): (u64, u64)) -> u32 {
    let Some(most) = dividend.checked_ilog2() else { return 0 };
    let Some(shift) = most.checked_sub(divisor.ilog2()) else { return 0 };
    if divisor << shift <= dividend { shift } else { shift.saturating_sub(1) }
}

/// Returns `old + (new - old) / 2^shift`, without going below zero.
const fn weigh(old: u64, new: u64, shift: u32) -> u64 {
    if new >= old { old + ((new - old) >> shift) } else { old - ((old - new) >> shift) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn estimator(min_ms: u64) -> RttEstimator {
        RttEstimator::new(Stack::Rfc, RtoConfig { min: Duration(min_ms * MS), ..RtoConfig::default() })
    }

    #[test]
    fn first_and_second_sample_as_in_rfc_6298() {
        let mut e = estimator(1);
        assert_eq!(e.rto(), Duration::from_secs(1)); // (2.1)
        e.take(Duration(100 * MS), (0, 0), (1, 1));
        assert_eq!(e.rto(), Duration(300 * MS)); // R + 4 * R/2
        e.take(Duration(180 * MS), (0, 0), (1, 1));
        // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110
        assert_eq!((e.srtt(), e.rttvar()), (Duration(110 * MS), Duration(57_500_000)));
        assert_eq!(e.rto(), Duration(340 * MS));
    }

    #[test]
    fn bounds_granularity_and_backoff() {
        let mut e = estimator(1000);
        for _ in 0..200 {
            e.take(Duration(100 * MS), (0, 0), (1, 1));
        }
        assert_eq!(e.rto(), Duration::from_secs(1)); // (2.4)
        let mut e = estimator(1);
        for _ in 0..200 {
            e.take(Duration(100 * MS), (0, 0), (1, 1));
        }
        assert!(e.rto() >= Duration(101 * MS) && e.rto() < Duration(102 * MS)); // G = 1 ms
        e.back_off();
        assert!(e.rto() >= Duration(202 * MS));
        for _ in 0..30 {
            e.back_off();
        }
        assert_eq!(e.rto(), Duration::from_secs(60)); // (2.5)
        e.take(Duration(100 * MS), (0, 0), (1, 1));
        assert!(e.rto() < Duration(102 * MS));
    }

    /// Linux adds the minimum RTO to the round trip, and a shorter round trip does not raise the RTO.
    #[test]
    fn the_smallest_timeout_of_linux_is_an_addition() {
        let config = RtoConfig { min: Duration(200 * MS), ..RtoConfig::default() };
        let mut e = RttEstimator::new(Stack::Linux, config);
        e.take(Duration(50 * MS), (0, 1), (1, 1));
        assert_eq!(e.rto(), Duration(250 * MS)); // three round trips are less
        let mut e = RttEstimator::new(Stack::Linux, config);
        e.take(Duration(600 * MS), (0, 1), (1, 1));
        assert_eq!(e.rto(), Duration(1800 * MS));
        for i in 1..200 {
            e.take(Duration(600 * MS), (i, i + 1), (1, 1));
        }
        assert!(e.rto() >= Duration(800 * MS) && e.rto() < Duration(801 * MS), "{:?}", e.rto());
        let before = e.rto();
        e.take(Duration(500 * MS), (200, 201), (1, 1));
        assert!(e.rto() < before);
    }

    #[test]
    fn the_logarithm_of_a_quotient_needs_no_division() {
        for divisor in [1, 2, 3, 1000, 1072, 2920, 4096] {
            for dividend in (0..100_000).chain([u64::from(u32::MAX), u64::MAX]) {
                let quotient: u64 = dividend / divisor;
                assert_eq!(log2_of_quotient((dividend, divisor)), quotient.max(1).ilog2());
            }
        }
    }

    #[test]
    fn many_samples_per_round_weigh_less() {
        let mut one = estimator(1);
        let mut many = estimator(1);
        one.take(Duration(100 * MS), (0, 0), (1, 1));
        many.take(Duration(100 * MS), (0, 0), (16, 1));
        one.take(Duration(200 * MS), (0, 0), (1, 1));
        many.take(Duration(200 * MS), (0, 0), (16, 1));
        assert_eq!(one.srtt(), Duration(112_500_000));
        assert_eq!(many.srtt(), Duration(100_781_250)); // 1/128 of the step
    }
}
