//! Live values beside simulated ones, and the verdict on each.

use super::plan::LivePlan;
use super::run::LiveResults;
use crate::error::Error;
use crate::figure::measure::Measure;
use crate::figure::plan::{Origin, RunSet};
use crate::figure::{Cell, Cells, FigureJob, read};
use crate::rounding::rounded;
use crate::store::{Store, missing_run_error};
use crate::table::Estimate;
use bentpipe_report::Unit;
use bentpipe_scenario::figure_file::Tolerance;
use bentpipe_sim::reference::in_unit;
use std::collections::BTreeSet;

/// Verdict on a live value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveVerdict {
    /// It is within the tolerance around the simulated mean, or in the interval of it.
    Agrees,
    /// It is in neither.
    Differs,
    /// The machine was too slow, twice, so the value says nothing.
    Untrusted,
}

impl LiveVerdict {
    /// The verdict as a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Untrusted => "untrusted",
        }
    }
}

/// The live values of a curve at a value of x, in the unit of the metric.
pub(crate) struct LivePoint {
    /// Index of the curve in the figure.
    pub(crate) curve: usize,
    /// Index of the value of x in the figure.
    pub(crate) x: usize,
    /// Live runs.
    pub(crate) live: Cell,
    /// Simulated runs with the same parameters.
    pub(crate) simulated: Cell,
    /// Where the mean of so many more simulated runs lies with 95 %; `None` for one simulated run.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) verdict: LiveVerdict,
}

/// The live part of a figure.
pub(crate) struct LivePart {
    /// In the order of curves, then of x.
    pub(crate) points: Vec<LivePoint>,
    /// In words.
    pub(crate) tolerance: String,
    /// Notes of the file, doubts about runs, and where they differ from the scenario.
    pub(crate) notes: Vec<String>,
}

impl LivePart {
    /// True if a value differs.
    pub(crate) fn differs(&self) -> bool {
        self.points.iter().any(|point| point.verdict == LiveVerdict::Differs)
    }
}

/// Reads the simulated runs from the store, and judges the live ones by them.
pub(crate) fn points(plan: &LivePlan<'_>, store: &Store, results: &LiveResults) -> Result<LivePart, Error> {
    let simulated = read(&plan.plan, store)?;
    let steps = plan.plan.recording.as_ref().map(|recording| recording.steps.number);
    let mut points = Vec::new();
    let mut notes: BTreeSet<String> = BTreeSet::new();
    for ((curve, origin), simulated) in plan.of.curves.iter().zip(&plan.plan.curves).zip(simulated) {
        let Origin::Runs(measure, sets) = origin else { continue };
        let live = sets.iter().map(|set| live_cells(plan, (measure, set, steps.unwrap_or(1)), results));
        let live = live.collect::<Result<Vec<_>, _>>()?;
        let live = live.into_iter().flat_map(|(cells, trusted)| cells.into_iter().map(move |c| (c, trusted)));
        // of a course all steps were run, and some are wanted
        for (n, ((live, trusted), simulated)) in live.zip(simulated).enumerate() {
            let x = if steps.is_some() {
                Some(n).filter(|n| plan.of.at.contains(n))
            } else {
                plan.of.at.get(n).copied()
            };
            let Some(x) = x else { continue };
            points.push(judge(plan, (*curve, x), (live, trusted), simulated));
        }
    }
    for run in plan.runs() {
        let Some(result) = results.get(&run.key) else { continue };
        notes.extend(result.doubts().iter().map(|d| format!("the machine was too slow: {d}")));
        let live = result.report.live.as_ref();
        notes.extend(live.iter().flat_map(|l| &l.differs).map(|d| format!("differs from the scenario: {d}")));
        notes.extend(live.iter().flat_map(|l| l.faults.iter().cloned()));
    }
    let notes = plan.of.notes.iter().cloned().chain(notes).collect();
    Ok(LivePart { points, tolerance: in_words(plan), notes })
}

