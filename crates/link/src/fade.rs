//! A fade: attenuation in dB over time, and its effect on the link.
//!
//! Attenuation comes from a profile (straight lines between points), from the rain series of P.1853 or from
//! a dish that does not follow its satellite. It either raises the bit error rate of a fixed coding, BER =
//! f(clear-sky Eb/N0 - attenuation), or makes adaptive coding slow the link down. Both are recomputed at
//! fixed steps and constant in between.
//!
//! A terminal measures the fade of what it receives, but most errors arise where it sends, and the two do
//! not fade alike: over a day their ratio changes with the orbit and the time of day (Kruse, Ostermann and
//! Allman, 2000). [`Drift`] describes this, and does not derive it: the Eb/N0 changes by a sine over time,
//! the fade that is recorded does not.

use crate::acm::{Acm, Adaptation};
use crate::coding::Coding;
use crate::pointing::{Dish, Pointing};
use crate::rain::{Rain, RainSeries};
use crate::state::{Process, SHORTEST_STEP, State, grid};
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Cx, Duration, Instant, Purpose, World};
use std::sync::Arc;

/// A fade.
#[derive(Clone, Debug, PartialEq)]
pub struct Fade {
    /// Where the attenuation comes from.
    pub source: FadeSource,
    /// Its effect on the link.
    pub effect: FadeEffect,
    /// Time between computations, more than zero.
    pub every: Duration,
}

/// Attenuation over time.
#[derive(Clone, Debug, PartialEq)]
pub enum FadeSource {
    /// Straight lines between these points (dB, at least 0); constant before the first and after the last. At
    /// least one.
    Profile(Arc<[(Instant, f64)]>),
    /// A random rain series.
    Rain(Rain),
    /// A dish that does not follow its satellite.
    Pointing(Pointing),
}

/// The effect of attenuation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FadeEffect {
    /// Bit errors of a fixed coding, on top of the link's own.
    Coding {
        /// The coding.
        coding: Coding,
        /// Eb/N0 under clear sky in dB.
        clear_db: f64,
        /// Its slow change.
        drift: Option<Drift>,
    },
    /// A slower mode of adaptive coding.
    Acm(Acm),
}

/// A slow change of the Eb/N0 that the recorded fade does not show: `amplitude * sin(2 pi (t - start) /
/// period)` is subtracted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Amplitude in dB; negative: the Eb/N0 rises first.
    pub amplitude_db: f64,
    /// Period, more than zero.
    pub period: Duration,
    /// A time at which it is zero.
    pub start: Instant,
}

impl Drift {
    fn db(self, at: Instant) -> f64 {
        let period = self.period.max(SHORTEST_STEP).as_secs_f64();
        let turns = (at.as_secs_f64() - self.start.as_secs_f64()) / period;
        self.amplitude_db * libm::sin(core::f64::consts::TAU * turns)
    }
}

#[derive(Debug)]
pub(crate) struct FadeProcess {
    source: Source,
    effect: Effect,
    every: Duration,
    /// Time of the next computation.
    next: Instant,
    fade_db: f64,
}

#[derive(Debug)]
enum Source {
    Profile(Arc<[(Instant, f64)]>),
    Rain(RainSeries),
    Pointing(Box<Dish>),
}

#[derive(Debug)]
enum Effect {
    /// `last` are the bit error rate, the event rate and the loss probability last computed.
    Coding {
        coding: Coding,
        clear_db: f64,
        drift: Option<Drift>,
        last: (f64, f64, f64),
    },
    Acm(Adaptation),
}

