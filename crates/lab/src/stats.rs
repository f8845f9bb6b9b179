//! Statistics of measured values, linear regression, and pseudo-random numbers.

use bentpipe_stats::{Level, half_width};
pub use bentpipe_stats::{binomial_bounds, mean, median, quantile};
use std::fmt;

/// A mean and the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Half-width, by Student's t; NaN for fewer than two values.
    pub half: f64,
}

impl Mean {
    /// The mean of some values.
    pub fn of(values: &[f64]) -> Self {
        let half = half_width(values, Level::P95).unwrap_or(f64::NAN);
        Self { value: mean(values), half }
    }

    /// True if larger and the intervals do not overlap; never for a single value.
    pub fn above(self, other: Self) -> bool {
        self.value - self.half > other.value + other.half
    }

    /// Formats bit/s as Mbit/s.
    pub fn mbps(self) -> String {
        format!("{:.2} ± {:.2}", self.value / 1e6, self.half / 1e6)
    }
}

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ± {:.3}", self.value, self.half)
    }
}

/// Slope of the least-squares line; `None` for fewer than two points or if all have the same x.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (xx, xy) = points
        .iter()
        .fold((0.0, 0.0), |(xx, xy), p| (xx + (p.0 - x) * (p.0 - x), xy + (p.0 - x) * (p.1 - y)));
    (xx > 0.0).then(|| xy / xx)
}

/// Reproducible pseudo-random numbers (xorshift64*, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A separate sequence for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number in `0..bound`; `bound` must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By Student's table for two degrees of freedom.
    #[test]
    fn a_mean_has_an_interval() {
        let of = Mean::of(&[1.0, 2.0, 3.0]);
        assert!((of.value - 2.0).abs() < 1e-12 && (of.half - 4.303 / 3.0_f64.sqrt()).abs() < 1e-3);
        assert_eq!(Mean { value: 8.312e6, half: 3.4e4 }.mbps(), "8.31 ± 0.03");
    }

    #[test]
    fn intervals_that_overlap_decide_nothing() {
        let mean = |value, half| Mean { value, half };
        assert!(mean(2.0, 0.4).above(mean(1.0, 0.5)));
        assert!(!mean(2.0, 0.6).above(mean(1.0, 0.5)) && !mean(1.0, 0.1).above(mean(2.0, 0.1)));
        assert!(!Mean::of(&[9.0]).above(Mean::of(&[1.0, 1.0])));
    }

    /// Computed by hand: x - mean is -1, 0, 1 and y - mean is -2, 1, 1, so the slope is 3/2.
    #[test]
    fn a_slope_is_that_of_least_squares() {
        assert_eq!(slope(&[(1.0, 0.0), (2.0, 3.0), (3.0, 3.0)]), Some(1.5));
        assert_eq!(slope(&[(0.0, 5.0), (10.0, 25.0)]), Some(2.0));
        assert_eq!((slope(&[]), slope(&[(1.0, 1.0)]), slope(&[(1.0, 1.0), (1.0, 2.0)])), (None, None, None));
    }

    #[test]
    fn dice_repeat_and_spread() {
        let mut dice = Random::new(1);
        let first: Vec<u64> = (0..1000).map(|_| dice.below(6)).collect();
        let mut again = Random::new(1);
        assert!(first.iter().all(|n| again.below(6) == *n));
        for side in 0..6 {
            let n = first.iter().filter(|f| **f == side).count();
            assert!((100..240).contains(&n), "{side}: {n}");
        }
    }
}
