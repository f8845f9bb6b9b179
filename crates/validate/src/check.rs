//! One expected number, and whether the runs reproduce it.

use crate::job::Job;
use crate::observed::RunResult;
use crate::quantity::{Quantity, packets};
use crate::table::share_used;
use bentpipe_stats::{Level, binomial_bounds, half_width, mean};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// False alarm probability of loss counts.
const BINOMIAL_ALPHA: f64 = 1e-4;
/// Loss counts over fewer packets are not significant.
const FEWEST_PACKETS: u64 = 100_000;

/// One table. What it compares, and why its tolerance is what it is, says the page.
#[derive(Debug, PartialEq, Eq)]
pub struct CheckTable {
    /// Unique heading.
    pub title: &'static str,
    /// Headings of the leading columns, one for each label of a check.
    pub columns: &'static [&'static str],
    /// Heading of the column with expected values.
    pub expected: &'static str,
}

/// How far the mean may deviate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// At most this share of the expected value.
    Relative(f64),
    /// At most this much.
    Absolute(f64),
    /// Between these two, independent of the expected value.
    Between(f64, f64),
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// The losses of all runs together lie in the range that the expected probability gives in all but one
    /// of 10 000 cases.
    Binomial,
    /// Reported, not judged.
    Unjudged,
}

/// One number to check.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Its table.
    pub table: &'static CheckTable,
    /// The leading cells of its row, unique within the table.
    pub labels: Vec<String>,
    /// What is measured in its runs.
    pub quantity: Quantity,
    /// The runs.
    pub jobs: Vec<Job>,
    /// The expected value; NaN if only a range is given.
    pub expected: f64,
    /// The tolerance.
    pub tolerance: Tolerance,
}

/// Verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Agrees,
    /// Outside the tolerance.
    Misses,
    /// Outside the tolerance, and its figure file says why.
    Differs,
    /// No tolerance is given.
    Unjudged,
}

/// A check with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckResult {
    /// The check.
    pub check: Check,
    /// Mean of the runs.
    pub mean: f64,
    /// Half-width of its 95 % confidence interval; `None` for one run.
    pub half_width: Option<f64>,
    /// Lowest and highest mean within the tolerance.
    pub bounds: Option<(f64, f64)>,
    /// Packets counted, for loss counts.
    pub packets: Option<u64>,
    /// The verdict.
    pub verdict: Verdict,
}

impl CheckResult {
    /// Deviation from the expected value.
    pub fn deviation(&self) -> f64 {
        self.mean - self.check.expected
    }

    /// Deviation as a share of the expected value.
    pub fn relative(&self) -> f64 {
        self.deviation() / self.check.expected
    }

    /// Share of the tolerance used: 0 in its middle, 1 at its edge.
    pub fn tolerance_used(&self) -> Option<f64> {
        let middle = match self.check.tolerance {
            Tolerance::Between(..) => None,
            _ => Some(self.check.expected),
        };
        Some(share_used(self.mean, middle, self.bounds?))
    }
}

/// Results of each job.
pub type RunResults = BTreeMap<Job, RunResult>;

/// Runs each of `jobs` once, in parallel.
///
/// # Errors
/// If a scenario cannot be read.
pub fn run_jobs(jobs: impl Iterator<Item = Job>) -> Result<RunResults, String> {
    let jobs: BTreeSet<Job> = jobs.collect();
    jobs.into_par_iter().map(|job| job.run().map(|run| (job, run))).collect()
}

/// Runs the jobs of `checks` and judges them. Results are in the order of `checks`.
///
/// # Errors
/// If a scenario cannot be read.
pub fn judge(checks: &[Check]) -> Result<Vec<CheckResult>, String> {
    let seen = run_jobs(checks.iter().flat_map(|c| c.jobs.iter().cloned()))?;
    Ok(judge_results(checks, &seen))
}

/// Judges `checks`; all their jobs must be in `seen`.
pub fn judge_results(checks: &[Check], seen: &RunResults) -> Vec<CheckResult> {
    checks.iter().map(|c| c.judge(&c.jobs.iter().map(|j| &seen[j]).collect::<Vec<_>>())).collect()
}

impl Check {
    /// A check against a value without uncertainty; NaN if there is none.
    pub fn new(
        group: &'static CheckTable,
        labels: &[&str],
        quantity: Quantity,
        jobs: Vec<Job>,
        expected: f64,
        tolerance: Tolerance,
    ) -> Self {
        let labels = labels.iter().map(|l| (*l).to_owned()).collect();
        Self { table: group, labels, quantity, jobs, expected, tolerance }
    }

    /// A check that is reported, not judged.
    pub fn reported(group: &'static CheckTable, labels: &[&str], quantity: Quantity, jobs: Vec<Job>) -> Self {
        Self::new(group, labels, quantity, jobs, f64::NAN, Tolerance::Unjudged)
    }

