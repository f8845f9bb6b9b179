//! Bit error rate over Eb/N0 for the codings of satellite links.
//!
//! ```text
//! uncoded BPSK, QPSK:                     BER = Q(sqrt(2 Eb/N0))
//! rate 1/2, K = 7 (133, 171), soft        BER <= sum c_d Q(sqrt(d Eb/N0)), d = 10, 12, 14, 16, 18, 20,
//! Viterbi decoding, union bound:          c = 36, 211, 1404, 11633, 77433, 502690
//! concatenated, turbo, LDPC:              a cliff: all or nothing around a threshold, logistic, 0.2 dB wide
//! ```
//!
//! The union bound is limited to 1/2. Residual errors after Viterbi decoding come in bursts of some tens of
//! bits: a damaged packet has several wrong bits, so fewer packets are lost than with independent errors of
//! the same rate. How many fewer follows from the code's distance spectrum: an error event begins at a bit
//! with probability <= sum a_d Q(sqrt(d Eb/N0)), a = 11, 38, 193, 1331, 7275, 40406 (Conan 1984; Proakis,
//! Digital Communications, table 8.2), so an event has 36/11 = 3.3 wrong bits at a high Eb/N0 and more at a
//! low one. A packet is lost with probability 1-(1-P_event)^(8 L). Events reaching into the next packet are
//! ignored.
//!
//! The logistic is 0.2 dB wide from 1 % to 99 %: from a loss of 1e-1 to 1e-7 it takes 0.3 dB, like the codes.
//! The output of a decoder below its threshold counts as noise: half the bits are wrong.

use crate::normal::{bisect, q};

/// Distance spectrum of the (133, 171) code from the free distance on: d, number of paths a_d, wrong bits
/// c_d.
const SPECTRUM: [(f64, f64, f64); 6] = [
    (10.0, 11.0, 36.0),
    (12.0, 38.0, 211.0),
    (14.0, 193.0, 1404.0),
    (16.0, 1331.0, 11_633.0),
    (18.0, 7275.0, 77_433.0),
    (20.0, 40_406.0, 502_690.0),
];
/// Scale of the logistic in dB: 1 % to 99 % are 2 ln 99 scales, and 0.2 dB.
const CLIFF_DB: f64 = 0.2 / (2.0 * 4.595_119_850_134_59);

/// A coding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coding {
    /// BPSK or QPSK without coding: independent bit errors.
    Uncoded,
    /// Rate 1/2, K = 7 convolutional code with soft-decision Viterbi decoding: errors in bursts.
    Viterbi,
    /// Turbo, LDPC or concatenated Reed-Solomon: nothing is lost above the threshold and everything below.
    Threshold {
        /// Eb/N0 in dB at which half the packets are lost.
        ebn0_db: f64,
    },
}

impl Coding {
    /// Bit error rate at this Eb/N0 in dB.
    pub fn ber(self, ebn0_db: f64) -> f64 {
        match self {
            Self::Uncoded => q(libm::sqrt(2.0 * from_db(ebn0_db))),
            Self::Viterbi => union_bound(ebn0_db, |(_, _, bits)| bits),
            Self::Threshold { .. } => 0.5 * self.threshold_loss(ebn0_db),
        }
    }

    /// Returns the Eb/N0 in dB at which the bit error rate is `ber`. `None` for a threshold, where the bit
    /// error rate does not determine it, and for a `ber` not between 0 and 1/2. Clear-sky Eb/N0 from a
    /// measured pair of fade and BER: `ebn0_for(ber) + fade_db`.
    pub fn ebn0_for(self, ber: f64) -> Option<f64> {
        let known = ber > 0.0 && ber < 0.5 && !matches!(self, Self::Threshold { .. });
        known.then(|| bisect(|db| self.ber(db) > ber))
    }

    /// Probability per bit that an error event begins there.
    pub(crate) fn event(self, ebn0_db: f64) -> f64 {
        match self {
            Self::Uncoded => self.ber(ebn0_db),
            Self::Viterbi => union_bound(ebn0_db, |(_, paths, _)| paths),
            Self::Threshold { .. } => 0.0,
        }
    }

