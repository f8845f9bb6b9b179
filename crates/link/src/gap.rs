//! Packet losses drawn as gaps: how many packets pass before the next one is lost.
//!
//! If each packet is lost with probability p, independently, that number is geometric: P(G >= k) = (1-p)^k,
//! so G = floor(ln U / ln(1-p)) with U uniform in (0, 1]. One number is drawn for each loss, in place of one
//! for each packet. The losses have the same distribution as those drawn for each packet, but are others.
//! The distribution has no memory, so with another probability another gap is drawn, and what was left of the
//! last one means nothing. Of a packet that is cut each fragment counts.

use bentpipe_base::Rng;
use bentpipe_base::shift::Walk;

/// How it is decided which packets are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossDraw {
    /// A random number for each packet.
    #[default]
    Packet,
    /// A random number for each loss: how many packets pass before it.
    Gap,
}

impl LossDraw {
    /// The state, if gaps are drawn.
    pub(crate) fn gap(self) -> Option<Gap> {
        (self == Self::Gap).then(Gap::default)
    }
}

/// The present gap.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gap {
    /// Probability for which it was drawn; 0 before the first draw.
    loss: f64,
    /// Fragments that pass before the next loss.
    left: u64,
}

impl Gap {
    /// True if a packet in so many fragments is lost, each with probability `loss`. Probabilities of 0 and 1
    /// draw no random number.
    pub(crate) fn loses(&mut self, rng: &mut Rng, loss: f64, fragments: u32) -> bool {
        if loss <= 0.0 || loss >= 1.0 {
            return loss >= 1.0;
        }
        if loss.to_bits() != self.loss.to_bits() {
            *self = Self { loss, left: draw(rng, loss) };
        }
        let mut fragments = u64::from(fragments);
        let mut is_lost = false;
        while self.left < fragments {
            fragments -= self.left + 1;
            self.left = draw(rng, loss);
            is_lost = true;
        }
        self.left -= fragments;
        is_lost
    }

    /// Visits the state: no more than what is left of the gap may be skipped.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>) {
        walk.same(&self.loss);
        walk.countdown(&mut self.left);
    }
}

fn draw(rng: &mut Rng, loss: f64) -> u64 {
    // 1 - unit is uniform in (0, 1]; what is too long for 64 bits becomes the largest value
    (libm::log1p(-rng.unit()) / libm::log1p(-loss)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Purpose;

    /// Gaps between losses of packets of one fragment.
    fn gaps(loss: f64, n: usize, seed: u64) -> Vec<f64> {
        let (mut rng, mut gap) = (Rng::new(seed, "gaps", Purpose::Errors), Gap::default());
        let mut next = || {
            let mut passed = 0.0;
            while !gap.loses(&mut rng, loss, 1) {
                passed += 1.0;
            }
            passed
        };
        (0..n).map(|_| next()).collect()
    }

    /// Mean (1-p)/p and variance (1-p)/p^2. Limits of 4.5 standard errors: with a kurtosis of at most 9 that
    /// of the variance is sqrt(8/n) times it. The chance that one of six fails is below 1e-4, and the seed is
    /// fixed.
    #[test]
    fn gaps_have_the_mean_and_the_variance_of_the_geometric_distribution() {
        let n = 40_000;
        for loss in [0.5, 0.1, 0.01] {
            let gaps = gaps(loss, n, 1);
            let (mean, variance) = ((1.0 - loss) / loss, (1.0 - loss) / (loss * loss));
            let found = gaps.iter().sum::<f64>() / n as f64;
            assert!((found - mean).abs() < 4.5 * (variance / n as f64).sqrt(), "{loss}: mean {found}");
            let spread = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / n as f64;
            // the fourth central moment of a geometric variable is (9 + p^2/(1-p)) times the variance squared
            let of_variance = variance * ((8.0 + loss * loss / (1.0 - loss)) / n as f64).sqrt();
            assert!((spread - variance).abs() < 4.5 * of_variance, "{loss}: variance {spread}");
        }
    }

    /// Whether a packet is lost does not depend on the one before.
    #[test]
    fn losses_are_independent() {
        let (mut rng, mut gap) = (Rng::new(2, "gaps", Purpose::Errors), Gap::default());
        let n = 200_000;
        let lost: Vec<bool> = (0..n).map(|_| gap.loses(&mut rng, 0.2, 1)).collect();
        let twice = lost.windows(2).filter(|two| two[0] && two[1]).count() as f64 / f64::from(n - 1);
        // the variance of the number of pairs is n p^2 (1 + 2p - 3p^2): 4.5 standard errors are 0.0022
        assert!((twice - 0.04).abs() < 0.0023, "{twice}");
    }

    /// Of a packet in three parts each is exposed to losses.
    #[test]
    fn a_packet_is_lost_with_any_of_its_fragments() {
        let (mut rng, mut gap) = (Rng::new(3, "gaps", Purpose::Errors), Gap::default());
        let n = 100_000;
        let lost = (0..n).filter(|_| gap.loses(&mut rng, 0.1, 3)).count() as f64 / f64::from(n);
        // 1 - 0.9^3 = 0.271; 4.5 standard errors are 0.0063
        assert!((lost - 0.271).abs() < 0.0064, "{lost}");
    }

    #[test]
    fn a_new_probability_begins_a_new_gap_and_certainty_draws_nothing() {
        let (mut rng, mut gap) = (Rng::new(4, "gaps", Purpose::Errors), Gap::default());
        let untouched = rng.clone().bits();
        assert!(!gap.loses(&mut rng, 0.0, 1) && gap.loses(&mut rng, 1.0, 1));
        assert_eq!(rng.clone().bits(), untouched);
        let n = 100_000;
        // from one packet to the next another probability: each is lost with its own
        let mut share = |loss: f64| {
            let lost = (0..n).filter(|_| {
                gap.loses(&mut rng, 0.9, 1);
                gap.loses(&mut rng, loss, 1)
            });
            lost.count() as f64 / f64::from(n)
        };
        assert!((share(0.3) - 0.3).abs() < 0.0066); // 4.5 standard errors
        // so long that nobody waits for it
        assert!((0..1000).all(|_| !gap.loses(&mut rng, 1e-300, 1)));
    }
}
