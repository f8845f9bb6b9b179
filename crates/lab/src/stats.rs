//! Middle values, quantiles, and what chance allows.

use std::fmt;

/// The value below which a share of `values` lies: the nearest rank. NaN without values.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// The middle value.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// A mean, and half the width of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// By Student's t; NaN for less than two values.
    pub half: f64,
}

impl Mean {
    /// Of some values.
    pub fn of(values: &[f64]) -> Self {
        /// Two-sided 95 % quantiles of Student's t for 1 to 10 degrees of freedom.
        const T: [f64; 10] = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
        let n = values.len();
        let value = values.iter().sum::<f64>() / n as f64;
        let Some(freedom) = n.checked_sub(1).filter(|f| *f > 0) else {
            return Self { value, half: f64::NAN };
        };
        let variance = values.iter().map(|v| (v - value) * (v - value)).sum::<f64>() / freedom as f64;
        let t = T.get(freedom - 1).copied().unwrap_or(2.2);
        Self { value, half: t * (variance / n as f64).sqrt() }
    }

    /// Larger, with intervals that do not overlap: never of a single value.
    pub fn above(self, other: Self) -> bool {
        self.value - self.half > other.value + other.half
    }

    /// In Mbit/s, of bit/s.
    pub fn mbps(self) -> String {
        format!("{:.2} ± {:.2}", self.value / 1e6, self.half / 1e6)
    }
}

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ± {:.3}", self.value, self.half)
    }
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

/// Smallest and largest number of successes in `n` trials of probability `p`, when at most `outside` of all
/// experiments may lie beyond either end together.
pub fn binomial(n: u64, p: f64, outside: f64) -> (u64, u64) {
    if n == 0 || p <= 0.0 || p >= 1.0 {
        let certain = if p >= 1.0 { n } else { 0 };
        return (certain, certain);
    }
    // weights relative to the likeliest number: no logarithms, nothing underflows where it counts
    let mode = (((n + 1) as f64 * p) as u64).min(n);
    let odds = p / (1.0 - p);
    let up = |k: u64| (n - k) as f64 / (k + 1) as f64 * odds;
    let (mut below, mut above) = (Vec::new(), Vec::new());
    let mut weight = 1.0;
    for k in (0..mode).rev() {
        weight /= up(k);
        below.push(weight);
        if weight < 1e-18 {
            break;
        }
    }
    weight = 1.0;
    for k in mode..n {
        weight *= up(k);
        above.push(weight);
        if weight < 1e-18 {
            break;
        }
    }
    let total: f64 = 1.0 + below.iter().sum::<f64>() + above.iter().sum::<f64>();
    // from the far end towards the middle, as long as the tail stays below its share
    let cut = |side: &[f64]| {
        let mut tail = 0.0;
        side.iter()
            .rev()
            .take_while(|w| {
                tail += **w / total;
                tail <= outside / 2.0
            })
            .count()
    };
    let (low, high) = (below.len() - cut(&below), above.len() - cut(&above));
    (mode - low as u64, mode + high as u64)
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

    #[test]
    fn quantiles_are_nearest_ranks() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert!((median(&values) - 50.0).abs() < 1e-12 && (quantile(&values, 0.99) - 99.0).abs() < 1e-12);
        assert!((quantile(&[3.0], 0.01) - 3.0).abs() < 1e-12 && median(&[]).is_nan());
    }

    /// Against tables: scipy.stats.binom.interval(0.95, ...).
    #[test]
    fn intervals_are_the_binomial_ones() {
        assert_eq!(binomial(10, 0.5, 0.05), (2, 8));
        assert_eq!(binomial(100_000, 0.01, 0.05), (939, 1062));
        assert_eq!(binomial(1000, 0.001, 0.05), (0, 3));
        assert_eq!((binomial(5, 0.0, 0.05), binomial(5, 1.0, 0.05)), ((0, 0), (5, 5)));
    }

    /// By Student's table for two degrees of freedom.
    #[test]
    fn a_mean_has_an_interval() {
        let of = Mean::of(&[1.0, 2.0, 3.0]);
        assert!((of.value - 2.0).abs() < 1e-12 && (of.half - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(Mean { value: 8.312e6, half: 3.4e4 }.mbps(), "8.31 ± 0.03");
    }

    #[test]
    fn intervals_that_overlap_decide_nothing() {
        let mean = |value, half| Mean { value, half };
        assert!(mean(2.0, 0.4).above(mean(1.0, 0.5)));
        assert!(!mean(2.0, 0.6).above(mean(1.0, 0.5)) && !mean(1.0, 0.1).above(mean(2.0, 0.1)));
        assert!(!Mean::of(&[9.0]).above(Mean::of(&[1.0, 1.0])));
    }

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
