//! Fade of a dish that does not track: it points in one direction while its satellite moves.
//!
//! Sources: the orbit is a circle of one sidereal day, inclined to the equator; the main lobe is that of
//! ITU-R S.1428-1 and Appendix 8 of the Radio Regulations.
//!
//! ```text
//! u = rotation of the Earth * (t - node), i = inclination, r = 6378 km + 35786 km
//! satellite, Earth-fixed, x towards the satellite's longitude, z north (a figure of eight in a day):
//!   x = r (cos^2 u + sin^2 u cos i),  y = -r sin u cos u (1 - cos i),  z = r sin u sin i
//! phi = angle at the station between the satellite now and at the time `aim`
//! attenuation = 2.5e-3 (phi D / lambda)^2 dB, phi in degrees: 3 dB at half of 69 lambda / D
//! ```
//!
//! Deviations: there are no side lobes. Beyond some 10 dB a real pattern stops falling; here the attenuation
//! goes on growing. The Earth is a sphere, and the orbit does not drift.
//!
//! Defaults: the terminal of Kruse, Ostermann and Allman (2000), 1.2 m in Athens, Ohio, and ACTS at 100 deg
//! west. They print neither the inclination nor the part of the orbit. With 1 deg, 20 GHz and a dish that
//! points to where the satellite is two hours after it crossed the equator, the fade begins at their 5 dB.

use crate::geo::{ALTITUDE_KM, EARTH_KM, LIGHT_KM_S};
use crate::orbit::ROTATION;
use bentpipe_base::{Duration, Instant};

/// Attenuation in dB at one degree for an aperture of one wavelength.
const LOBE: f64 = 2.5e-3;

/// A dish and the satellite that it does not follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pointing {
    /// Diameter of the dish in m.
    pub dish_m: f64,
    /// Carrier frequency in GHz.
    pub frequency_ghz: f64,
    /// Inclination of the orbit in degrees.
    pub inclination_deg: f64,
    /// Longitude at which the satellite crosses the equator, in degrees, east positive.
    pub satellite_deg: f64,
    /// Latitude and longitude of the station in degrees, north and east positive.
    pub station_deg: (f64, f64),
    /// A time at which the satellite crosses the equator northwards.
    pub node: Instant,
    /// A time at which the satellite is where the dish points.
    pub aim: Instant,
    /// Speed-up of the orbit: 1, or the factor by which the timeline of a live link is sped up.
    pub pace: f64,
}

impl Default for Pointing {
    fn default() -> Self {
        Self {
            dish_m: 1.2,
            frequency_ghz: 20.0,
            inclination_deg: 1.0,
            satellite_deg: -100.0,
            station_deg: (39.3, -82.1),
            node: Instant::ZERO,
            aim: Instant::ZERO + Duration::from_secs(7200),
            pace: 1.0,
        }
    }
}

type Vector = [f64; 3];

/// The direction of a dish, with what does not change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dish {
    pointing: Pointing,
    station_km: Vector,
    aim: Vector,
}

impl Dish {
    pub(crate) fn new(pointing: Pointing) -> Self {
        let latitude = pointing.station_deg.0.to_radians();
        let longitude = (pointing.station_deg.1 - pointing.satellite_deg).to_radians();
        let around = EARTH_KM * libm::cos(latitude);
        let station_km =
            [around * libm::cos(longitude), around * libm::sin(longitude), EARTH_KM * libm::sin(latitude)];
        let mut dish = Self { pointing, station_km, aim: [0.0; 3] };
        dish.aim = dish.view(pointing.aim);
        dish
    }

    /// The vector from the station to the satellite.
    fn view(&self, at: Instant) -> Vector {
        let Pointing { inclination_deg, node, pace, .. } = self.pointing;
        let u = ROTATION * pace * (at.as_secs_f64() - node.as_secs_f64());
        let (sin, cos) = (libm::sin(u), libm::cos(u));
        let tilt = inclination_deg.to_radians();
        let radius = EARTH_KM + ALTITUDE_KM;
        let satellite = [
            radius * (cos * cos + sin * sin * libm::cos(tilt)),
            -radius * sin * cos * (1.0 - libm::cos(tilt)),
            radius * sin * libm::sin(tilt),
        ];
        core::array::from_fn(|axis| satellite[axis] - self.station_km[axis])
    }

