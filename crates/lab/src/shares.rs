//! How much of what the kernel forwards is left when something else carries the packets: by turns, so that what changes on the machine changes for all.

use crate::Outcome;
use crate::passage::{Carrier, Passage};
use crate::stats::median;

/// Goodputs of all rounds, a list for each carrier.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounds(Vec<(Carrier, Vec<f64>)>);

impl Rounds {
    /// Measures every carrier of `carriers` once, `rounds` times over; `told` hears of each figure.
    ///
    /// # Errors
    /// When a program fails.
    pub fn measure(
        passage: &Passage,
        carriers: &[Carrier],
        streams: u32,
        (rounds, seconds): (u32, u32),
        mut told: impl FnMut(Carrier, f64),
    ) -> Outcome<Self> {
        let mut all: Vec<(Carrier, Vec<f64>)> = carriers.iter().map(|c| (*c, Vec::new())).collect();
        for _ in 0..rounds {
            for (carrier, figures) in &mut all {
                let bps = passage.goodput(*carrier, streams, seconds)?;
                told(*carrier, bps);
                figures.push(bps);
            }
        }
        Ok(Self(all))
    }

    fn of(&self, carrier: Carrier) -> &[f64] {
        self.0.iter().find(|(c, _)| *c == carrier).map_or(&[], |(_, figures)| figures)
    }

    /// Median goodput, bit/s.
    pub fn bps(&self, carrier: Carrier) -> f64 {
        median(self.of(carrier))
    }

    /// Goodput of `one` as a share of that of `other` in the same round: the median of all rounds.
    pub fn share(&self, one: Carrier, other: Carrier) -> f64 {
        let shares: Vec<f64> =
            self.of(one).iter().zip(self.of(other)).map(|(one, other)| one / other).collect();
        median(&shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passage::Kind;

    #[test]
    fn rounds_are_compared_round_by_round() {
        let passing = Carrier::Passing(Kind::Routed);
        // a machine that gets slower from round to round
        let rounds = Rounds(vec![(Carrier::Kernel, vec![10.0, 5.0, 1.0]), (passing, vec![6.0, 3.5, 0.5])]);
        assert!((rounds.share(passing, Carrier::Kernel) - 0.6).abs() < 1e-12);
        assert!((rounds.bps(Carrier::Kernel) - 5.0).abs() < 1e-12);
        assert!(rounds.share(Carrier::Bare(Kind::Inline), Carrier::Kernel).is_nan());
    }
}