    /// Loss probability of a packet, whatever its size: 0 for codings without a threshold.
    pub(crate) fn threshold_loss(self, ebn0_db: f64) -> f64 {
        match self {
            Self::Threshold { ebn0_db: half } => 1.0 / (1.0 + libm::exp((ebn0_db - half) / CLIFF_DB)),
            Self::Uncoded | Self::Viterbi => 0.0,
        }
    }
}

fn from_db(db: f64) -> f64 {
    libm::exp10(db / 10.0)
}

fn union_bound(ebn0_db: f64, weight: impl Fn((f64, f64, f64)) -> f64) -> f64 {
    let ebn0 = from_db(ebn0_db);
    SPECTRUM.iter().map(|&line| weight(line) * q(libm::sqrt(line.0 * ebn0))).sum::<f64>().min(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [f64; 7] = [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9];

    /// Probability that a packet of 1500 bytes on the wire is lost at this Eb/N0 in dB.
    fn packet_error(coding: Coding, ebn0_db: f64) -> f64 {
        let hit = -libm::expm1(12_000.0 * libm::log1p(-coding.event(ebn0_db)));
        hit.max(coding.threshold_loss(ebn0_db))
    }

    #[test]
    fn bit_error_rates_of_the_table_uncoded_and_coded() {
        let uncoded = [6.79, 8.40, 9.59, 10.53, 11.31, 11.97, 12.55];
        let coded = [2.84, 3.51, 4.17, 4.79, 5.36, 5.88, 6.35];
        for (coding, table) in [(Coding::Uncoded, uncoded), (Coding::Viterbi, coded)] {
            for (ber, db) in RATES.into_iter().zip(table) {
                let found = coding.ebn0_for(ber).unwrap();
                assert!((found - db).abs() < 0.0051, "{coding:?} {ber:e}: {found}");
                assert!((coding.ber(found) / ber - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn fades_of_the_ka_band_paper() {
        // 1e-5 at a fade of 5 dB determines the clear sky
        for (coding, clear, fades) in
            [(Coding::Uncoded, 14.6, [3.3, 2.9, 2.6]), (Coding::Viterbi, 9.2, [3.8, 3.5, 3.3])]
        {
            let found = coding.ebn0_for(1e-5).unwrap() + 5.0;
            assert!((found - clear).abs() < 0.05, "{coding:?} {found}");
            for (ber, fade) in [1e-7, 3e-8, 1e-8].into_iter().zip(fades) {
                let at = found - coding.ebn0_for(ber).unwrap();
                assert!((at - fade).abs() < 0.051, "{coding:?} {ber:e} at {at} dB");
            }
        }
    }

    #[test]
    fn decoded_errors_hit_fewer_packets_than_independent_ones() {
        let at = |c: Coding| packet_error(c, c.ebn0_for(1e-8).unwrap()) / (1e-8 * 12_000.0);
        assert!((at(Coding::Uncoded) - 1.0).abs() < 1e-3, "{}", at(Coding::Uncoded));
        // between 36/11 and 211/38 wrong bits in an event
        assert!((1.0 / 5.6..11.0 / 36.0).contains(&at(Coding::Viterbi)), "{}", at(Coding::Viterbi));
    }

    #[test]
    fn a_threshold_is_a_cliff() {
        let coding = Coding::Threshold { ebn0_db: 4.0 };
        let loss = |db| packet_error(coding, db);
        assert!(
            (loss(4.0) - 0.5).abs() < 1e-12
                && (loss(3.9) - 0.99).abs() < 1e-9
                && (loss(4.1) - 0.01).abs() < 1e-9
        );
        assert!(loss(4.5) < 1e-7 && loss(3.5) > 1.0 - 1e-7);
        assert_eq!(coding.ebn0_for(1e-5), None);
        assert_eq!((Coding::Uncoded.ebn0_for(0.0), Coding::Viterbi.ebn0_for(0.5)), (None, None));
    }
}
