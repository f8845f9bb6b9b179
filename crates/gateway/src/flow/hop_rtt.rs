//! The hop's RTT as the gateway measures it, and the gateway's own retransmission timeout.
//!
//! Source: TCP-SuperCharger (SC), equations (1) and (2): RTT' = alpha RTT + (1 - alpha) D. The paper has 0.9
//! for alpha, as it says like TCP; RFC 6298 has 7/8, which is used unless alpha is configured. Only data that
//! was sent once gives a sample (Karn). The timeout is 1.5 D + 4 var: it must expire before the sender's (at
//! least SRTT + 200 ms), or soon after. The minimum RTT of the last ten to twenty seconds decides whether an
//! acknowledgment can belong to a retransmission.

use crate::config::Config;
use bentpipe_base::{Duration, Instant};

/// alpha by default.
const ALPHA: f64 = 7.0 / 8.0;
/// Length of a period of the minimum RTT; the current and the last period count.
const MEMORY: Duration = Duration::from_secs(10);
/// RTT assumed before any sample.
const UNKNOWN: Duration = Duration::from_secs(1);
/// Shortest timeout, beyond a delayed ACK (40 to 200 ms; RFC 9293, section 3.8.6.3: below 500 ms).
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
pub(crate) struct HopRtt {
    alpha: f64,
    smoothed: Option<Duration>,
    pub(crate) variation: Duration,
    shortest: [Option<Duration>; 2],
    least: Option<Duration>,
    since: Instant,
    /// D before there is a sample; 0 if not configured.
    assumed: Duration,
}

impl Default for HopRtt {
    fn default() -> Self {
        Self::new(&Config::default())
    }
}

impl HopRtt {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            alpha: config.alpha.unwrap_or(ALPHA),
            assumed: config.rtt.unwrap_or_default(),
            smoothed: None,
            variation: Duration::ZERO,
            shortest: [None; 2],
            least: None,
            since: Instant::ZERO,
        }
    }

    pub(crate) fn sample(&mut self, now: Instant, trip: Duration) {
        match self.smoothed {
            None => {
                self.variation = trip / 2;
                self.smoothed = Some(trip);
            }
            Some(old) => {
                let off = Duration(old.0.abs_diff(trip.0));
                self.variation = Duration(self.variation.0 - self.variation.0 / 4 + off.0 / 4);
                let weight = 1.0 - self.alpha;
                self.smoothed = Some(Duration(old.0 - old.mul_f64(weight).0 + trip.mul_f64(weight).0));
            }
        }
        self.least = Some(self.least.map_or(trip, |l| l.min(trip)));
        if now.since(self.since) >= MEMORY {
            self.shortest = [None, self.shortest[0]];
            self.since = now;
        }
        self.shortest[0] = Some(self.shortest[0].map_or(trip, |s| s.min(trip)));
    }

    /// D; none before the first sample.
    pub(crate) const fn known(&self) -> Option<Duration> {
        self.smoothed
    }

    /// D, or the assumed value before the first sample.
    pub(crate) const fn smoothed(&self) -> Duration {
        match self.smoothed {
            Some(smoothed) => smoothed,
            None if self.assumed.is_zero() => UNKNOWN,
            None => self.assumed,
        }
    }

    /// Recent minimum RTT; zero if unknown.
    pub(crate) fn recent_minimum(&self) -> Duration {
        self.shortest.into_iter().flatten().min().unwrap_or(Duration::ZERO)
    }

    /// Minimum RTT of the whole connection, which a standing queue does not affect.
    pub(crate) fn minimum(&self) -> Duration {
        self.least.unwrap_or_else(|| self.smoothed())
    }

    pub(crate) fn timeout(&self) -> Duration {
        let d = self.smoothed();
        (d + d / 2 + self.variation * 4).max(SHORTEST_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_steady_trip_is_learnt_and_the_timeout_settles() {
        let mut trip = HopRtt::new(&Config::default());
        assert_eq!((trip.smoothed(), trip.recent_minimum()), (UNKNOWN, Duration::ZERO));
        for i in 0..100 {
            trip.sample(Instant::ZERO + MS(i * 10), MS(600));
        }
        assert_eq!((trip.smoothed(), trip.recent_minimum()), (MS(600), MS(600)));
        assert!(trip.timeout() >= MS(900) && trip.timeout() < MS(901), "{}", trip.timeout());
    }

    #[test]
    fn alpha_is_the_weight_of_the_old_value() {
        for (alpha, smoothed) in [(None, 150), (Some(0.75), 200), (Some(0.0), 500)] {
            let mut trip = HopRtt::new(&Config { alpha, ..Config::default() });
            trip.sample(Instant::ZERO, MS(100));
            trip.sample(Instant::ZERO, MS(500));
            assert_eq!(trip.smoothed(), MS(smoothed), "{alpha:?}");
        }
    }

    #[test]
    fn what_is_configured_holds_until_the_first_sample() {
        let mut trip = HopRtt::new(&Config { rtt: Some(MS(550)), ..Config::default() });
        assert_eq!((trip.smoothed(), trip.minimum(), trip.known()), (MS(550), MS(550), None));
        assert_eq!((trip.recent_minimum(), trip.timeout()), (Duration::ZERO, MS(825)));
        trip.sample(Instant::ZERO, MS(90));
        assert_eq!((trip.smoothed(), trip.minimum()), (MS(90), MS(90)));
    }

    #[test]
    fn the_shortest_is_forgotten_after_twenty_seconds() {
        let mut trip = HopRtt::new(&Config::default());
        for i in 0..50 {
            trip.sample(Instant::ZERO + MS(i * 500), if i == 0 { MS(100) } else { MS(300) });
        }
        assert_eq!(trip.recent_minimum(), MS(300));
    }
}
