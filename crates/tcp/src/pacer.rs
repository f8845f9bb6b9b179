//! The pacer: spreads segments at a rate, with a burst allowance.
//!
//! Source: RFC 9002, section 7.7 describes the same leaky bucket. The next segment may be sent once the
//! previous ones have drained at the rate, less what the burst allows. State advances from the scheduled
//! time, so the long-run rate is exact.

use bentpipe_base::{Instant, Rate, Size};

/// Release times at a rate.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    /// When everything sent so far has drained.
    drained_at: Instant,
}

impl Pacer {
    /// The earliest time at which another segment may be sent; `burst` bytes may go ahead of the rate.
    pub fn release_at(&self, now: Instant, rate: Rate, burst: Size) -> Instant {
        let ahead = rate.time_for(burst);
        let at = Instant(self.drained_at.0.saturating_sub(ahead.0));
        at.max(now)
    }

    /// Counts `size` bytes as sent at `now`.
    pub fn sent(&mut self, now: Instant, rate: Rate, size: Size) {
        self.drained_at = self.drained_at.max(now) + rate.time_for(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_at_the_rate_after_the_burst() {
        let rate = Rate::from_bps(8_000_000).unwrap(); // 1000 B per ms
        let mut p = Pacer::default();
        let mut now = Instant::ZERO;
        let mut sent = Vec::new();
        for _ in 0..5 {
            now = p.release_at(now, rate, Size(2000));
            p.sent(now, rate, Size(1000));
            sent.push(now.0 / 1_000_000);
        }
        // the packet in service and a burst of two, then one per millisecond
        assert_eq!(sent, [0, 0, 0, 1, 2]);
    }
}
