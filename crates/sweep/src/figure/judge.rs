//! Compares the runs with the statements.
//!
//! A statement is checked at each of its values of x, and holds if it holds at all of them. What is
//! reported is the first value of x at which it does not hold, or else the one that is nearest to its
//! limit.

use super::measure::ratio;
use super::plan::Plan;
use super::{Cell, Cells, FigureJob};
use crate::pictures::written_unit;
use crate::table::Estimate;
use bentpipe_report::Unit;
use bentpipe_scenario::figure_file::{Accept, Claim, PrintedValue, Statement, Tolerance};
use bentpipe_sim::reference::in_unit;

/// Verdict on a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The mean is accepted, at each value of x.
    Agrees,
    /// It is not, or a run has no value.
    Differs,
    /// It was not run.
    NotRun,
}

impl Verdict {
    /// The verdict as a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::NotRun => "not-run",
        }
    }
}

/// A statement with its verdict. Numbers are in the unit of [`StatementResult::paper_value`]; for an order
/// they are ratios of a curve to the one after it.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementResult {
    /// Short name of the paper.
    pub paper: Option<String>,
    /// Item of the paper.
    pub item: Option<u64>,
    /// The statement.
    pub text: String,
    /// Mean of the runs; `None` if one has no value.
    pub ours: Option<f64>,
    /// 95 % interval of the mean; `None` for one run.
    pub interval: Option<(f64, f64)>,
    /// Unit of the numbers.
    pub unit: String,
    /// Number of runs of the point.
    pub runs: usize,
    /// Longest simulated time of a run, s.
    pub length: f64,
    /// What the source has.
    pub paper_value: String,
    /// Accepted means, in words.
    pub accepted: String,
    /// Which point is reported; empty in a table.
    pub at: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The command that makes the figure.
    pub command: String,
}

/// One point of a statement.
struct Comparison {
    estimate: Estimate,
    runs: usize,
    length: f64,
    at: String,
}

/// Accepted means, in the unit of the metric.
struct Bounds {
    low: f64,
    high: f64,
    /// The lowest value itself is not accepted.
    above: bool,
}

impl Bounds {
    fn accept(&self, mean: f64) -> bool {
        mean <= self.high && if self.above { mean > self.low } else { mean >= self.low }
    }

    /// How far inside the mean is; less than zero outside.
    fn room(&self, mean: f64) -> f64 {
        (mean - self.low).min(self.high - mean)
    }
}

/// Judges all statements.
pub(crate) fn all(job: &FigureJob<'_>, plan: &Plan, cells: &Cells) -> Vec<StatementResult> {
    job.file.statements.iter().map(|s| judge(job, plan, cells, s)).collect()
}

fn judge(job: &FigureJob<'_>, plan: &Plan, cells: &Cells, statement: &Statement) -> StatementResult {
    let quick = job.file.quick.as_ref().filter(|_| job.quick).map_or(0.0, |q| q.tolerance);
    let (bounds, paper_value, scale, unit) = expected(job, plan, &statement.claim, quick);
    let comparisons = comparisons(job, cells, statement);
    let accepted = |c: &Comparison| c.estimate.mean.is_some_and(|m| bounds.accept(m));
    let room = |c: &Comparison| c.estimate.mean.map_or(f64::NEG_INFINITY, |m| bounds.room(m));
    let nearest = comparisons.iter().flatten().min_by(|a, b| room(a).total_cmp(&room(b)));
    let shown = comparisons.iter().flatten().find(|c| !accepted(c)).or(nearest);
    let verdict = match shown {
        None => Verdict::NotRun,
        Some(c) if accepted(c) => Verdict::Agrees,
        Some(_) => Verdict::Differs,
    };
    let mean = shown.and_then(|c| c.estimate.mean);
    let half_width = shown.and_then(|c| c.estimate.half_width);
    StatementResult {
        paper: job.file.paper.clone(),
        item: job.file.item,
        text: statement.text.value.clone(),
        ours: mean.map(|m| m / scale),
        interval: mean.zip(half_width).map(|(m, h)| ((m - h) / scale, (m + h) / scale)),
        accepted: in_words(&bounds, scale, &unit),
        unit,
        runs: shown.map_or(0, |c| c.runs),
        length: shown.map_or(0.0, |c| c.length),
        paper_value,
        at: shown.map_or_else(String::new, |c| c.at.clone()),
        verdict,
        command: job.command.clone(),
    }
}

