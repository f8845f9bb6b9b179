//! Figures: a figure file ([`bentpipe_scenario::figure_file`]) run, drawn and judged.
//!
//! Each curve at each value of x is a cell, run with the same seeds. Runs are kept in the store of sweeps.
//! All files of a figure are made from the stored runs alone, so they do not depend on threads or
//! interruptions.

mod draw;
mod judge;
mod measure;
mod plan;
mod tables;

pub use judge::{StatementResult, Verdict};

use crate::Summary;
use crate::error::Error;
use crate::progress::{Tell, Tracker};
use crate::store::{Store, missing_run_error, write_file};
use bentpipe_scenario::figure_file::FigureFile;
use bentpipe_scenario::{Files, Source};
use plan::{Plan, Run};
use rayon::prelude::*;
use std::path::Path;

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
    /// The table of points, for a terminal.
    points: String,
}

impl FigureResult {
    /// Formats points and verdicts for a terminal, ending in a newline.
    pub fn to_text(&self) -> String {
        let verdicts = tables::verdict_text(&self.verdicts);
        let between = if verdicts.is_empty() { "" } else { "\n" };
        format!("{}{between}{verdicts}", self.points)
    }

    /// Returns true if a statement differs from what the runs show.
    pub fn differs(&self) -> bool {
        self.verdicts.iter().any(|v| v.verdict == Verdict::Differs)
    }
}

/// Values of one curve at one value of x.
pub(crate) struct Cell {
    /// In the order of seeds; `None` for a run without a value.
    pub(crate) values: Vec<Option<f64>>,
    /// Longest simulated time of its runs, s.
    pub(crate) length: f64,
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
    let pool = crate::threads(job.threads)?;
    // find all errors in the input before anything is written
    let plan = pool.install(|| Plan::new(job))?;
    let store = Store::open(out)?;
    let all = plan.distinct();
    let mut missing: Vec<&Run> =
        pool.install(|| all.par_iter().copied().filter(|r| store.read(&r.key).is_none()).collect());
    let kept = all.len() - missing.len();
    // one run of every cell first: their times tell how long the others will take
    missing.sort_by_key(|run| !run.first);
    let make = |run: &&Run| store.write(&run.key, &crate::simulate(&run.load(job)?, &run.key)?);
    let tracker = Tracker::new(pool.current_num_threads(), false, tell);
    tracker.announce(kept, missing.iter().map(|r| plan.cell(r)));
    crate::make_all(&pool, &missing, |run| plan.cell(run), make, &tracker)?;
    let cells = pool.install(|| read(&plan, &store))?;
    let verdicts = judge::all(job, &plan, &cells);
    let plot = draw::plot(job, &plan, &cells);
    let files = [
        ("figure.svg", plot.to_svg(bentpipe_plot::Mode::Standalone)),
        ("points.csv", tables::points(job, &plan, &cells)),
        ("verdicts.csv", tables::verdicts(&verdicts)),
        (PAGE, tables::page(job, &plan, &cells, &plot, &verdicts)),
    ];
    for (name, text) in &files {
        write_file(&out.join(name), text.as_bytes())?;
    }
    let points = tables::point_text(job, &plan, &cells);
    Ok(FigureResult { runs: Summary { executed: missing.len(), already_stored: kept }, verdicts, points })
}

/// Reads the values of all runs.
fn read(plan: &Plan, store: &Store) -> Result<Cells, Error> {
    let of_curve = |(measure, cells): (&measure::Measure, &Vec<plan::Cell>)| {
        let cell = |cell: &plan::Cell| {
            let mut read = Cell { values: Vec::new(), length: 0.0 };
            for run in &cell.runs {
                let report = store.read(&run.key).ok_or_else(|| missing_run_error(&run.key))?;
                read.values.push(measure.of(&report)?);
                read.length = read.length.max(report.simulated_s);
            }
            Ok(read)
        };
        cells.par_iter().map(cell).collect()
    };
    plan.measures.iter().zip(&plan.cells).map(of_curve).collect()
}

#[cfg(test)]
mod tests;
