//! Compares the runs with the statements.
//!
//! A statement is checked at each of its values of x, and holds if it holds at all of them. What is
//! reported is the first value of x at which it does not hold, or else the one that is nearest to its
//! limit.

use super::measure::ratio;
use super::plan::Plan;
use super::{Cell, Cells, FigureJob, estimate};
use crate::pictures::written_unit;
use crate::table::Estimate;
use bentpipe_report::Unit;
use bentpipe_scenario::figure_file::{Accept, Claim, PrintedValue, Setting, Statement, Tolerance};
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

/// Why a statement is known to differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDifference {
    /// The reason.
    pub why: String,
    /// Parameters with which the statement holds: `loss = 0.2, window = 64 KiB`.
    pub turn: String,
}

/// A statement with its verdict. Numbers are in the unit of [`StatementResult::paper_value`]; for an order
/// they are ratios of a curve to the one after it, for a trend those of the smaller to the larger mean.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementResult {
    /// Short name of the paper.
    pub paper: Option<String>,
    /// Items of the paper.
    pub items: Vec<u64>,
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
    /// How far inside of them the mean is, as a share of what is expected; below zero outside.
    pub room: Option<f64>,
    /// Which point is reported; empty in a table.
    pub at: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it differs, if the file knows.
    pub known: Option<KnownDifference>,
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
    /// The ends themselves are not accepted.
    open: bool,
}

impl Bounds {
    fn accept(&self, mean: f64) -> bool {
        if self.open { self.low < mean && mean < self.high } else { self.low <= mean && mean <= self.high }
    }

    /// How far inside the mean is; less than zero outside.
    fn room(&self, mean: f64) -> f64 {
        (mean - self.low).min(self.high - mean)
    }

    /// The middle, or the only limit, without its sign; 1 if that is zero.
    fn size(&self) -> f64 {
        let ends: Vec<f64> = [self.low, self.high].into_iter().filter(|end| end.is_finite()).collect();
        let size = (ends.iter().sum::<f64>() / ends.len() as f64).abs();
        if size > 0.0 { size } else { 1.0 }
    }
}

impl StatementResult {
    /// Returns the difference that the file knows, unless the statement agrees or was not run.
    pub fn known_difference(&self) -> Option<&KnownDifference> {
        self.known.as_ref().filter(|_| self.verdict == Verdict::Differs)
    }
}

/// Judges all statements.
pub(crate) fn all(job: &FigureJob<'_>, plan: &Plan, cells: &Cells) -> Vec<StatementResult> {
    job.file.statements.iter().map(|s| judge(job, plan, cells, s)).collect()
}

pub(crate) fn judge(
    job: &FigureJob<'_>,
    plan: &Plan,
    cells: &Cells,
    statement: &Statement,
) -> StatementResult {
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
        items: statement.items.clone(),
        text: statement.text.value.clone(),
        ours: mean.map(|m| m / scale),
        interval: mean.zip(half_width).map(|(m, h)| ((m - h) / scale, (m + h) / scale)),
        accepted: in_words(&bounds, scale, &unit),
        unit,
        runs: shown.map_or(0, |c| c.runs),
        length: shown.map_or(0.0, |c| c.length),
        paper_value,
        at: shown.map_or_else(String::new, |c| c.at.clone()),
        room: mean.map(|m| bounds.room(m) / bounds.size()),
        verdict,
        known: statement.known.as_ref().map(|k| KnownDifference { why: k.why.clone(), turn: words(&k.turn) }),
        command: job.command.clone(),
    }
}

fn words(turn: &[Setting]) -> String {
    turn.iter().map(|s| format!("{} = {}", s.name.value, s.value.value)).collect::<Vec<_>>().join(", ")
}

/// Returns the points at which a statement is checked; `None` if one of its curves is not run.
fn comparisons(job: &FigureJob<'_>, cells: &Cells, statement: &Statement) -> Option<Vec<Comparison>> {
    let mut all = Vec::new();
    for (above, below) in pairs(statement) {
        // a live curve has values at some x only
        let cell = |point: Point| cells.get(point.0)?.get(point.1).filter(|c| !c.values.is_empty());
        let (mean, over) = (cell(above)?, below.map(cell).map_or(Some(None), |b| b.map(Some))?);
        let (of_runs, length) = over.map_or((0, 0.0), |o| (o.runs, o.length));
        let runs = mean.runs.max(of_runs);
        let zeros = matches!(statement.claim, Claim::Trend { .. });
        let values = over.map_or_else(|| mean.values.clone(), |o| ratios(mean, o, zeros));
        all.push(Comparison {
            estimate: estimate(&values, runs),
            runs,
            length: mean.length.max(length),
            at: place(job, above, below),
        });
    }
    Some(all)
}

/// A curve and the index of a value of x.
type Point = (usize, usize);

