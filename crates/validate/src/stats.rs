//! Confidence intervals.

/// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Arithmetic mean; not a number for an empty list.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half-width of the 95 % confidence interval of the mean; `None` for less than two values.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|n| *n > 0)?;
    let m = mean(values);
    let squares: f64 = values.iter().map(|v| (v - m) * (v - m)).sum();
    // beyond the table the quantile of 30 is too wide by at most 4 %
    let t = T_975[freedom.min(T_975.len()) - 1];
    Some(t * (squares / freedom as f64 / values.len() as f64).sqrt())
}

/// Fewest and most successes out of `n` with probability `p` that are not more surprising than `alpha`, half on each side.
pub fn binomial_bounds(n: u64, p: f64, alpha: f64) -> (u64, u64) {
    // the lower tail of the failures is the upper tail of the successes
    (lower_bound(n, p, alpha / 2.0), n - lower_bound(n, 1.0 - p, alpha / 2.0))
}

/// The smallest k with P(X <= k) > `tail`.
fn lower_bound(n: u64, p: f64, tail: f64) -> u64 {
    if p <= 0.0 {
        return 0;
    }
    if p >= 1.0 {
        return n;
    }
    let expected = n as f64 * p;
    let deviation = (expected * (1.0 - p)).sqrt();
    // below this nothing contributes
    let mut k = (expected - 12.0 * deviation - 30.0).max(0.0) as u64;
    let mut below = 0.0;
    while k < n {
        below += libm::exp(log_pmf(n, p, k));
        if below > tail {
            return k;
        }
        k += 1;
    }
    n
}

fn log_pmf(n: u64, p: f64, k: u64) -> f64 {
    let (n, k) = (n as f64, k as f64);
    libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
        + k * libm::log(p)
        + (n - k) * libm::log1p(-p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_a_mean() {
        assert!((mean(&[1.0, 2.0, 3.0]) - 2.0).abs() < 1e-12);
        // standard deviation 1, t(2) = 4.303
        assert!((half_width(&[1.0, 2.0, 3.0]).unwrap() - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(half_width(&[1.0]), None);
        assert_eq!(half_width(&[]), None);
    }

    #[test]
    fn bounds_of_a_binomial() {
        // 10 coins: P(0) = 1/1024, P(<= 1) = 11/1024
        assert_eq!(binomial_bounds(10, 0.5, 0.001), (0, 10));
        assert_eq!(binomial_bounds(10, 0.5, 0.01), (1, 9));
        assert_eq!(binomial_bounds(10, 0.0, 0.01), (0, 0));
        assert_eq!(binomial_bounds(10, 1.0, 0.01), (10, 10));
        // many trials: close to the normal distribution, 3.89 standard deviations of 94.9
        let (low, high) = binomial_bounds(1_000_000, 0.00909, 1e-4);
        assert!((low as f64 - (9090.0 - 369.0)).abs() < 8.0, "{low}");
        assert!((high as f64 - (9090.0 + 369.0)).abs() < 8.0, "{high}");
        // few expected: Poisson of mean 5, P(<= 17) = 0.9999946, P(0) = 0.0067
        let (low, high) = binomial_bounds(500_000, 1e-5, 1e-4);
        assert_eq!((low, high), (0, 16));
    }
}
