//! The receiver's read rate by TCP-SuperCharger, equation (3): R over k ACKs, smoothed as the RTT is in
//! equation (2). The smoothing's default is the paper's 0.9.

use crate::config::Config;
use bentpipe_base::Instant;

/// Weights of the old and the new value unless `alpha` is configured.
const SMOOTHING: (f64, f64) = (0.9, 0.1);

#[derive(Clone, Debug)]
pub(super) struct ReadRate {
    /// ACKs per sample.
    k: u32,
    smoothing: (f64, f64),
    /// Time and right edge at the ACK that began the sample, and the ACKs in it.
    sample: Option<(Instant, u64)>,
    acks: u32,
    /// R in bytes per second, 0 if unknown.
    pub(super) rate: f64,
}

impl ReadRate {
    pub(super) fn new(config: &Config) -> Self {
        let smoothing = config.alpha.map_or(SMOOTHING, |alpha| (alpha, 1.0 - alpha));
        Self { k: config.k, smoothing, sample: None, acks: 0, rate: 0.0 }
    }

    /// Updates R by an ACK that shows the right edge `edge`.
    pub(super) fn on_ack(&mut self, now: Instant, edge: u64) {
        self.acks += 1;
        let Some((since, before)) = self.sample else {
            (self.sample, self.acks) = (Some((now, edge)), 0);
            return;
        };
        let time = now.since(since).as_secs_f64();
        if self.acks >= self.k && time > 0.0 {
            let rate = (edge - before) as f64 / time;
            let (old, new) = self.smoothing;
            self.rate = if self.rate > 0.0 { old * self.rate + new * rate } else { rate };
            (self.sample, self.acks) = (Some((now, edge)), 0);
        }
    }

    /// Drops the current sample: a hole is or was just open.
    pub(super) const fn disturb(&mut self) {
        self.sample = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Duration;

    /// Ten ACKs of 1000 B, 1 ms apart, and ten 2 ms apart.
    fn rate(k: u32, alpha: Option<f64>) -> f64 {
        let mut rate = ReadRate::new(&Config { k, alpha, ..Config::default() });
        let mut now = Instant::ZERO;
        for i in 0..=20 {
            rate.on_ack(now, i * 1000);
            now = now + Duration::from_millis(if i < 10 { 1 } else { 2 });
        }
        rate.rate
    }

    #[test]
    fn a_rate_is_measured_over_k_acks_and_smoothed_by_alpha() {
        assert_eq!(rate(10, Some(0.0)), 5e5, "alpha 0: the last sample alone");
        assert!((rate(10, Some(0.5)) - 7.5e5).abs() < 1e-6, "{}", rate(10, Some(0.5)));
        assert!((rate(10, None) - 9.5e5).abs() < 1e-6, "the paper's 0.9");
        assert!((rate(20, Some(0.5)) - 1e6 / 1.5).abs() < 1e-6, "one sample of 20 ACKs in 30 ms");
        assert_eq!(rate(21, None), 0.0, "unknown before there are k ACKs");
    }
}
