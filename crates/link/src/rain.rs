//! Rain attenuation as a time series: Recommendation ITU-R P.1853-1 (4 to 55 GHz, 5 to 90 degrees).
//!
//! ```text
//! X(k) = rho X(k-1) + sqrt(1 - rho^2) n(k),  rho = exp(-beta Ts),  beta = 2e-4 1/s, Ts = 1 s, n normal
//! A(k) = max(exp(m + sigma X(k)) - exp(m + sigma Qinv(P0)), 0)   dB
//! ```
//!
//! m and sigma are the parameters of the log-normal distribution of attenuation, P0 is the share of time in
//! which it rains. The recommendation drops the first 200 000 samples, so that the filter forgets its start;
//! here X(0) is drawn from the stationary distribution, which has the same effect. Scintillation is Gaussian
//! noise through a low-pass filter of 0.1 Hz. The filter here is of first order and has the same samples: rho
//! = exp(-2 pi 0.1 Hz Ts), so that variance and autocorrelation are exact for any Ts. Deviations: its
//! spectrum falls by 20 dB a decade, the recommendation's by 80/3; and with Ts = 1 s variations faster than
//! 0.5 Hz are missing: use a Ts of 0.1 s where that matters.

use crate::normal::q_inverse;
use crate::state::SHORTEST_STEP;
use bentpipe_base::{Cx, Duration, Instant, RngSlot};

/// Parameters of the series.
#[derive(Clone, Debug, PartialEq)]
pub struct Rain {
    /// Mean of ln A, A in dB.
    pub m: f64,
    /// Standard deviation of ln A.
    pub sigma: f64,
    /// Probability of rain, more than 0 and less than 1.
    pub p0: f64,
    /// Inverse correlation time in 1/s.
    pub beta: f64,
    /// Time between samples.
    pub step: Duration,
    /// Standard deviation of the scintillation in dB; 0 for none.
    pub scintillation_db: f64,
    /// Name of the station: directions with the same station see the same rain.
    pub station: String,
    /// Ratio of this direction's attenuation to that of the station's series: about 1.9 for the 30 GHz uplink
    /// of a 20 GHz downlink.
    pub scale: f64,
}

/// Corner frequency of the scintillation's low-pass filter in Hz.
const CORNER_HZ: f64 = 0.1;
/// Upper limit of the attenuation, so that numbers stay finite.
const DEEPEST_DB: f64 = 1000.0;

/// The series as one direction sees it.
#[derive(Debug)]
pub(crate) struct RainSeries {
    parameters: Rain,
    rain: Filtered,
    scintillation: Option<Filtered>,
    /// exp(m + sigma Qinv(P0)), subtracted so that it rains only for a share P0 of the time.
    offset: f64,
    /// Number of samples drawn; the last one holds now.
    samples: u64,
}

/// First-order filtered Gaussian noise of variance 1: x(k) = rho x(k-1) + sqrt(1-rho^2) n(k), which starts in
/// its stationary distribution.
#[derive(Debug)]
struct Filtered {
    rng: RngSlot,
    rho: f64,
    x: f64,
}

impl Filtered {
    fn new(rng: RngSlot, decay: f64) -> Self {
        Self { rng, rho: libm::exp(-decay), x: 0.0 }
    }

    fn step(&mut self, cx: &mut Cx<'_>, first: bool) {
        let rho = if first { 0.0 } else { self.rho };
        self.x = rho * self.x + libm::sqrt(1.0 - rho * rho) * cx.rng(self.rng).normal();
    }
}

impl RainSeries {
    /// `scintillation` is the stream of the scintillation, if the parameters have any.
    pub(crate) fn new(parameters: &Rain, rain: RngSlot, scintillation: Option<RngSlot>) -> Self {
        let parameters = Rain { step: parameters.step.max(SHORTEST_STEP), ..parameters.clone() };
        let step = parameters.step.as_secs_f64();
        let corner = core::f64::consts::TAU * CORNER_HZ;
        Self {
            rain: Filtered::new(rain, parameters.beta.abs() * step),
            scintillation: scintillation.map(|rng| Filtered::new(rng, corner * step)),
            offset: libm::exp(parameters.m + parameters.sigma * q_inverse(parameters.p0)),
            samples: 0,
            parameters,
        }
    }

