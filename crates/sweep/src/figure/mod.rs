//! Figures: a figure file ([`bentpipe_scenario::figure_file`]) run, drawn and judged.
//!
//! Each curve at each value of x is a cell, run with the same seeds. If x is the time, all cells of a curve
//! are from the same runs, which are recorded. Runs are kept in the store of sweeps.
//! All files of a figure are made from the stored runs alone, so they do not depend on threads or
//! interruptions.

mod arguments;
mod course;
mod draw;
mod evaluate;
mod formula;
mod judge;
pub(crate) mod live;
mod measure;
mod plan;
mod settings;
mod tables;
mod units;

pub use crate::rounding::rounded;
pub use evaluate::{Evaluation, PointResult, evaluate};
pub use judge::{KnownDifference, StatementResult, Verdict};
pub use live::{LIVE_TABLE, LiveError, LiveRun, LiveRunner, LiveVerdict};
pub(crate) use live::{LivePart, LivePlan, Named as LiveTable};
pub use tables::verdict_text;

use crate::Summary;
use crate::error::Error;
use crate::progress::{Tell, Tracker};
use crate::store::{Course, Store, missing_run_error, write_file};
use crate::table::Estimate;
use bentpipe_plot::{Formats, Plot};
use bentpipe_scenario::figure_file::{FigureFile, Statement};
use bentpipe_scenario::{Files, Source};
use measure::Measure;
use plan::{Origin, RunSet};
pub(crate) use plan::{Plan, Run};
use rayon::{ThreadPool, prelude::*};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;
pub(crate) use tables::{COLUMNS, Heading, STATEMENT_STYLE, contents, fields, html_table, ours, points};

/// Name of the page in the folder of a figure.
pub const PAGE: &str = "index.html";

/// A figure as requested.
pub struct FigureJob<'a> {
    /// The figure.
    pub file: &'a FigureFile,
    /// Its scenario.
    pub scenario: &'a Source,
    /// Reads trace files of the scenario.
    pub files: &'a (dyn Files + Sync),
    /// Make the shorter version.
    pub quick: bool,
    /// Number of threads; 0: one per core.
    pub threads: usize,
    /// The command that makes this figure, for the table of verdicts.
    pub command: String,
}

/// What was made.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureResult {
    /// Number of runs made and kept.
    pub runs: Summary,
    /// Statements in the order of the file.
    pub verdicts: Vec<StatementResult>,
    /// Number of live runs made and kept; `None` without `--live`.
    pub live: Option<Summary>,
    /// A live value differs from the simulated one.
    live_differs: bool,
    /// The table of points, for a terminal.
    points: String,
    /// The table of live values, for a terminal.
    live_points: String,
}

