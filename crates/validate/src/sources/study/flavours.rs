//! Experiment 3: Reno, SACK and Vegas under random loss.

use crate::check::{Check, Tolerance};
use crate::group::Group;
use crate::job::{Change, File, Job};
use crate::quantity::Quantity;
use crate::reading::Reading;

/// Loss probabilities of the sweep.
pub(crate) const LOSSES: [&str; 6] = ["1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "1e-2"];
/// In the order of the slides, best first.
pub(crate) const SCHEMES: [&str; 3] = ["vegas", "sack", "reno"];

/// Throughput of each scheme.
pub(crate) static FLAVOURS: Group = Group {
    title: "Reno, SACK and Vegas under loss",
    columns: &["TCP", "loss"],
    expected: "expected",
    intro: "One connection with a window of 128 packets, ten runs of 500 s, in `scenarios/window.toml`. The slides \
        find SACK better than Reno, and Vegas better than both from 5e-7 to 1e-3 of what they call the bit error \
        rate. Reported with intervals, not judged.",
    fast: false,
};

/// Ratio of throughputs.
pub(super) static ORDER: Group = Group {
    title: "Order of Vegas, SACK and Reno",
    columns: &["TCP", "over", "loss"],
    expected: "expected",
    intro: "The same runs, compared seed by seed: above 1 the first is better, and the order is certain where the \
        interval leaves 1 out.",
    fast: false,
};

pub(super) fn all() -> Vec<Check> {
    let mut checks = Vec::new();
    for tcp in SCHEMES {
        checks.extend(LOSSES.map(|loss| {
            let quantity = Quantity::Mean(Reading::Metric("goodput"));
            Check::new(&FLAVOURS, &[tcp, loss], quantity, runs(tcp, loss), f64::NAN, Tolerance::Unjudged)
        }));
    }
    for pair in SCHEMES.windows(2) {
        checks.extend(LOSSES.map(|loss| {
            let jobs = [runs(pair[0], loss), runs(pair[1], loss)].concat();
            let quantity = Quantity::Ratio(Reading::Metric("goodput"));
            Check::new(&ORDER, &[pair[0], pair[1], loss], quantity, jobs, f64::NAN, Tolerance::Unjudged)
        }));
    }
    checks
}

fn runs(tcp: &str, loss: &str) -> Vec<Job> {
    let of_ten_million = (1e7 * loss.parse::<f64>().unwrap_or(f64::NAN)).round() as u32;
    Job::new(File::Window, &[("tcp", tcp)]).with(Change::Loss(of_ten_million)).seeds(10)
}
