//! Statements about the whole fade, from the instruments.

use crate::prelude::*;

/// Runs of each kind.
const RUNS: u32 = 10;

static ERRORS_PER_BIT: CheckTable = CheckTable {
    title: "Segment error rate over bit error rate",
    columns: &["coding", "bit error rate of", "segment error rate"],
    expected: "expected",
};

static FADE_AND_ERRORS: CheckTable =
    CheckTable { title: "Fade and bit error rate", columns: &["of", "fade"], expected: "expected" };

/// A run through the fade; with `rise` the signal recovers at the end.
fn fade_job(tcp: &str, window: &str, coding: &str, rise: &str) -> Job {
    let sets = [("tcp", tcp), ("window", window), ("coding", coding), ("rise", rise)];
    Job::new("scenarios/fade-2h.toml", &sets)
}

const RANGES: [(&str, f64, f64); 4] = [
    ("1e-4 to 1e-3", 1e-4, 1e-3),
    ("1e-3 to 1e-2", 1e-3, 1e-2),
    ("1e-2 to 1e-1", 1e-2, 1e-1),
    ("less than 1e-1", 0.0, 1e-1),
];

pub(super) fn all() -> Vec<Check> {
    let mut checks = Vec::new();
    let runs = |coding: &str| fade_job("sack", "359 segments", coding, "0 dB").seeds(RUNS);
    for coding in ["uncoded", "viterbi"] {
        for (of, measured) in [("the link", false), ("the side channel", true)] {
            for (name, low, high) in RANGES {
                let too_few = measured && high <= 1e-3;
                let judged = coding == "uncoded" && !too_few;
                let tolerance = if judged { Tolerance::Between(1.0e4, 1.3e4) } else { Tolerance::Unjudged };
                let quantity = Quantity::ErrorsPerBit { low, high, measured };
                let (labels, jobs) = ([coding, of, name], runs(coding));
                checks.push(Check::new(&ERRORS_PER_BIT, &labels, quantity, jobs, f64::NAN, tolerance));
            }
        }
    }
    for (fade, rise) in [("5 dB to 0", "0 dB"), ("5 dB to 0 and back to 1", "1 dB")] {
        let jobs = fade_job("sack", "359 segments", "uncoded", rise).seeds(RUNS);
        let (group, order) = (&FADE_AND_ERRORS, Quantity::Mean(Reading::FadeOutOfOrder));
        let none = Tolerance::Absolute(0.0);
        checks.push(Check::new(group, &["the link", fade], order, jobs.clone(), 0.0, none));
        let rank = Quantity::Mean(Reading::FadeRank);
        checks.push(Check::reported(group, &["as measured", fade], rank, jobs));
    }
    checks
}
