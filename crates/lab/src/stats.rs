//! Statistics of measured values, a line through points, and numbers that look random.

use bentpipe_stats::{Level, half_width};
pub use bentpipe_stats::{binomial_bounds, median, quantile};

/// Mean, and half the width of its 95 % interval by Student's t; NaN for less than two values.
pub fn mean(values: &[f64]) -> (f64, f64) {
    (bentpipe_stats::mean(values), half_width(values, Level::P95).unwrap_or(f64::NAN))
}

/// Slope of the line through `points` that leaves the smallest squares; none through fewer than two, or one
/// above the other.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (xx, xy) = points
        .iter()
        .fold((0.0, 0.0), |(xx, xy), p| (xx + (p.0 - x) * (p.0 - x), xy + (p.0 - x) * (p.1 - y)));
    (xx > 0.0).then(|| xy / xx)
}

/// Numbers that look random and are the same every time (xorshift64*, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`, which is not zero.
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

    /// By hand: x - mean is -1, 0, 1 and y - mean -2, 1, 1, so 3/2.
    #[test]
    fn a_slope_is_that_of_least_squares() {
        assert_eq!(slope(&[(1.0, 0.0), (2.0, 3.0), (3.0, 3.0)]), Some(1.5));
        assert_eq!(slope(&[(0.0, 5.0), (10.0, 25.0)]), Some(2.0));
        assert_eq!((slope(&[]), slope(&[(1.0, 1.0)]), slope(&[(1.0, 1.0), (1.0, 2.0)])), (None, None, None));
    }

    #[test]
    fn dice_repeat_and_spread() {
        let mut dice = Dice::new(1);
        let first: Vec<u64> = (0..1000).map(|_| dice.below(6)).collect();
        let mut again = Dice::new(1);
        assert!(first.iter().all(|n| again.below(6) == *n));
        for side in 0..6 {
            let n = first.iter().filter(|f| **f == side).count();
            assert!((100..240).contains(&n), "{side}: {n}");
        }
    }
}