impl FigureResult {
    /// Formats points and verdicts for a terminal, ending in a newline.
    pub fn to_text(&self) -> String {
        let parts = [self.points.clone(), self.live_points.clone(), verdict_text(&self.verdicts)];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Returns true if a live value differs, or a statement differs from what the runs show and its file does
    /// not say so.
    pub fn differs(&self) -> bool {
        self.live_differs || self.verdicts.iter().any(|v| v.verdict == Verdict::Differs && v.known.is_none())
    }
}

/// Values of one curve at one value of x.
#[derive(Clone)]
pub(crate) struct Cell {
    /// In the order of seeds; `None` for a run without a value. A formula has the same one for each seed.
    pub(crate) values: Vec<Option<f64>>,
    /// Number of runs; 0 for a formula.
    pub(crate) runs: usize,
    /// Longest simulated time of its runs, s.
    pub(crate) length: f64,
}

impl Cell {
    pub(crate) fn estimate(&self) -> Estimate {
        estimate(&self.values, self.runs)
    }
}

/// Returns the statistics of values of this number of runs. Without runs they are exact, so there is no
/// interval.
pub(crate) fn estimate(values: &[Option<f64>], runs: usize) -> Estimate {
    let estimate = Estimate::new(values);
    if runs > 0 { estimate } else { Estimate { half_width: None, n: 0, of: 0, ..estimate } }
}

/// Values of all runs: curves, then values of x. A curve that is not run has no cells.
pub(crate) type Cells = Vec<Vec<Cell>>;

/// Checks that the figure fits its scenario: parameters, metrics, units. Runs nothing.
///
/// # Errors
/// The first error, with its place.
pub fn check(job: &FigureJob<'_>) -> Result<(), Error> {
    Plan::new(job).map(|_| ())
}

/// Makes the missing runs of a figure, then its files in `out`. `tell` is called after every run.
///
/// # Errors
/// The first error in the input, or a file that cannot be read or written.
pub fn figure(job: &FigureJob<'_>, out: &Path, tell: Tell<'_>) -> Result<FigureResult, Error> {
    make(job, None, out, tell)
}

/// As [`figure`], and makes the live runs of its file after the simulated ones, which adds `live.csv`.
///
/// # Errors
/// As [`figure`]; a file without `[live]`, or a live run that is refused or fails.
pub fn figure_live(
    job: &FigureJob<'_>,
    runner: &dyn LiveRunner,
    out: &Path,
    tell: Tell<'_>,
) -> Result<FigureResult, Error> {
    if job.file.live.is_none() {
        let message = "the figure has nothing that is run live\n\
                       help: give its file a table [live], or leave out --live";
        return Err(Error::Input(message.to_owned()));
    }
    make(job, Some(runner), out, tell)
}

fn make(
    job: &FigureJob<'_>,
    runner: Option<&dyn LiveRunner>,
    out: &Path,
    tell: Tell<'_>,
) -> Result<FigureResult, Error> {
    let pool = crate::threads(job.threads)?;
    // find all errors in the input before anything is written
    let plan = pool.install(|| Plan::new(job))?;
    let file = runner.and_then(|_| live::file_of(job.file));
    let live = pool.install(|| LivePlan::new(job, file.as_ref()))?;
    let live: Vec<&LivePlan<'_>> = live.iter().collect();
    live::check(&live, runner)?;
    let store = Store::open(out)?;
    let beside = live.iter().map(|live| (&live.job, &live.plan));
    let wanted = in_order([(job, &plan)].into_iter().chain(beside));
    let runs = make_missing(wanted, (&pool, &store), tell)?;
    let made_live = runner.map(|runner| live::make_live(&live, &store, runner, (runs, tell))).transpose()?;
    let part =
        live.first().zip(made_live.as_ref()).map(|(plan, (results, _))| live::points(plan, &store, results));
    let made = Made::new(job, &plan, pool.install(|| read(&plan, &store))?, part.transpose()?);
    made.write_pictures(&out.join("figure"))?;
    let tables: Vec<LiveTable<'_>> =
        made.live.iter().map(|part| (job.file.title.as_str(), job, &plan, part)).collect();
    let files = [
        ("points.csv", Some(points(job, &plan, &made.cells))),
        ("verdicts.csv", Some(tables::verdicts(&made.verdicts))),
        (LIVE_TABLE, runner.map(|_| live::csv(&tables))),
        (PAGE, Some(tables::page(job, &plan, &made))),
    ];
    for (name, text) in files.iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
        write_file(&out.join(name), text.as_bytes())?;
    }
    Ok(FigureResult {
        runs,
        live: made_live.map(|(_, summary)| summary),
        live_differs: made.live.as_ref().is_some_and(LivePart::differs),
        points: tables::point_text(job, &plan, &made.cells),
        live_points: live::text(&tables),
        verdicts: made.verdicts,
    })
}

/// A figure that was run, judged and drawn.
pub(crate) struct Made {
    pub(crate) cells: Cells,
    /// Statements in the order of the file.
    pub(crate) verdicts: Vec<StatementResult>,
    pub(crate) plot: Plot,
    /// Live values.
    pub(crate) live: Option<LivePart>,
}

impl Made {
    pub(crate) fn new(job: &FigureJob<'_>, plan: &Plan, cells: Cells, live: Option<LivePart>) -> Self {
        let mut plot = draw::plot(job, plan, &cells);
        let verdicts = match &live {
            None => judge::all(job, plan, &cells),
            Some(part) => {
                live::draw(&mut plot, (job, plan), part);
                judge::all(job, plan, &live::judged_cells(job, &cells, part))
            }
        };
        Self { cells, verdicts, plot, live }
    }

    /// Writes the picture as `NAME.svg` and `NAME.png`.
    pub(crate) fn write_pictures(&self, name: &Path) -> Result<(), Error> {
        let stem = name.file_name().unwrap_or_default().to_string_lossy();
        let files = Formats::ALL.files(&stem, |mode| self.plot.to_svg(mode));
        let files = files.map_err(|e| Error::Input(format!("{}: {e}", name.display())))?;
        files.iter().try_for_each(|(file, bytes)| write_file(&name.with_file_name(file), bytes))
    }
}

/// Makes the missing runs of a statement that is known to differ, with the parameters that turn it, and
/// judges it. They are kept beside those of the figure. `statement` is its index; `None` without `differs`.
///
/// # Errors
/// The first error in the input, or a file that cannot be read or written.
pub fn turned(
    job: &FigureJob<'_>,
    statement: usize,
    out: &Path,
    tell: Tell<'_>,
) -> Result<Option<(Summary, StatementResult)>, Error> {
    let Some(of) = job.file.statements.get(statement).filter(|s| s.known.is_some()) else { return Ok(None) };
    let pool = crate::threads(job.threads)?;
    let plan = pool.install(|| Plan::of(job, Some(statement)))?;
    let (runs, cells) = run(job, &plan, (&pool, out), tell)?;
    // what is known is about the figure without `turn`
    let of = Statement { known: None, ..of.clone() };
    Ok(Some((runs, judge::judge(job, &plan, &cells, &of))))
}

