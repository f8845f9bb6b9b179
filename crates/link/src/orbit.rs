//! Moving satellites: the delay of a MEO pass, the slots of a LEO constellation.
//!
//! **MEO**: one satellite after the other passes over the terminal on a circular orbit; the terminal changes
//! over when the satellite in use reaches the lowest elevation, where the next one has just risen (make
//! before break). The slant range follows from the geometry, the angular speed from Kepler's third law minus
//! the rotation of the Earth: the satellites fly eastwards above the equator, like those of O3b.
//!
//! **LEO**: a schedule assigns another satellite every 15 s. Within a slot the delay jitters around the
//! slot's own base. At the boundary there is a short outage or loss, and the rate changes.
//!
//! When the delay drops, packets sent later would overtake earlier ones. By default they do not: an arrival
//! is never earlier than the one before. With `reorder` each packet has its own delay.

use crate::geo::{EARTH_KM, LIGHT_KM_S, central_angle, slant_km};
use crate::state::{Process, SHORTEST_STEP, State, grid};
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Cx, Duration, Instant, Probability, Purpose, Rate, RngSlot, World};

/// How the satellite in use moves.
#[derive(Clone, Debug, PartialEq)]
pub enum Orbit {
    /// One pass after another.
    Pass(Pass),
    /// A new satellite in every slot.
    Slots(Slots),
}

/// Geometry of passes through the zenith. The link's own delay is added to that of the two hops, for the
/// terrestrial part of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// Altitude above a sphere of 6378 km radius, in km.
    pub altitude_km: f64,
    /// Lowest elevation in use, in degrees.
    pub min_elevation_deg: f64,
    /// Time between computations of the delay, more than zero.
    pub every: Duration,
    /// Speed-up of the orbit: 1, or the factor by which the timeline of a live link is sped up.
    pub pace: f64,
}

/// A schedule of slots.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    /// Length of a slot.
    pub period: Duration,
    /// Beginning of the first full slot.
    pub offset: Duration,
    /// One-way delay of a slot, uniform between lowest and highest. Replaces the link's own delay. Directions
    /// with the same `pair` draw the same relative positions in their ranges.
    pub delay: (Duration, Duration),
    /// Name of the random stream of delays; both directions of a terminal use the same.
    pub pair: String,
    /// Scale of the Laplace-distributed jitter of the one-way delay, which stays above the lowest `delay`.
    pub jitter: Duration,
    /// How long one value of the jitter holds.
    pub jitter_step: Duration,
    /// Rate of a slot, uniform between lowest and highest; `None` keeps the link's own.
    pub rate: Option<(Rate, Rate)>,
    /// What happens at the boundary between slots.
    pub handover: Handover,
    /// Packets may overtake each other when the delay drops.
    pub reorder: bool,
}

/// What happens between two slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Handover {
    /// Everything sent is lost for a time drawn from this range.
    Outage(Duration, Duration),
    /// Packets are lost with this probability for this time.
    Loss(Probability, Duration),
    /// Nothing is lost.
    Seamless,
}

/// Gravitational parameter of the Earth in km^3/s^2.
const MU_KM3_S2: f64 = 398_600.441_8;
/// Rotation of the Earth in rad/s.
pub(crate) const ROTATION: f64 = 7.292_115_9e-5;

/// The passes of one direction. The run begins as a satellite rises.
#[derive(Debug)]
pub(crate) struct PassProcess {
    altitude_km: f64,
    /// Half the central angle of a pass, in radians.
    reach: f64,
    /// Angular speed relative to the ground, in rad/s.
    speed: f64,
    every: Duration,
}

impl PassProcess {
    pub(crate) fn new(pass: &Pass) -> Self {
        let altitude_km = pass.altitude_km.max(0.0);
        let radius = EARTH_KM + altitude_km;
        let speed = libm::sqrt(MU_KM3_S2 / (radius * radius * radius)) - ROTATION;
        let reach = central_angle(altitude_km, pass.min_elevation_deg.to_radians());
        let speed = speed.abs() * pass.pace.abs();
        Self { altitude_km, reach, speed, every: pass.every.max(SHORTEST_STEP) }
    }