    /// Returns the attenuation in dB at `at`, which must not be earlier than in the last call. Scintillation
    /// can make the attenuation negative.
    pub(crate) fn attenuation(&mut self, at: Instant, cx: &mut Cx<'_>) -> f64 {
        let wanted = at.0 / self.parameters.step.0;
        // one draw for every sample, independent of the calls
        while self.samples <= wanted {
            let first = self.samples == 0;
            self.rain.step(cx, first);
            self.scintillation.iter_mut().for_each(|filter| filter.step(cx, first));
            self.samples += 1;
        }
        let Rain { m, sigma, scale, scintillation_db, .. } = self.parameters;
        let rain = libm::exp(m + sigma * self.rain.x) - self.offset;
        // NaN becomes zero as well
        let rain = if rain > 0.0 { rain.min(DEEPEST_DB) * scale } else { 0.0 };
        rain + self.scintillation.as_ref().map_or(0.0, |s| scintillation_db * s.x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{NodeId, Purpose, World};

    fn rain() -> Rain {
        Rain {
            m: -3.26,
            sigma: 1.65,
            p0: 0.05,
            beta: 2e-4,
            step: Duration::from_secs(1),
            scintillation_db: 0.0,
            station: "station".to_owned(),
            scale: 1.0,
        }
    }

    #[test]
    fn attenuation_is_exceeded_as_often_as_the_recommendation_says() {
        // exceedance does not depend on beta: with a fast one the samples are independent
        let mut world = World::new(4);
        let rng = world.open_rng("station", Purpose::Rain);
        let mut series = RainSeries::new(&Rain { beta: 20.0, ..rain() }, rng, None);
        let n = 2_000_000_u64;
        let levels = [0.0, 1.2, 5.7, 17.0];
        let mut counts = [0.0_f64; 4];
        for i in 0..n {
            let db = series.attenuation(Instant(i * 1_000_000_000), &mut world.cx(Instant::ZERO, NodeId(0)));
            for (count, level) in counts.iter_mut().zip(levels) {
                *count += f64::from(u8::from(db > level));
            }
        }
        for (i, share) in [0.05, 0.01, 0.001, 0.0001].into_iter().enumerate() {
            let found = counts[i] / n as f64;
            // the levels are rounded (3 % of the share), and 4 sigma of a binomial count
            let sigma = libm::sqrt(share / n as f64);
            assert!((found - share).abs() < 0.03 * share + 4.0 * sigma, "{} dB: {found}", levels[i]);
        }
    }

    #[test]
    fn samples_are_normal_from_the_start_and_correlated_as_exp_of_minus_beta_t() {
        let mut world = World::new(5);
        let rng = world.open_rng("station", Purpose::Rain);
        let n = 20_000;
        let mut sums = [0.0; 4];
        for _ in 0..n {
            // 50 s a step: the same process, sampled less often
            let mut series = RainSeries::new(&Rain { step: Duration::from_secs(50), ..rain() }, rng, None);
            let mut at = |s: u64| {
                series.attenuation(Instant(s * 1_000_000_000), &mut world.cx(Instant::ZERO, NodeId(0)));
                series.rain.x
            };
            let (start, later, end) = (at(0), at(1000), at(5000));
            for (sum, term) in sums.iter_mut().zip([start * start, end * end, start * later, start * end]) {
                *sum += term;
            }
        }
        // variance 1 at both ends, exp(-0.2), exp(-1); a product's deviation is at most sqrt(2): 4 sigma are
        // 0.04
        for (sum, expected) in sums.into_iter().zip([1.0, 1.0, 0.8187, 0.3679]) {
            let found = sum / f64::from(n);
            assert!((found - expected).abs() < 0.04, "{found} for {expected}");
        }
    }

    #[test]
    fn scintillation_has_its_deviation_and_its_own_stream() {
        let mut world = World::new(6);
        let slots = [Purpose::Rain, Purpose::Scintillation].map(|p| world.open_rng("station", p));
        let same = world.open_rng("station", Purpose::Rain);
        let mut series = RainSeries::new(&Rain { scintillation_db: 0.5, ..rain() }, slots[0], Some(slots[1]));
        let mut plain = RainSeries::new(&rain(), same, None);
        let (mut squares, n) = (0.0, 100_000_u64);
        for i in 0..n {
            let mut cx = world.cx(Instant::ZERO, NodeId(0));
            let at = Instant(i * 1_000_000_000);
            let both = series.attenuation(at, &mut cx);
            let extra = both - plain.attenuation(at, &mut cx);
            squares += extra * extra;
        }
        // rho = 0.53: 100 000 samples are worth 55 000 independent ones; 4 sigma of the variance are 2.4 %
        let variance = squares / n as f64;
        assert!((variance / 0.25 - 1.0).abs() < 0.024, "{variance}");
    }
}
