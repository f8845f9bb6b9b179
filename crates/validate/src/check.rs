//! One number that should come out, and whether it did.

use crate::group::Group;
use crate::job::{Job, Observed, run_all};
use crate::stats;
use std::collections::BTreeMap;

/// Share of false alarms when losses are counted.
const BINOMIAL_ALPHA: f64 = 1e-4;
/// Counting losses among fewer packets proves nothing.
const FEWEST_PACKETS: u64 = 100_000;

/// What is read off a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Sum of the goodputs, B/s.
    Goodput,
    /// Mean goodput of this many flows, B/s.
    GoodputPerFlow(u32),
    /// Completion time of a transfer, s.
    Completion,
    /// Peak of the bottleneck's queue, packets.
    QueuePeak,
    /// Share of packets lost as a whole, all runs pooled.
    LostShare,
    /// Share of packets lost to bit errors, all runs pooled.
    CorruptedShare,
    /// Share of time the bottleneck was busy between the ends of two runs that are equal up to the end of the first.
    Busy,
}

/// What should come out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// The value.
    pub value: f64,
    /// Half-width of its 95 % confidence interval, if it was measured in several runs.
    pub half_width: Option<f64>,
    /// What another simulator says, for information.
    pub other: Option<f64>,
}

impl Expected {
    /// Computed, not measured.
    pub const fn exactly(value: f64) -> Self {
        Self { value, half_width: None, other: None }
    }
}

/// How far off the mean may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// This share of the expected value, either way.
    Relative(f64),
    /// This much, either way.
    Absolute(f64),
    /// Between these two, whatever is expected.
    Between(f64, f64),
    /// The pooled count of losses is one that the expected probability yields in all but one of 10 000 cases.
    Binomial,
    /// Reported, not judged.
    Unjudged,
}

/// One number to check.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The table it stands in.
    pub group: Group,
    /// The leading cells of its row; what tells it from the others of the group.
    pub labels: Vec<String>,
    /// What is read off each run.
    pub quantity: Quantity,
    /// The runs.
    pub jobs: Vec<Job>,
    /// What should come out.
    pub expected: Expected,
    /// How far off it may be.
    pub tolerance: Tolerance,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Agrees,
    /// Outside.
    Misses,
    /// No tolerance is given.
    Unjudged,
}

/// A check with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What was checked.
    pub check: Check,
    /// Mean of the runs.
    pub mean: f64,
    /// Half-width of its 95 % confidence interval; `None` for one run.
    pub half_width: Option<f64>,
    /// Lowest and highest mean that agrees.
    pub bounds: Option<(f64, f64)>,
    /// Packets looked at, where losses are counted.
    pub packets: Option<u64>,
    /// How it came out.
    pub verdict: Verdict,
}

impl Judged {
    /// The deviation from the expected value.
    pub fn deviation(&self) -> f64 {
        self.mean - self.check.expected.value
    }

    /// The deviation as a share of the expected value.
    pub fn relative(&self) -> f64 {
        self.deviation() / self.check.expected.value
    }

    /// How much of the tolerance is used up: 0 in its middle, 1 at its edge.
    pub fn used(&self) -> Option<f64> {
        let (low, high) = self.bounds?;
        let middle = match self.check.tolerance {
            Tolerance::Between(..) => f64::midpoint(low, high),
            _ => self.check.expected.value,
        };
        let room = if self.mean < middle { middle - low } else { high - middle };
        let off = (self.mean - middle).abs();
        Some(if room > 0.0 {
            off / room
        } else if off > 0.0 {
            f64::INFINITY
        } else {
            0.0
        })
    }

    /// Group and labels in one line.
    pub fn name(&self) -> String {
        format!("{}: {}", self.check.group.title(), self.check.labels.join(", "))
    }
}

/// Runs what `checks` need, each job once, and judges them; results are in the order of `checks`.
///
/// # Errors
/// When a scenario cannot be read.
pub fn judge(checks: &[Check]) -> Result<Vec<Judged>, String> {
    let mut jobs: Vec<Job> = checks.iter().flat_map(|c| c.jobs.iter().cloned()).collect();
    jobs.sort();
    jobs.dedup();
    let seen: BTreeMap<&Job, Observed> = jobs.iter().zip(run_all(&jobs)?).collect();
    Ok(checks.iter().map(|c| c.judge(&c.jobs.iter().map(|j| seen[j]).collect::<Vec<_>>())).collect())
}

