//! Time-varying channels: error bursts, rain, codings, orbits.

use crate::prelude::*;
use bentpipe_base::trace::DropCause;

/// Tolerated standard deviations for random results.
const DEVIATIONS: f64 = 4.0;
/// Speed of light, km/s.
const LIGHT: f64 = 299_792.458;
/// Radius of the Earth, km.
const EARTH: f64 = 6378.0;

static BURST_LOSS: CheckTable = CheckTable {
    title: "Gilbert-Elliott: mean loss",
    columns: &["good", "bad", "loss in good", "loss in bad"],
    expected: "(G k + B h) / (G + B)",
};

static BURST_LENGTH: CheckTable = CheckTable {
    title: "Gilbert-Elliott: packets lost in a row",
    columns: &["good", "bad"],
    expected: "formula",
};

static RAIN: CheckTable = CheckTable {
    title: "Rain: share of time above an attenuation",
    columns: &["attenuation"],
    expected: "P.1853",
};

static CODINGS: CheckTable =
    CheckTable { title: "Bit error rate over Eb/N0", columns: &["coding", "Eb/N0"], expected: "table" };

static DELAYS: CheckTable = CheckTable {
    title: "Delay of one hop",
    columns: &["orbit", "altitude", "elevation"],
    expected: "2 d / c",
};

pub(super) fn all() -> Vec<Check> {
    let spells = [("1 s", "10 ms"), ("5 s", "100 ms"), ("100 ms", "2 ms")];
    let mut checks: Vec<Check> = spells.iter().map(|(good, bad)| loss(good, bad, "0", "1")).collect();
    checks.push(loss("1 s", "100 ms", "1e-3", "0.5"));
    checks.extend(spells.map(|(good, bad)| run_length(good, bad)));
    checks.extend([0.0, 1.2, 5.7, 17.0].map(rain));
    let bers = ["1e-3", "1e-4", "1e-5", "1e-6", "1e-7", "1e-8", "1e-9"];
    let uncoded = ["6.79", "8.40", "9.59", "10.53", "11.31", "11.97", "12.55"];
    let viterbi = ["2.84", "3.51", "4.17", "4.79", "5.36", "5.88", "6.35"];
    for (coding, points) in [("uncoded", uncoded), ("viterbi", viterbi)] {
        checks.extend(points.iter().zip(bers).map(|(ebn0, ber)| bit_errors(coding, ebn0, ber)));
    }
    checks.extend(["90", "30", "0"].map(geostationary));
    for (orbit, altitude, elevation) in [
        ("MEO", "8062", "30"),
        ("LEO", "1200", "25"),
        ("LEO", "780", "8"),
        ("LEO", "550", "25"),
        ("LEO", "610", "35"),
    ] {
        checks.extend(pass(orbit, altitude, elevation));
    }
    checks
}

/// Converts a time such as `10 ms` to seconds.
fn seconds(text: &str) -> f64 {
    if text.ends_with("ms") { number(text) / 1e3 } else { number(text) }
}

const BURST_RUNS: u32 = 5;
/// Duration of the burst runs, s.
const BURST_SECONDS: f64 = 10_000.0;
/// Time between datagrams, s.
const GAP: f64 = 1e-3;

fn bursts(good: &str, bad: &str, loss_good: &str, loss_bad: &str) -> Vec<Job> {
    let sets = [("good", good), ("bad", bad), ("loss_good", loss_good), ("loss_bad", loss_bad)];
    Job::new("crates/validate/data/bursts.toml", &sets).recorded().seeds(BURST_RUNS)
}

fn loss(good: &str, bad: &str, loss_good: &str, loss_bad: &str) -> Check {
    let (g, b) = (seconds(good), seconds(bad));
    let (k, h) = (number(loss_good), number(loss_bad));
    let (share, tau) = (b / (g + b), g * b / (g + b));
    let mean = share * h + (1.0 - share) * k;
    let of_spells = 2.0 * share * (1.0 - share) * tau / BURST_SECONDS * (h - k) * (h - k);
    let of_packets = (share * h * (1.0 - h) + (1.0 - share) * k * (1.0 - k)) * GAP / BURST_SECONDS;
    let tolerance = Tolerance::Relative(DEVIATIONS * (of_spells + of_packets).sqrt() / mean);
    let labels = [good, bad, loss_good, loss_bad];
    let quantity = Quantity::LostShare(DropCause::Burst);
    Check::new(&BURST_LOSS, &labels, quantity, bursts(good, bad, loss_good, loss_bad), mean, tolerance)
}

fn run_length(good: &str, bad: &str) -> Check {
    let (g, b) = (seconds(good), seconds(bad));
    let tau = g * b / (g + b);
    let mean = (g + b) / g / -libm::expm1(-GAP / tau);
    let runs = BURST_SECONDS / GAP * b / (g + b) / mean;
    // of the mean of a geometric distribution, as a share of that mean
    let deviation = (1.0 - 1.0 / mean).sqrt() / runs.sqrt();
    let tolerance = Tolerance::Relative(DEVIATIONS * deviation);
    let quantity = Quantity::Mean(Reading::MeanLossBurst);
    Check::new(&BURST_LENGTH, &[good, bad], quantity, bursts(good, bad, "0", "1"), mean, tolerance)
}

