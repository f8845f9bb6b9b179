//! Schemes for satellite links, and BBR, on the same bottleneck: other variants of case A.

use super::{Row, shared};
use crate::prelude::*;

pub(super) static WESTWOOD: CheckTable = CheckTable {
    title: "Random loss, Westwood+",
    columns: &["Westwood+", "loss"],
    expected: "ns-2",
    intro: "The same with Westwood+. ns-2 has Linux's: two filters of 7/8, and a loss halves the window until it is repaired, only then is it set to what the measured \
        rate fills. So each repair is measured as a round at half the rate, and where losses are frequent the estimate goes down with it. With these (`memory = 0.875`, \
        `twice`, `late`) tolerance 6 %. The paper's goes to what the rate fills at once; at a loss of 1e-2 that is worth a \
        quarter, reported beside it.",
};

pub(super) static BBR: CheckTable = CheckTable {
    title: "Random loss, BBR",
    columns: &["TCP", "loss"],
    expected: "ns-3",
    intro: "The same with BBR version 1 beside ns-3.44's. Tolerance 6 %.",
};

pub(super) static ORDER: CheckTable = CheckTable {
    title: "Random loss, the order of schemes",
    columns: &["TCP", "above that of ns-2's"],
    expected: "at least",
    intro: "The same at a loss of 1e-2. In ns-2 Westwood+ is above Vegas, and Vegas above SACK; of Hybla there is no number, but its paper (Caini, Firrincieli, 2004) has it above \
        standard TCP on a long path with losses: its window grows as if the round trip were 25 ms.",
};

/// A scheme, the one it must exceed, and the goodput of that one in ns-2 at a loss of 1e-2, B/s.
const ORDERED: [(&str, &str, f64); 3] =
    [("westwood", "vegas", 596_095.0), ("vegas", "sack", 423_421.0), ("hybla", "sack", 423_421.0)];

/// BBR in ns-3.44: loss, and the total goodput, B/s.
const NS3_BBR: [(&str, f64); 3] = [("1e-4", 1009e3), ("1e-3", 1007e3), ("1e-2", 1004e3)];
/// Runs of a cell.
const RUNS: u32 = 5;

pub(super) fn westwood(row: &Row) -> Vec<Check> {
    let job = shared::sharing_job(row, "westwood");
    let linux = job.clone().with(Change::LinuxWestwood);
    let check = |label, job, tolerance| Check::of(row, &WESTWOOD, &[label, row.loss], job, tolerance);
    vec![
        check("as Linux", &linux, Tolerance::Relative(0.06)),
        check("as the paper", &job, Tolerance::Unjudged),
    ]
}

pub(super) fn bbr() -> Vec<Check> {
    let check = |(loss, goodput)| {
        let (jobs, tolerance) = (runs("bbr", loss), Tolerance::Relative(0.06));
        Check::new(&BBR, &["bbr", loss], Quantity::GOODPUT, jobs, goodput, tolerance)
    };
    NS3_BBR.map(check).into()
}

pub(super) fn order() -> Vec<Check> {
    let check = |(tcp, above, goodput)| {
        let (jobs, least) = (runs(tcp, "1e-2"), Tolerance::AtLeast(goodput));
        Check::new(&ORDER, &[tcp, above], Quantity::GOODPUT, jobs, goodput, least)
    };
    ORDERED.map(check).into()
}

fn runs(tcp: &str, loss: &str) -> Vec<Job> {
    Job::new("scenarios/sharing.toml", &[("tcp", tcp), ("loss", loss), ("jitter", "0 ms")]).seeds(RUNS)
}
