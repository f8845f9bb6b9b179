//! Experiment 3: Reno, SACK and Vegas under random loss.

use crate::prelude::*;

/// Loss probabilities of the sweep.
pub(crate) const LOSSES: [&str; 6] = ["1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "1e-2"];
/// In the order of the slides, best first.
pub(crate) const SCHEMES: [&str; 3] = ["vegas", "sack", "reno"];

pub(crate) static FLAVOURS: CheckTable = CheckTable {
    title: "Reno, SACK and Vegas under loss",
    columns: &["TCP", "loss"],
    expected: "expected",
    intro: "One connection with a window of 128 packets, ten runs of 500 s, in `scenarios/window.toml`. The slides \
        find SACK better than Reno, and Vegas better than both from 5e-7 to 1e-3 of what they call the bit error \
        rate. Reported with intervals, not judged.",
};

pub(super) static ORDER: CheckTable = CheckTable {
    title: "Order of Vegas, SACK and Reno",
    columns: &["TCP", "over", "loss"],
    expected: "expected",
    intro: "The same runs, compared seed by seed: above 1 the first is better, and the order is certain where the \
        interval leaves 1 out.",
};

pub(super) fn all() -> Vec<Check> {
    let mut checks = Vec::new();
    for tcp in SCHEMES {
        let check = |loss| Check::reported(&FLAVOURS, &[tcp, loss], Quantity::GOODPUT, runs(tcp, loss));
        checks.extend(LOSSES.map(check));
    }
    for pair in SCHEMES.windows(2) {
        checks.extend(LOSSES.map(|loss| {
            let jobs = [runs(pair[0], loss), runs(pair[1], loss)].concat();
            Check::reported(&ORDER, &[pair[0], pair[1], loss], Quantity::GOODPUT_RATIO, jobs)
        }));
    }
    checks
}

fn runs(tcp: &str, loss: &str) -> Vec<Job> {
    let of_ten_million = (1e7 * number(loss)).round() as u32;
    Job::new("scenarios/window.toml", &[("tcp", tcp)]).with(Change::Loss(of_ten_million)).seeds(10)
}
