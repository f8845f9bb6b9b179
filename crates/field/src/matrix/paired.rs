//! Ratios of pairs: the geometric mean and its confidence interval by Student's t of the logarithms.

use bentpipe_stats::{Level, half_width, mean};

/// A ratio with its 99 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Geometric mean.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Ratio {
    /// The ratio of pairs of positive numbers; `None` for fewer than two pairs.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.iter().any(|p| !(p.0 > 0.0 && p.1 > 0.0)) {
            return None;
        }
        let logs: Vec<f64> = pairs.iter().map(|p| libm::log(p.0 / p.1)).collect();
        let (mean, half) = (mean(&logs), half_width(&logs, Level::P99)?);
        Some(Self { mean: libm::exp(mean), low: libm::exp(mean - half), high: libm::exp(mean + half) })
    }

    /// True if the interval contains `x`.
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: logarithms -d, 0, d have standard deviation d; t for two degrees of freedom is 9.925.
    #[test]
    fn intervals_are_students() {
        let d = libm::log(1.1);
        let ratio = Ratio::of(&[(1.0, 1.1), (1.0, 1.0), (1.1, 1.0)]).unwrap();
        assert!((ratio.mean - 1.0).abs() < 1e-12);
        assert!((libm::log(ratio.high) - 9.925 * d / 3.0_f64.sqrt()).abs() < 1e-9 && ratio.contains(1.5));
        assert!(!Ratio::of(&[(2.0, 1.0), (2.0, 1.0)]).unwrap().contains(1.9));
        assert_eq!(Ratio::of(&[(1.0, 1.0)]), None);
        assert_eq!(Ratio::of(&[(1.0, 0.0), (1.0, 1.0)]), None);
    }
}