    /// Delay of the two hops at `at`.
    fn delay(&self, at: Instant) -> Duration {
        let swept = libm::fmod(self.speed * at.as_secs_f64(), 2.0 * self.reach);
        // in a pass of length zero the satellite stays at the zenith
        let angle = if swept.is_finite() { swept - self.reach } else { -self.reach };
        Duration::from_secs_f64(2.0 * slant_km(self.altitude_km, libm::cos(angle)) / LIGHT_KM_S)
    }
}

impl Process for PassProcess {
    fn apply(&mut self, at: Instant, _cx: &mut Cx<'_>, state: &mut State) -> Instant {
        let step = grid(at, self.every);
        state.one_way += self.delay(step);
        step + self.every
    }
}

#[derive(Debug)]
pub(crate) struct SlotProcess {
    slots: Slots,
    /// One draw per slot: the position in the range of delays. Shared by a pair.
    orbit_rng: RngSlot,
    /// Two draws per slot: rate, length of the handover.
    beam_rng: RngSlot,
    /// One draw per step of the jitter.
    jitter_rng: RngSlot,
    /// End of the current slot; `None` before the first.
    end: Option<Instant>,
    base: Duration,
    rate: Option<Rate>,
    handover_until: Instant,
    jitter: f64,
    jitter_end: Instant,
}

impl SlotProcess {
    /// `name` is that of the direction.
    pub(crate) fn new(slots: &Slots, name: &str, world: &mut World) -> Self {
        let slots = Slots {
            period: slots.period.max(SHORTEST_STEP),
            jitter_step: slots.jitter_step.max(SHORTEST_STEP),
            ..slots.clone()
        };
        Self {
            orbit_rng: world.open_rng(&slots.pair, Purpose::Orbit),
            beam_rng: world.open_rng(name, Purpose::Beam),
            jitter_rng: world.open_rng(name, Purpose::SlotJitter),
            slots,
            end: None,
            base: Duration::ZERO,
            rate: None,
            handover_until: Instant::ZERO,
            jitter: 0.0,
            jitter_end: Instant::ZERO,
        }
    }

    /// Enters the slot that begins at `begin`; returns its end.
    fn enter(&mut self, cx: &mut Cx<'_>, begin: Instant) -> Instant {
        let Slots { period, offset, delay: (low, high), rate, handover, .. } = &self.slots;
        self.base = Duration(cx.rng(self.orbit_rng).between(low.0 as f64, high.0 as f64) as u64);
        let beam = cx.rng(self.beam_rng);
        // always drawn, so that the stream does not depend on the parameters
        let (place, length) = (beam.unit(), beam.unit());
        self.rate = rate.and_then(|(low, high)| {
            let (low, high) = (low.bps() as f64, high.bps() as f64);
            Rate::from_bps((low + place * (high - low)) as u64)
        });
        let lasts = match *handover {
            Handover::Outage(low, high) => low + high.saturating_sub(low).mul_f64(length),
            Handover::Loss(_, lasts) => lasts,
            Handover::Seamless => Duration::ZERO,
        };
        // the run does not begin with a handover
        self.handover_until = if self.end.is_some() { begin + lasts } else { begin };
        let first = Duration(offset.0 % period.0);
        let partial = self.end.is_none() && !first.is_zero();
        *self.end.insert(begin + if partial { first } else { *period })
    }
}

impl Process for SlotProcess {
    fn apply(&mut self, at: Instant, cx: &mut Cx<'_>, state: &mut State) -> Instant {
        let mut end = self.end.unwrap_or(Instant::ZERO);
        while self.end.is_none() || end <= at {
            end = self.enter(cx, end);
        }
        let mut until = end;
        if !self.slots.jitter.is_zero() {
            while self.jitter_end <= at {
                self.jitter = cx.rng(self.jitter_rng).laplace(self.slots.jitter.0 as f64);
                self.jitter_end += self.slots.jitter_step;
            }
            until = until.min(self.jitter_end);
        }
        let shortest = self.slots.delay.0.0 as f64;
        state.one_way = Duration((self.base.0 as f64 + self.jitter).max(shortest) as u64);
        state.rate = self.rate.or(state.rate);
        if at < self.handover_until {
            until = until.min(self.handover_until);
            match self.slots.handover {
                Handover::Outage(..) => state.lost_to = state.lost_to.or(Some(DropCause::Handover)),
                Handover::Loss(p, _) => state.handover_loss = p.get(),
                Handover::Seamless => {}
            }
        }
        until
    }
}