    /// Returns the title of its table and its labels, as one line.
    pub fn name(&self) -> String {
        format!("{}: {}", self.table.title, self.labels.join(", "))
    }

    fn judge(&self, runs: &[&RunResult]) -> CheckResult {
        let values = self.quantity.values(runs);
        let mean = mean(&values);
        let bounds = self.bounds(runs);
        let packets = (self.tolerance == Tolerance::Binomial).then(|| packets(runs));
        let verdict = match bounds {
            None => Verdict::Unjudged,
            Some(_) if packets.is_some_and(|n| n < FEWEST_PACKETS) => Verdict::Misses,
            Some((low, high)) if low <= mean && mean <= high => Verdict::Agrees,
            Some(_) => Verdict::Misses, // includes NaN
        };
        let half_width = half_width(&values, Level::P95);
        CheckResult { check: self.clone(), mean, half_width, bounds, packets, verdict }
    }

    fn bounds(&self, runs: &[&RunResult]) -> Option<(f64, f64)> {
        let expected = self.expected;
        match self.tolerance {
            Tolerance::Relative(share) => Some((expected * (1.0 - share), expected * (1.0 + share))),
            Tolerance::Absolute(amount) => Some((expected - amount, expected + amount)),
            Tolerance::Between(low, high) => Some((low, high)),
            Tolerance::AtLeast(low) => Some((low, f64::INFINITY)),
            Tolerance::AtMost(high) => Some((f64::NEG_INFINITY, high)),
            Tolerance::Binomial => {
                let n = packets(runs);
                let (low, high) = binomial_bounds(n, expected, BINOMIAL_ALPHA);
                Some((low as f64 / n as f64, high as f64 / n as f64))
            }
            Tolerance::Unjudged => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::tests::{with_goodput, with_losses};
    use crate::reading::Reading;
    use bentpipe_base::trace::DropCause;

    static GROUP: CheckTable = CheckTable { title: "t", columns: &[], expected: "" };

    fn check(quantity: Quantity, expected: f64, tolerance: Tolerance) -> Check {
        let (group, labels, jobs) = (&GROUP, Vec::new(), Vec::new());
        Check { table: group, labels, quantity, jobs, expected, tolerance }
    }

    fn goodput(value: f64, tolerance: Tolerance) -> CheckResult {
        check(Quantity::Mean(Reading::Metric("goodput")), 100.0, tolerance).judge(&[&with_goodput(value)])
    }

    #[test]
    fn tolerances_have_edges() {
        for (value, tolerance, verdict) in [
            (105.9, Tolerance::Relative(0.06), Verdict::Agrees),
            (93.9, Tolerance::Relative(0.06), Verdict::Misses),
            (101.0, Tolerance::Absolute(1.0), Verdict::Agrees),
            (98.9, Tolerance::Absolute(1.0), Verdict::Misses),
            (80.0, Tolerance::Between(80.0, 90.0), Verdict::Agrees),
            (100.0, Tolerance::Between(80.0, 90.0), Verdict::Misses),
            (f64::NAN, Tolerance::Relative(0.06), Verdict::Misses),
            (80.0, Tolerance::AtLeast(80.0), Verdict::Agrees),
            (79.0, Tolerance::AtLeast(80.0), Verdict::Misses),
            (81.0, Tolerance::AtMost(80.0), Verdict::Misses),
            (f64::NAN, Tolerance::AtMost(80.0), Verdict::Misses),
            (1.0, Tolerance::Unjudged, Verdict::Unjudged),
        ] {
            assert_eq!(goodput(value, tolerance).verdict, verdict, "{value} {tolerance:?}");
        }
        let used = |value, tolerance| goodput(value, tolerance).tolerance_used().unwrap();
        assert!((used(103.0, Tolerance::Relative(0.06)) - 0.5).abs() < 1e-9);
        assert!((used(92.5, Tolerance::Between(80.0, 90.0)) - 1.5).abs() < 1e-9);
        assert!((used(100.0, Tolerance::AtLeast(80.0)) - 0.8).abs() < 1e-9);
        assert!((used(100.0, Tolerance::AtMost(80.0)) - 1.25).abs() < 1e-9);
    }

    #[test]
    fn losses_are_judged_by_their_number() {
        let runs = [with_losses(100_000, 1000), with_losses(300_000, 3100)];
        let verdict = |p, runs: &[&RunResult]| {
            check(Quantity::LostShare(DropCause::PacketLoss), p, Tolerance::Binomial).judge(runs).verdict
        };
        assert_eq!(verdict(0.01, &[&runs[0], &runs[1]]), Verdict::Agrees);
        assert_eq!(verdict(0.011, &[&runs[0], &runs[1]]), Verdict::Misses);
        assert_eq!(verdict(0.01, &[&with_losses(99_999, 1000)]), Verdict::Misses, "too few packets");
    }
}
