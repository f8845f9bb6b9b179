//! More than one loss in a window: experiment 1 of the ns-2 study of 2002.

use crate::prelude::*;

/// Two-way propagation delay of `scenarios/window.toml`, s.
const RTT: f64 = 0.585;
/// BER that gives a packet loss of 1e-3 with packets of 1040 B.
const BIT_ERRORS: &str = "1.2025e-7";

static MULTIPLE_LOSSES: CheckTable = CheckTable {
    title: "More than one loss in a window",
    columns: &["window, packets"],
    expected: "expected",
};

pub(super) fn all() -> Vec<Check> {
    let share = Reading::MultipleLosses(RTT);
    let reported =
        |window| Check::reported(&MULTIPLE_LOSSES, &[window], Quantity::Mean(share), lossy(window));
    let mut checks: Vec<Check> = ["16", "32", "64", "128"].map(reported).into();
    let (jobs, more) = ([lossy("128"), lossy("16")].concat(), Tolerance::AtLeast(1.0));
    let ratio = Quantity::Ratio(share);
    checks.push(Check::new(&MULTIPLE_LOSSES, &["128 over 16"], ratio, jobs, f64::NAN, more));
    checks
}

fn lossy(window: &str) -> Vec<Job> {
    let sets = [
        ("tcp", "sack"),
        ("window", &*format!("{window} segments")),
        ("ber", BIT_ERRORS),
        ("duration", "20000 s"),
    ];
    Job::new("scenarios/window.toml", &sets).recorded().seeds(5)
}
