//! Random numbers of the hop: splitmix64 (Steele, Lea, Flood 2014), one sequence for each seed and purpose.

/// A reproducible sequence of random numbers.
#[derive(Clone, Debug, Default)]
pub struct RandomNumbers(u64);

impl RandomNumbers {
    /// The sequence of `purpose` for `seed`.
    pub const fn new(seed: u64, purpose: u64) -> Self {
        let mut dice = Self(seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
        dice.next();
        Self(dice.0 ^ dice.next())
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0 to 1, 1 excluded.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with probability `p`; 0 draws no number, so a disabled feature does not shift the sequence.
    pub fn happens(&mut self, p: f64) -> bool {
        p > 0.0 && self.uniform() < p
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_comes_true() {
        let mut dice = RandomNumbers::new(3, 1);
        let n = (0..1_000_000).filter(|_| dice.happens(0.01)).count();
        // 10 000 expected, standard deviation 99.5
        assert!((9_500..10_500).contains(&n), "{n}");
        assert_ne!(
            RandomNumbers::new(3, 1).uniform().to_bits(),
            RandomNumbers::new(3, 2).uniform().to_bits()
        );
        assert_ne!(
            RandomNumbers::new(3, 1).uniform().to_bits(),
            RandomNumbers::new(4, 1).uniform().to_bits()
        );
    }
}
