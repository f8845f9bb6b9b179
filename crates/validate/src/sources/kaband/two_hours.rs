//! Statements about the whole fade, from the instruments: K7 and K8.

use crate::prelude::*;

/// Runs of each kind.
const RUNS: u32 = 10;

pub(super) static ERRORS_PER_BIT: CheckTable = CheckTable {
    title: "K7: segment error rate over bit error rate",
    columns: &["coding", "bit error rate of", "segment error rate"],
    expected: "expected",
    intro: "The two run four orders of magnitude apart, the 12 000 bits of a segment: bit errors are independent. \
        Segments in error over segments sent times bit error rate, two-minute bins of ten runs of \
        `scenarios/fade-2h.toml` (SACK, 512 KB) put together: 1.0e4 to 1.3e4 while less than a tenth of the \
        segments is in error. The side channel sees few wrong bits when errors are rare (about 8 a run between \
        1e-4 and 1e-3), so that row is not judged. With a Viterbi decoder errors come in bursts, and fewer segments \
        are hit: reported.",
};

pub(super) static FADE_AND_ERRORS: CheckTable = CheckTable {
    title: "K8: fade and bit error rate",
    columns: &["of", "fade"],
    expected: "expected",
    intro: "Receive fade and bit error rate follow each other for two hours. Of the link: share of 15 s intervals \
        whose bit error rate is lower than that of the next smaller fade, none. As measured: Kendall's rank \
        correlation of fade and the side channel's bit error rate in bins of two minutes, reported; where no bit \
        is wrong for minutes it cannot be 1. The paper adds that the relation drifts between runs, with the time \
        of day and the orbit: nothing here does that.",
};

/// A run through the fade; with `rise` the signal recovers at the end.
pub(crate) fn fade_job(tcp: &str, window: &str, coding: &str, rise: &str) -> Job {
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