impl FadeProcess {
    /// `name` is that of the direction; it owns the random stream of the scintillation.
    pub(crate) fn new(fade: &Fade, name: &str, world: &mut World) -> Self {
        let source = match &fade.source {
            FadeSource::Profile(points) => Source::Profile(Arc::clone(points)),
            FadeSource::Rain(rain) => {
                let series = world.open_rng(&rain.station, Purpose::Rain);
                let scintillates = rain.scintillation_db > 0.0;
                let scintillation = scintillates.then(|| world.open_rng(name, Purpose::Scintillation));
                Source::Rain(RainSeries::new(rain, series, scintillation))
            }
            FadeSource::Pointing(pointing) => Source::Pointing(Box::new(Dish::new(*pointing))),
        };
        let effect = match fade.effect {
            FadeEffect::Coding { coding, clear_db, drift } => {
                Effect::Coding { coding, clear_db, drift, last: (0.0, 0.0, 0.0) }
            }
            FadeEffect::Acm(acm) => Effect::Acm(Adaptation::new(acm)),
        };
        Self { source, effect, every: fade.every.max(SHORTEST_STEP), next: Instant::ZERO, fade_db: 0.0 }
    }

    fn compute(&mut self, at: Instant, cx: &mut Cx<'_>) {
        self.fade_db = match &mut self.source {
            Source::Profile(points) => profile(points, at),
            Source::Rain(series) => series.attenuation(at, cx),
            Source::Pointing(dish) => dish.attenuation(at),
        };
        match &mut self.effect {
            Effect::Coding { coding, clear_db, drift, last } => {
                let ebn0 = *clear_db - self.fade_db - drift.map_or(0.0, |drift| drift.db(at));
                *last = (coding.ber(ebn0), coding.event(ebn0), coding.threshold_loss(ebn0));
            }
            Effect::Acm(acm) => acm.report(at, self.fade_db),
        }
    }
}

fn profile(points: &[(Instant, f64)], at: Instant) -> f64 {
    let after = points.partition_point(|p| p.0 <= at);
    let Some(&(begin, from)) = after.checked_sub(1).and_then(|i| points.get(i)) else {
        return points.first().map_or(0.0, |p| p.1);
    };
    let Some(&(end, to)) = points.get(after) else { return from };
    from + (to - from) * (at.since(begin).0 as f64 / end.since(begin).0 as f64)
}

impl Process for FadeProcess {
    fn apply(&mut self, at: Instant, cx: &mut Cx<'_>, state: &mut State) -> Instant {
        if matches!(self.effect, Effect::Coding { .. }) && self.next <= at {
            // go to the latest step; only adaptive coding decides at each of them
            self.next = grid(at, self.every);
        }
        while self.next <= at {
            self.compute(self.next, cx);
            self.next += self.every;
        }
        state.fade_db = Some(self.fade_db);
        match &mut self.effect {
            Effect::Coding { last, .. } => {
                (state.fade_ber, state.fade_event, state.fade_loss) = *last;
                self.next
            }
            Effect::Acm(acm) => {
                let until = acm.catch_up(at).min(self.next);
                if acm.signal_too_weak() {
                    state.lost_to = state.lost_to.or(Some(DropCause::Fade));
                }
                state.rate = state.rate.map(|rate| acm.rate(rate));
                until
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_straight_between_its_points_and_constant_outside() {
        let second = |s| Instant::ZERO + Duration::from_secs(s);
        let points = [(second(10), 5.0), (second(20), 0.0), (second(20), 2.0), (second(30), 3.0)];
        for (at, db) in [(0, 5.0), (10, 5.0), (15, 2.5), (20, 2.0), (25, 2.5), (30, 3.0), (99, 3.0)] {
            assert!((profile(&points, second(at)) - db).abs() < 1e-12, "{at} s");
        }
    }
    #[test]
    fn a_drift_is_a_sine_that_begins_at_its_start() {
        let second = |s| Instant::ZERO + Duration::from_secs(s);
        let drift = Drift { amplitude_db: 0.8, period: Duration::from_secs(400), start: second(100) };
        for (at, db) in [(0, -0.8), (100, 0.0), (150, 0.8 * libm::sqrt(0.5)), (200, 0.8), (400, -0.8)] {
            assert!((drift.db(second(at)) - db).abs() < 1e-12, "{at} s: {}", drift.db(second(at)));
        }
    }
}