/// Q: upper tail probability of the normal distribution.
fn normal_tail(x: f64) -> f64 {
    0.5 * libm::erfc(x / core::f64::consts::SQRT_2)
}

/// Inverse Q of 0.05.
const TAIL_OF_5_PERCENT: f64 = 1.644_853_626_951_472_2;

fn rain(db: f64) -> Check {
    let (m, sigma) = (-3.26, 1.65);
    let dry = libm::exp(m + sigma * TAIL_OF_5_PERCENT);
    let share = normal_tail((libm::log(db + dry) - m) / sigma);
    let samples = 400_000.0 / (4.0 / 3.0);
    let tolerance = DEVIATIONS * (share * (1.0 - share) / samples).sqrt() / share;
    let jobs = Job::new("crates/validate/data/rain.toml", &[]).recorded().seeds(200);
    let quantity = Quantity::Mean(Reading::ShareAboveFade(db));
    let label = format!("{db} dB");
    Check::new(&RAIN, &[&label], quantity, jobs, share, Tolerance::Relative(tolerance))
}

/// BER by the formulas that the intro of the table names.
fn ber(coding: &str, ebn0_db: f64) -> f64 {
    let ebn0 = libm::exp10(ebn0_db / 10.0);
    if coding == "uncoded" {
        return normal_tail((2.0 * ebn0).sqrt());
    }
    let weights =
        [(10.0, 36.0), (12.0, 211.0), (14.0, 1404.0), (16.0, 11_633.0), (18.0, 77_433.0), (20.0, 502_690.0)];
    weights.iter().map(|(d, c)| c * normal_tail((d * ebn0).sqrt())).sum()
}

fn bit_errors(coding: &str, ebn0: &str, expected: &str) -> Check {
    let db = number(ebn0);
    let half_digit = ber(coding, db - 0.005) / ber(coding, db) - 1.0;
    let label = format!("{ebn0} dB");
    let sets = [("coding", coding), ("clear", &*label)];
    let jobs = vec![Job::new("crates/validate/data/sky.toml", &sets).recorded()];
    let quantity = Quantity::Mean(Reading::Ber);
    let tolerance = Tolerance::Relative(half_digit);
    Check::new(&CODINGS, &[coding, &label], quantity, jobs, number(expected), tolerance)
}

/// Delay of one hop, up and down, s.
fn hop_delay(altitude_km: f64, elevation: &str) -> f64 {
    let e = number(elevation).to_radians();
    let (cos, sin) = (libm::cos(e), libm::sin(e));
    let far = EARTH + altitude_km;
    let slant = (far * far - EARTH * EARTH * cos * cos).sqrt() - EARTH * sin;
    2.0 * slant / LIGHT
}

fn geostationary(elevation: &str) -> Check {
    let altitude = 35_786.0;
    // the latitude at which the satellite has this elevation
    let e = number(elevation).to_radians();
    let latitude = (libm::acos(EARTH * libm::cos(e) / (EARTH + altitude)) - e).to_degrees();
    // the satellite must be slightly above the horizon
    let latitude = if elevation == "0" { latitude - 1e-4 } else { latitude.abs() };
    let latitude = format!("{latitude:.6} deg");
    let jobs = vec![Job::new("crates/validate/data/geo.toml", &[("latitude", &latitude)]).recorded()];
    let quantity = Quantity::Mean(Reading::ShortestDelay);
    let labels = ["GEO", "35786 km", &*format!("{elevation}°")];
    Check::new(&DELAYS, &labels, quantity, jobs, hop_delay(altitude, elevation), Tolerance::Absolute(1e-5))
}

fn pass(orbit: &str, altitude: &str, elevation: &str) -> [Check; 2] {
    let duration = if orbit == "MEO" { "4000 s" } else { "1000 s" };
    let altitude_text = format!("{altitude} km");
    let sets =
        [("altitude", &*altitude_text), ("elevation", &*format!("{elevation} deg")), ("duration", duration)];
    let job = Job::new("crates/validate/data/pass.toml", &sets).recorded();
    let check = |at: &str, reading| {
        let labels = [orbit, &*altitude_text, &*format!("{at}°, lowest {elevation}°")];
        let (jobs, delay) = (vec![job.clone()], hop_delay(number(altitude), at));
        Check::new(&DELAYS, &labels, Quantity::Mean(reading), jobs, delay, Tolerance::Absolute(1e-4))
    };
    [check("90", Reading::ShortestDelay), check(elevation, Reading::LongestDelay)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_give_the_values_of_the_literature() {
        // attenuation exceeded for 5, 1, 0.1 and 0.01 % of the time
        for (db, share) in [(0.0, 0.05), (1.204, 0.01), (5.71, 1e-3), (17.17, 1e-4)] {
            assert!((rain(db).expected / share - 1.0).abs() < 2e-3, "{db}");
        }
        // RFC 2488, with another Earth radius: 239.6 ms at the sub-satellite point; 279.0 at the edge
        assert!(
            (hop_delay(35_786.0, "90") - 0.2396).abs() < 1e-3
                && (hop_delay(35_786.0, "0") - 0.2790).abs() < 1e-3
        );
        assert!(
            (ber("uncoded", 9.59) / 1e-5 - 1.0).abs() < 0.02
                && (ber("viterbi", 4.17) / 1e-5 - 1.0).abs() < 0.03
        );
    }
}