impl Check {
    fn judge(&self, runs: &[Observed]) -> Judged {
        let values = self.quantity.values(runs);
        let mean = stats::mean(&values);
        let bounds = self.bounds(runs);
        let packets = (self.tolerance == Tolerance::Binomial).then(|| packets(runs));
        let verdict = match bounds {
            None => Verdict::Unjudged,
            Some(_) if packets.is_some_and(|n| n < FEWEST_PACKETS) => Verdict::Misses,
            Some((low, high)) if low <= mean && mean <= high => Verdict::Agrees,
            Some(_) => Verdict::Misses, // also what is not a number
        };
        Judged { check: self.clone(), mean, half_width: stats::half_width(&values), bounds, packets, verdict }
    }

    fn bounds(&self, runs: &[Observed]) -> Option<(f64, f64)> {
        let expected = self.expected.value;
        match self.tolerance {
            Tolerance::Relative(share) => Some((expected * (1.0 - share), expected * (1.0 + share))),
            Tolerance::Absolute(amount) => Some((expected - amount, expected + amount)),
            Tolerance::Between(low, high) => Some((low, high)),
            Tolerance::Binomial => {
                let n = packets(runs);
                let (low, high) = stats::binomial_bounds(n, expected, BINOMIAL_ALPHA);
                Some((low as f64 / n as f64, high as f64 / n as f64))
            }
            Tolerance::Unjudged => None,
        }
    }
}

fn packets(runs: &[Observed]) -> u64 {
    runs.iter().map(|r| r.packets).sum()
}

impl Quantity {
    /// One value for each run, or one for all where they are pooled.
    fn values(self, runs: &[Observed]) -> Vec<f64> {
        let pooled = |count: fn(&Observed) -> u64| {
            vec![runs.iter().map(count).sum::<u64>() as f64 / packets(runs) as f64]
        };
        match self {
            Self::Goodput => runs.iter().map(|r| r.goodput).collect(),
            Self::GoodputPerFlow(n) => runs.iter().map(|r| r.goodput / f64::from(n)).collect(),
            Self::Completion => runs.iter().map(|r| r.finished_s).collect(),
            Self::QueuePeak => runs.iter().map(|r| f64::from(r.queue_peak)).collect(),
            Self::LostShare => pooled(|r| r.lost),
            Self::CorruptedShare => pooled(|r| r.corrupted),
            Self::Busy => {
                let between =
                    |w: &[Observed]| (w[1].busy_s - w[0].busy_s) / (w[1].simulated_s - w[0].simulated_s);
                runs.chunks_exact(2).map(between).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(quantity: Quantity, expected: f64, tolerance: Tolerance) -> Check {
        let (group, labels, jobs) = (Group::Windows, Vec::new(), Vec::new());
        Check { group, labels, quantity, jobs, expected: Expected::exactly(expected), tolerance }
    }

    fn goodput(value: f64, tolerance: Tolerance) -> Judged {
        check(Quantity::Goodput, 100.0, tolerance)
            .judge(&[Observed { goodput: value, ..Observed::default() }])
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
            (1.0, Tolerance::Unjudged, Verdict::Unjudged),
        ] {
            assert_eq!(goodput(value, tolerance).verdict, verdict, "{value} {tolerance:?}");
        }
        let used = |value, tolerance| goodput(value, tolerance).used().unwrap();
        assert!((used(103.0, Tolerance::Relative(0.06)) - 0.5).abs() < 1e-9);
        assert!((used(92.5, Tolerance::Between(80.0, 90.0)) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn counts_are_pooled_and_busy_time_is_a_difference() {
        let run = |packets, lost| Observed { packets, lost, ..Observed::default() };
        let runs = [run(100_000, 1000), run(300_000, 3100)];
        let judged = check(Quantity::LostShare, 0.01, Tolerance::Binomial).judge(&runs);
        assert!((judged.mean - 0.01025).abs() < 1e-12 && judged.verdict == Verdict::Agrees);
        let judged = check(Quantity::LostShare, 0.011, Tolerance::Binomial).judge(&runs);
        assert_eq!(judged.verdict, Verdict::Misses);
        let judged = check(Quantity::LostShare, 0.01, Tolerance::Binomial).judge(&[run(99_999, 1000)]);
        assert_eq!(judged.verdict, Verdict::Misses, "too few packets");
        let run = |busy_s, simulated_s| Observed { busy_s, simulated_s, ..Observed::default() };
        let judged = check(Quantity::Busy, 1.0, Tolerance::Absolute(1e-4))
            .judge(&[run(90.0, 100.0), run(490.0, 500.0)]);
        assert!((judged.mean - 1.0).abs() < 1e-12);
    }
}
