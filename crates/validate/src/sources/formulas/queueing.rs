//! Queueing: M/D/1.

use crate::prelude::*;

/// Payload rate that saturates the link of `poisson.toml`, bit/s.
const FULL_BPS: f64 = 7.776e6;
/// Runs of each load.
const RUNS: u32 = 5;
/// Packets served in all runs.
const SERVICES: f64 = 1e7;
/// Tolerated standard deviations.
const DEVIATIONS: f64 = 5.0;

static M_D_1: CheckTable =
    CheckTable { title: "Random arrivals: M/D/1", columns: &["load ρ"], expected: "ρ² / (2 (1 − ρ))" };

pub(super) fn all() -> Vec<Check> {
    ["0.3", "0.5", "0.8", "0.9"].map(load).into()
}

fn load(rho_text: &str) -> Check {
    let rho = number(rho_text);
    let rate = format!("{:.0} bit/s", rho * FULL_BPS);
    let jobs = Job::new("crates/validate/data/poisson.toml", &[("rate", &rate)]).seeds(RUNS);
    let waiting = rho * rho / (2.0 * (1.0 - rho));
    let deviation = rho / ((1.0 - rho) * (1.0 - rho)) / (2.0 * SERVICES).sqrt();
    let tolerance = Tolerance::Relative(DEVIATIONS * deviation / waiting);
    let quantity = Quantity::metric("queue_mean[bottleneck]");
    Check::new(&M_D_1, &[rho_text], quantity, jobs, waiting, tolerance)
}