/// Returns the points whose means are compared with what is accepted; with a second one it is their ratio.
fn pairs(statement: &Statement) -> Vec<(Point, Option<Point>)> {
    let xs = statement.at.iter().copied();
    match &statement.claim {
        Claim::Value { curve, over, .. } => {
            let below = |x| over.map(|o| (o.curve, o.at.unwrap_or(x)));
            xs.map(|x| ((*curve, x), below(x))).collect()
        }
        Claim::Order { curves, .. } => {
            let at = |x| curves.windows(2).map(move |two| ((two[0], x), Some((two[1], x))));
            xs.flat_map(at).collect()
        }
        // the smaller one over the larger one
        Claim::Trend { curve, rises, .. } => {
            let step = |two: &[usize]| if *rises { (two[0], two[1]) } else { (two[1], two[0]) };
            let steps = statement.at.windows(2).map(step);
            steps.map(|(small, large)| ((*curve, small), Some((*curve, large)))).collect()
        }
    }
}

/// Ratios of two cells, seed by seed. One by zero is no value, or each order below it would hold; of two
/// zeros it is 1 if `zeros`.
fn ratios(above: &Cell, below: &Cell, zeros: bool) -> Vec<Option<f64>> {
    let one = |a: f64, b: f64| if zeros && a == 0.0 && b == 0.0 { Some(1.0) } else { ratio(a, b) };
    above.values.iter().zip(&below.values).map(|(a, b)| one((*a)?, (*b)?)).collect()
}

/// Says which points are compared: `SACK over Reno, loss = 0.01`.
fn place(job: &FigureJob<'_>, above: Point, below: Option<Point>) -> String {
    let name = |n: usize| job.file.curves[n].name.value.as_str();
    let across = job.file.across.as_ref();
    let x = |x: usize| across.map(|a| format!("{} = {}", a.name(), a.values[x].value));
    let other = below.filter(|b| b.0 != above.0).map(|b| format!("{} over {}", name(above.0), name(b.0)));
    let over = below.filter(|b| b.1 != above.1).and_then(|b| Some(format!("over {}", x(b.1)?)));
    let at = [x(above.1), over].into_iter().flatten().collect::<Vec<_>>().join(" ");
    [other, Some(at).filter(|at| !at.is_empty())].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns accepted means, the source's value in words, and the unit of the report with its size in the
/// metric's. `quick` is the least tolerance.
fn expected(job: &FigureJob<'_>, plan: &Plan, claim: &Claim, quick: f64) -> (Bounds, String, f64, String) {
    let (over, accept) = match claim {
        Claim::Order { curves, tolerance } => {
            let names: Vec<&str> = curves.iter().map(|c| job.file.curves[*c].name.value.as_str()).collect();
            let bounds = Bounds { low: 1.0 - tolerance.max(quick), high: f64::INFINITY, open: true };
            return (bounds, names.join(" > "), 1.0, String::new());
        }
        Claim::Trend { rises, tolerance, .. } => {
            let bounds = Bounds { low: f64::NEG_INFINITY, high: 1.0 + tolerance.max(quick), open: true };
            return (bounds, if *rises { "rises" } else { "falls" }.to_owned(), 1.0, String::new());
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
                Bounds { low: middle - room, high: middle + room, open: false },
                expect.value.text.clone(),
                Some(expect),
            )
        }
        Accept::Range { low, high, expect } => {
            let (least, most) = (low.as_ref().map(|v| &v.value), high.as_ref().map(|v| &v.value));
            let room = |v: &PrintedValue, sign: f64| value(v) + sign * value(v).abs() * quick;
            let bounds = Bounds {
                low: least.map_or(f64::NEG_INFINITY, |v| room(v, -1.0)),
                high: most.map_or(f64::INFINITY, |v| room(v, 1.0)),
                open: false,
            };
            let words = match (expect, least, most) {
                (Some(e), ..) => e.value.text.clone(),
                (None, Some(low), Some(high)) => format!("{} to {}", low.text, high.text),
                (None, Some(low), None) => format!("at least {}", low.text),
                (None, None, high) => high.map_or_else(String::new, |high| format!("at most {}", high.text)),
            };
            (bounds, words, expect.as_ref().or(low.as_ref()).or(high.as_ref()))
        }
    };
    let (name, one) = printed.map_or(("", 1.0), |p| written_unit(&p.value.text, unit));
    (bounds, words, one, name.to_owned())
}

fn in_words(bounds: &Bounds, scale: f64, unit: &str) -> String {
    let rounded = |v: f64| crate::rounding::rounded(v / scale);
    let words = match (bounds.low.is_finite(), bounds.high.is_finite()) {
        (true, true) => format!("{} to {} {unit}", rounded(bounds.low), rounded(bounds.high)),
        (false, _) if bounds.open => format!("below {} {unit}", rounded(bounds.high)),
        (false, _) => format!("at most {} {unit}", rounded(bounds.high)),
        (true, false) if bounds.open => format!("above {} {unit}", rounded(bounds.low)),
        (true, false) => format!("at least {} {unit}", rounded(bounds.low)),
    };
    words.trim_end().to_owned()
}