/// Returns the live cells of a set, one for each step of time or one, and whether its runs are to be trusted.
fn live_cells(
    plan: &LivePlan<'_>,
    (measure, set, steps): (&Measure, &RunSet, usize),
    results: &LiveResults,
) -> Result<(Vec<Cell>, bool), Error> {
    let (mut of_runs, mut length, mut trusted) = (Vec::new(), 0.0_f64, true);
    for run in plan.runs_of(set) {
        let result = results.get(&run.key).ok_or_else(|| missing_run_error(&run.key))?;
        of_runs.push(measure.of(&result.report, &result.course)?);
        length = length.max(result.report.simulated_s);
        trusted &= result.doubts().is_empty();
    }
    let cell = |step: usize| {
        let values: Vec<_> = of_runs.iter().map(|v| v.get(step).copied().flatten()).collect();
        Cell { runs: values.len(), values, length }
    };
    Ok(((0..steps).map(cell).collect(), trusted))
}

fn judge(
    plan: &LivePlan<'_>,
    (curve, x): (usize, usize),
    (live, trusted): (Cell, bool),
    simulated: Cell,
) -> LivePoint {
    let Estimate { mean, half_width, n, .. } = simulated.estimate();
    // the half-width of the mean of n runs is t s / sqrt(n); the difference of it to the mean of m more runs
    // has the variance s^2 (1/n + 1/m)
    let widened = half_width.map(|h| h * (1.0 + n as f64 / live.values.len().max(1) as f64).sqrt());
    let interval = mean.zip(widened).map(|(mean, half)| (mean - half, mean + half));
    let both = live.estimate().mean.zip(mean);
    let is_near = both.is_some_and(|(live, mean)| (live - mean).abs() <= room(plan, mean));
    let is_inside = both.zip(interval).is_some_and(|((live, _), (low, high))| low <= live && live <= high);
    let verdict = match (trusted, is_near || is_inside) {
        (false, _) => LiveVerdict::Untrusted,
        (true, true) => LiveVerdict::Agrees,
        (true, false) => LiveVerdict::Differs,
    };
    LivePoint { curve, x, live, simulated, interval, verdict }
}

/// How far a live mean may be from the simulated one.
fn room(plan: &LivePlan<'_>, mean: f64) -> f64 {
    match plan.of.tolerance.value {
        Tolerance::Share(share) => mean.abs() * share,
        // units were checked with the plan
        Tolerance::Amount(amount) => in_unit(plan.plan.unit, amount).unwrap_or(f64::NAN),
    }
}

/// Formats the tolerance: `5 %`, `0.1 Mbit/s`.
fn in_words(plan: &LivePlan<'_>) -> String {
    match plan.of.tolerance.value {
        Tolerance::Share(share) => format!("{} %", rounded(share * 100.0)),
        Tolerance::Amount(_) => value(room(plan, 0.0), plan.plan.unit),
    }
}

/// Formats a value with its unit: `1.2 Mbit/s`.
pub(super) fn value(value: f64, unit: Unit) -> String {
    let (unit, scale) = crate::pictures::scaled(unit.symbol().to_owned(), unit);
    format!("{} {unit}", rounded(value * scale)).trim_end().to_owned()
}

/// Returns the cells by which statements are judged: those of curves that are not run have live values.
pub(crate) fn judged_cells(job: &FigureJob<'_>, cells: &Cells, part: &LivePart) -> Cells {
    let places = job.file.across.as_ref().map_or(1, |a| a.values.len());
    let empty = || Cell { values: Vec::new(), runs: 0, length: 0.0 };
    let mut cells = cells.clone();
    let trusted = part.points.iter().filter(|p| p.verdict != LiveVerdict::Untrusted);
    for point in trusted.filter(|p| !job.file.curves[p.curve].run) {
        let Some(of_curve) = cells.get_mut(point.curve) else { continue };
        of_curve.resize_with(places, empty);
        of_curve[point.x] = point.live.clone();
    }
    cells
}
