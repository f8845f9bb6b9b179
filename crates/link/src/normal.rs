//! The normal distribution's tail: Q(x) and its inverse.

/// Probability that a standard normal variable exceeds `x`.
pub fn q(x: f64) -> f64 {
    0.5 * libm::erfc(x * core::f64::consts::FRAC_1_SQRT_2)
}

/// The `x` that a standard normal variable exceeds with probability `p`; -40 to 40.
pub fn q_inverse(p: f64) -> f64 {
    bisect(|x| q(x) > p)
}

/// Returns the point between -40 and 40 where `left_of` turns from true to false.
pub(crate) fn bisect(left_of: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    // after 60 halvings of 80 the interval is below the spacing of doubles
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if left_of(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_of_the_normal_distribution() {
        for (x, p) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457),
            (1.644_853_626_951_47, 0.05),
            (5.0, 2.866_515_718_8e-7),
        ] {
            assert!((q(x) / p - 1.0).abs() < 1e-9, "Q({x}) = {}", q(x));
            assert!((q_inverse(p) - x).abs() < 1e-9, "Qinv({p}) = {}", q_inverse(p));
        }
    }
}
