//! Delay over a geostationary satellite, from the positions of the ground stations.
//!
//! ```text
//! cos gamma = cos(latitude) cos(longitude difference)
//! slant     = sqrt(R^2 + r^2 - 2 R r cos gamma),   R = 6378 km, r = R + 35786 km
//! elevation = atan((cos gamma - R/r) / sin gamma)
//! delay     = (slant up + slant down) / 299792 km/s
//! ```
//!
//! The Earth is a sphere. This gives 238.7 ms below the satellite and 278.1 ms at the edge of its view (RFC
//! 2488: 239.6 and 279.0 ms).

use bentpipe_base::Duration;

/// Radius of the Earth in km.
pub const EARTH_KM: f64 = 6378.0;
/// Altitude of a geostationary satellite in km.
pub const ALTITUDE_KM: f64 = 35_786.0;
/// Speed of light in km/s.
pub const LIGHT_KM_S: f64 = 299_792.0;

/// A ground station that does not see the satellite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BelowHorizon {
    /// 0 for the first station, 1 for the second.
    pub station: usize,
    /// The satellite's elevation there in degrees, below 0.
    pub elevation_deg: f64,
}

/// Returns the one-way delay from one station over the satellite to another. Stations are (latitude,
/// longitude) in degrees, north and east positive.
///
/// # Errors
/// If a station does not see the satellite.
pub fn delay(satellite_deg: f64, from: (f64, f64), to: (f64, f64)) -> Result<Duration, BelowHorizon> {
    let mut km = 0.0;
    for (station, (latitude, longitude)) in [from, to].into_iter().enumerate() {
        let cosine = libm::cos(latitude.to_radians()) * libm::cos((longitude - satellite_deg).to_radians());
        let radius = EARTH_KM + ALTITUDE_KM;
        let sine = libm::sqrt((1.0 - cosine * cosine).max(0.0));
        let elevation = libm::atan2(cosine - EARTH_KM / radius, sine);
        // also rejects NaN
        if elevation < 0.0 || !elevation.is_finite() {
            return Err(BelowHorizon { station, elevation_deg: elevation.to_degrees() });
        }
        km += slant_km(ALTITUDE_KM, cosine);
    }
    Ok(Duration::from_secs_f64(km / LIGHT_KM_S))
}

/// Distance to a satellite whose central angle from the station has this cosine.
pub(crate) fn slant_km(altitude_km: f64, cosine: f64) -> f64 {
    let radius = EARTH_KM + altitude_km;
    libm::sqrt((EARTH_KM * EARTH_KM + radius * radius - 2.0 * EARTH_KM * radius * cosine).max(0.0))
}

/// Central angle between a station and the point below a satellite at this elevation, both in radians.
pub(crate) fn central_angle(altitude_km: f64, elevation: f64) -> f64 {
    let ratio = EARTH_KM / (EARTH_KM + altitude_km) * libm::cos(elevation);
    (libm::acos(ratio.clamp(-1.0, 1.0)) - elevation).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slant_ranges_and_delays_of_common_orbits() {
        // altitude, elevation, slant km, ms of one hop up and down
        for (altitude, elevation, km, ms) in [
            (35_786.0, 90.0, 35_786.0, 239.0),
            (35_786.0, 30.0, 38_612.0, 258.0),
            (35_786.0, 0.0, 41_679.0, 278.0),
            (8_062.0, 90.0, 8_062.0, 54.0),
            (8_062.0, 30.0, 10_153.0, 68.0),
            (1_200.0, 25.0, 2_205.0, 15.0),
            (780.0, 8.0, 2_481.0, 17.0),
            (550.0, 25.0, 1_123.0, 7.5),
            (550.0, 90.0, 550.0, 3.7),
            (630.0, 35.0, 1_013.0, 7.0), // between 590 and 630 km
        ] {
            let angle = central_angle(altitude, f64::to_radians(elevation));
            let slant = slant_km(altitude, libm::cos(angle));
            let tolerance = if (altitude - 630.0_f64).abs() < 1.0 { 6.0 } else { 0.6 };
            assert!((slant - km).abs() < tolerance, "{altitude} km at {elevation}: {slant} km");
            let delay = 2.0 * slant / LIGHT_KM_S * 1e3;
            assert!((delay - ms).abs() < 0.5, "{altitude} km at {elevation}: {delay} ms");
        }
    }

    #[test]
    fn a_geostationary_hop_is_239_ms_below_the_satellite() {
        let below = delay(128.0, (0.0, 128.0), (0.0, 128.0)).unwrap();
        assert!((below.as_millis_f64() - 238.74).abs() < 0.01, "{below}");
        // Hong Kong to Bangkok over 143 degrees east
        let winds = delay(143.0, (22.4, 114.2), (14.1, 100.6)).unwrap();
        assert!((240.0..260.0).contains(&winds.as_millis_f64()), "{winds}");
    }

    #[test]
    fn a_station_that_does_not_see_the_satellite_is_named() {
        let error = delay(0.0, (0.0, 0.0), (40.0, 120.0)).unwrap_err();
        assert_eq!(error.station, 1);
        assert!(error.elevation_deg < 0.0);
        assert!(delay(f64::NAN, (0.0, 0.0), (0.0, 0.0)).is_err());
    }
}
