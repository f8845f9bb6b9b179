//! Mean and half-width of the 95 % confidence interval, by Student's t.

/// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom; further ones are rounded up to the quantile of 30, at most 4 % too wide.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Mean; `None` without values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Half-width; `None` with less than two values.
pub(crate) fn half_width(values: &[f64]) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|n| *n > 0)?;
    let m = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - m) * (v - m)).sum();
    let t = T_975[freedom.min(T_975.len()) - 1];
    Some(t * (squares / freedom as f64 / values.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_values() {
        assert_eq!(mean(&[1.0, 2.0, 3.0]), Some(2.0));
        assert!((half_width(&[1.0, 2.0, 3.0]).unwrap() - 4.303 / 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!((mean(&[]), half_width(&[1.0])), (None, None));
    }
}