    /// Attenuation in dB at `at`.
    pub(crate) fn attenuation(&self, at: Instant) -> f64 {
        let wavelength_m = LIGHT_KM_S * 1e3 / (self.pointing.frequency_ghz * 1e9);
        let off_axis = angle(self.aim, self.view(at)).to_degrees() * self.pointing.dish_m / wavelength_m;
        LOBE * off_axis * off_axis
    }
}

/// The angle between two vectors in radians, exact for small angles too.
fn angle(a: Vector, b: Vector) -> f64 {
    let cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    let dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    libm::atan2(libm::sqrt(cross.iter().map(|part| part * part).sum()), dot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(hours * 3600.0)
    }

    #[test]
    fn the_fade_of_the_paper_goes_from_5_db_to_0_in_two_hours_and_rises_again() {
        let dish = Dish::new(Pointing::default());
        let at = |h| dish.attenuation(hours(h));
        assert!((at(0.0) - 5.0).abs() < 0.25, "{}", at(0.0));
        assert!(at(2.0).abs() < 1e-9, "{}", at(2.0));
        assert!((at(3.0) - 1.0).abs() < 0.25, "{}", at(3.0));
        let course: Vec<f64> = (0..=20).map(|n| at(f64::from(n) / 10.0)).collect();
        assert!(course.windows(2).all(|two| two[1] < two[0]), "{course:?}");
    }

    /// Below the satellite, the angle from the node is atan(r sin u sin i / (x - R)), and x is r up to terms
    /// of the square of the inclination.
    #[test]
    fn the_angle_below_the_satellite_is_that_of_a_right_triangle() {
        let (radius, tilt) = (EARTH_KM + ALTITUDE_KM, 0.5_f64.to_radians());
        let under = Pointing { inclination_deg: 0.5, station_deg: (0.0, -100.0), ..Pointing::default() };
        let dish = Dish::new(Pointing { aim: Instant::ZERO, ..under });
        for h in [0.5, 2.0, 6.0, 9.0] {
            let height = radius * libm::sin(ROTATION * h * 3600.0) * libm::sin(tilt);
            let closed = libm::atan(height / (radius - EARTH_KM)).to_degrees();
            let beams = closed / (69.282 * 299_792_000.0 / 20e9 / 1.2);
            let lobe = 12.0 * beams * beams;
            let found = dish.attenuation(hours(h));
            assert!((found / lobe - 1.0).abs() < 1e-3, "{h} h: {found} and {lobe}");
        }
    }

    #[test]
    fn half_the_power_is_lost_at_half_the_beamwidth() {
        let pointing = Pointing::default();
        let beamwidth = libm::sqrt(12.0 / LOBE) * (LIGHT_KM_S / 20e6) / pointing.dish_m;
        let dish = Dish::new(pointing);
        let at = hours(1.0);
        let off = angle(dish.aim, dish.view(at)).to_degrees();
        assert!((beamwidth - 0.865).abs() < 1e-3, "{beamwidth}");
        let halves = off / (beamwidth / 2.0);
        assert!((dish.attenuation(at) - 3.0 * halves * halves).abs() < 1e-9);
    }

    /// In dB the loss grows with the square of the frequency: uplink and downlink have a constant ratio.
    #[test]
    fn the_uplink_loses_more_than_the_downlink_by_the_square_of_the_frequencies() {
        let down = Dish::new(Pointing::default());
        let up = Dish::new(Pointing { frequency_ghz: 30.0, ..Pointing::default() });
        for h in [0.0, 0.7, 5.0] {
            let ratio = up.attenuation(hours(h)) / down.attenuation(hours(h));
            assert!((ratio - 2.25).abs() < 1e-9, "{h} h: {ratio}");
        }
    }

    #[test]
    fn the_orbit_repeats_after_a_sidereal_day_and_sooner_at_a_higher_pace() {
        let day = core::f64::consts::TAU / ROTATION / 3600.0;
        assert!((day - 23.9345).abs() < 1e-4, "{day}");
        let steep = Pointing { inclination_deg: 5.0, ..Pointing::default() };
        let dish = Dish::new(steep);
        assert!((dish.attenuation(hours(day)) - dish.attenuation(hours(0.0))).abs() < 1e-6);
        let fast = Dish::new(Pointing { pace: 60.0, aim: hours(2.0 / 60.0), ..steep });
        for h in [0.0, 1.0, 7.0] {
            let (slow, fast) = (dish.attenuation(hours(h)), fast.attenuation(hours(h / 60.0)));
            assert!((slow - fast).abs() < 1e-6, "{h} h: {slow} and {fast}");
        }
    }
}