/// Returns the points at which a statement is checked; `None` if one of its curves is not run.
fn comparisons(job: &FigureJob<'_>, cells: &Cells, statement: &Statement) -> Option<Vec<Comparison>> {
    let pairs: Vec<(usize, Option<usize>)> = match &statement.claim {
        Claim::Value { curve, over, .. } => vec![(*curve, *over)],
        Claim::Order { curves, .. } => curves.windows(2).map(|two| (two[0], Some(two[1]))).collect(),
    };
    let mut all = Vec::new();
    for &x in &statement.at {
        for &(curve, over) in &pairs {
            let above = cells.get(curve)?.get(x)?;
            let below = over.map(|o| cells.get(o)?.get(x)).map_or(Some(None), |b| b.map(Some))?;
            all.push(Comparison {
                estimate: Estimate::new(&below.map_or_else(|| above.values.clone(), |b| ratios(above, b))),
                runs: above.values.len(),
                length: below.map_or(above.length, |b| b.length.max(above.length)),
                at: place(job, x, curve, over),
            });
        }
    }
    Some(all)
}

/// Ratios of two cells, seed by seed. One by zero is no value, or each order below it would hold.
fn ratios(above: &Cell, below: &Cell) -> Vec<Option<f64>> {
    above.values.iter().zip(&below.values).map(|(a, b)| ratio((*a)?, (*b)?)).collect()
}

fn place(job: &FigureJob<'_>, x: usize, curve: usize, over: Option<usize>) -> String {
    let name = |n: usize| job.file.curves[n].name.value.as_str();
    let curves = over.map_or_else(String::new, |o| format!("{} over {}", name(curve), name(o)));
    let x = job.file.across.as_ref().map(|a| format!("{} = {}", a.parameter.value, a.values[x].value));
    let words = [Some(curves).filter(|c| !c.is_empty()), x];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns accepted means, the source's value in words, and the unit of the report with its size in the
/// metric's. `quick` is the least tolerance.
fn expected(job: &FigureJob<'_>, plan: &Plan, claim: &Claim, quick: f64) -> (Bounds, String, f64, String) {
    let (over, accept) = match claim {
        Claim::Order { curves, tolerance } => {
            let names: Vec<&str> = curves.iter().map(|c| job.file.curves[*c].name.value.as_str()).collect();
            let bounds = Bounds { low: 1.0 - tolerance.max(quick), high: f64::INFINITY, above: true };
            return (bounds, names.join(" > "), 1.0, String::new());
        }
        Claim::Value { over, accept, .. } => (over, accept),
    };
    let unit = if over.is_some() { Unit::Ratio } else { plan.unit };
    // units were checked with the plan
    let value = |v: &PrintedValue| in_unit(unit, v.amount).unwrap_or(f64::NAN);
    let (bounds, words, printed) = match &**accept {
        Accept::Near { expect, tolerance } => {
            let middle = value(&expect.value);
            let room = match tolerance.value {
                Tolerance::Share(share) => middle.abs() * share.max(quick),
                Tolerance::Amount(amount) => {
                    in_unit(unit, amount).unwrap_or(f64::NAN).max(middle.abs() * quick)
                }
            };
            (
                Bounds { low: middle - room, high: middle + room, above: false },
                expect.value.text.clone(),
                expect,
            )
        }
        Accept::Between { low, high, expect } => {
            let (least, most) = (value(&low.value), value(&high.value));
            let ends = (least - least.abs() * quick, most + most.abs() * quick);
            let words = expect.as_ref().map_or_else(
                || format!("{} to {}", low.value.text, high.value.text),
                |e| e.value.text.clone(),
            );
            (Bounds { low: ends.0, high: ends.1, above: false }, words, expect.as_ref().unwrap_or(low))
        }
    };
    let (name, one) = written_unit(&printed.value.text, unit);
    (bounds, words, one, name.to_owned())
}

fn in_words(bounds: &Bounds, scale: f64, unit: &str) -> String {
    let rounded = |v: f64| crate::rounding::rounded(v / scale);
    let words = if bounds.high.is_finite() {
        format!("{} to {} {unit}", rounded(bounds.low), rounded(bounds.high))
    } else {
        format!("above {} {unit}", rounded(bounds.low))
    };
    words.trim_end().to_owned()
}