/// Makes the missing runs of a plan, and reads all of them.
fn run(
    job: &FigureJob<'_>,
    plan: &Plan,
    (pool, out): (&ThreadPool, &Path),
    tell: Tell<'_>,
) -> Result<(Summary, Cells), Error> {
    let store = Store::open(out)?;
    let made = make_missing(Wanted::of(job, plan, 0).collect(), (pool, &store), tell)?;
    Ok((made, pool.install(|| read(plan, &store))?))
}

/// A run of a figure.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) job: &'a FigureJob<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) run: &'a Run,
    /// Number of its cell among those of all figures that are made.
    pub(crate) cell: usize,
}

impl<'a> Wanted<'a> {
    /// Returns the runs of a figure. `before` is the number of cells of others.
    pub(crate) fn of(job: &'a FigureJob<'a>, plan: &'a Plan, before: usize) -> impl Iterator<Item = Self> {
        let wanted = move |run| Self { job, plan, run, cell: before + plan.cell(run) };
        plan.distinct().into_iter().map(wanted)
    }

    fn make(&self, store: &Store) -> Result<(), Error> {
        let scenario = self.run.load(self.job)?;
        crate::check_key(&self.plan.key(&scenario), &self.run.key)?;
        let (report, course) = match &self.plan.recording {
            Some(recording) => recording.run(&scenario),
            None => (bentpipe_sim::run(&scenario), Course::new()),
        };
        store.write(&self.run.key, report, &course)
    }
}

/// Returns each run of several figures once, the costliest first, so that no long one is left for the end.
pub(crate) fn in_order<'a>(figures: impl Iterator<Item = (&'a FigureJob<'a>, &'a Plan)>) -> Vec<Wanted<'a>> {
    let (mut seen, mut all, mut cells) = (BTreeSet::new(), Vec::new(), 0);
    for (job, plan) in figures {
        all.extend(Wanted::of(job, plan, cells).filter(|w| seen.insert(w.run.key.as_str())));
        cells += plan.cells();
    }
    let class = |wanted: &Wanted<'_>| Reverse(wanted.job.file.cost);
    all.sort_by(|a, b| class(a).cmp(&class(b)).then_with(|| b.run.cost.total_cmp(&a.run.cost)));
    all
}

/// Makes those runs that are not in the store: the first one of each cell, then the others, in this order.
pub(crate) fn make_missing(
    mut missing: Vec<Wanted<'_>>,
    (pool, store): (&ThreadPool, &Store),
    tell: Tell<'_>,
) -> Result<Summary, Error> {
    let all = missing.len();
    missing = pool
        .install(|| missing.into_par_iter().filter(|wanted| store.read(&wanted.run.key).is_none()).collect());
    let already_stored = all - missing.len();
    // their times tell how long the others will take
    missing.sort_by_key(|wanted| !wanted.run.first);
    let tracker = Tracker::new(pool.current_num_threads(), false, tell);
    tracker.announce(already_stored, missing.iter().map(|wanted| wanted.cell));
    crate::make_all(pool, &missing, |wanted| wanted.cell, |wanted| wanted.make(store), &tracker)?;
    Ok(Summary { executed: missing.len(), already_stored })
}

/// Reads the values of all runs.
pub(crate) fn read(plan: &Plan, store: &Store) -> Result<Cells, Error> {
    let steps = plan.recording.as_ref().map_or(1, |r| r.steps.number);
    let of_curve = |origin: &Origin| match origin {
        Origin::Nothing(_) => Ok(Vec::new()),
        Origin::Formula(_, values) => {
            let values = values.iter().map(|value| vec![*value; plan.seeds as usize]);
            Ok(values.map(|values| Cell { values, runs: 0, length: 0.0 }).collect())
        }
        Origin::Runs(measure, sets) => {
            let cells = sets.par_iter().map(|set| read_set(measure, set, steps, store));
            cells.collect::<Result<Vec<Vec<Cell>>, _>>().map(|cells| cells.into_iter().flatten().collect())
        }
    };
    plan.curves.iter().map(of_curve).collect()
}

/// Reads the runs of a set: a cell for each step of time, or one.
fn read_set(measure: &Measure, set: &RunSet, steps: usize, store: &Store) -> Result<Vec<Cell>, Error> {
    let mut length: f64 = 0.0;
    let mut of_runs = Vec::new();
    for run in &set.runs {
        let (report, course) = store.read_with_course(&run.key).ok_or_else(|| missing_run_error(&run.key))?;
        length = length.max(report.simulated_s);
        of_runs.push(measure.of(&report, &course)?);
    }
    let cell = |step: usize| {
        let values = of_runs.iter().map(|values| values.get(step).copied().flatten()).collect();
        Cell { values, runs: set.runs.len(), length }
    };
    Ok((0..steps).map(cell).collect())
}

#[cfg(test)]
pub(crate) mod tests;
