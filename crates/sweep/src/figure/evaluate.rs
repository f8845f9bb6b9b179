//! Every value of a figure with the verdict on it, for a table that shows more than the statements.

use super::judge::{Checked, Verdict, checked};
use super::plan::{Origin, Plan};
use super::{Cell, Cells, FigureJob, Made};
use crate::error::Error;
use crate::rounding::{mean_and_half_width, rounded};
use crate::store::Store;
use crate::table::CellStatistics;
use bentpipe_scenario::figure_file::{Claim, FigureFile, Statement};
use bentpipe_sim::reference::in_unit;
use rayon::prelude::*;
use std::path::Path;

/// A mean of the runs, in the unit of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct PointResult {
    /// The statement about it, as an index.
    pub statement: Option<usize>,
    /// What it is: `SACK, loss = 0.01`.
    pub name: String,
    /// It is the ratio of two of them, and has no unit.
    pub is_ratio: bool,
    /// Number of runs.
    pub runs: usize,
    /// The mean; `None` if a run has no value.
    pub mean: Option<f64>,
    /// Half-width of its 95 % interval; `None` for one run.
    pub half_width: Option<f64>,
    /// What is expected, if one value is.
    pub expected: Option<f64>,
    /// Lowest and highest accepted mean.
    pub bounds: Option<(f64, f64)>,
    /// What sources print, in the order of [`Evaluation::sources`].
    pub printed: Vec<Option<f64>>,
    /// The verdict.
    pub verdict: Option<Verdict>,
}

impl PointResult {
    /// Returns the mean with its interval, rounded to what is known; that of one run has six digits.
    pub fn ours(&self) -> Option<String> {
        let (mean, n) = (self.mean?, self.runs);
        let statistics = |half| CellStatistics { mean: Some(mean), half_width: Some(half), n };
        let with_interval = |half| mean_and_half_width(&statistics(half), 1.0);
        Some(self.half_width.map_or_else(|| rounded(mean), with_interval))
    }
}

/// A figure with all its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Unit of the values.
    pub unit: String,
    /// Names of sources.
    pub sources: Vec<String>,
    /// Values that statements are about, in the order of the file, then all others.
    pub points: Vec<PointResult>,
    /// The picture.
    pub svg: String,
}

/// Makes the missing runs of figures, kept in `out`, on this number of threads (0: one per core), and returns
/// all their values. A run that several figures need is made once.
///
/// # Errors
/// The first error in the input, or a file that cannot be read or written.
pub fn evaluate(jobs: &[FigureJob<'_>], threads: usize, out: &Path) -> Result<Vec<Evaluation>, Error> {
    let pool = crate::threads(threads)?;
    let plans: Vec<Plan> = pool.install(|| jobs.iter().map(Plan::new).collect::<Result<_, _>>())?;
    let store = Store::open(out)?;
    super::make_missing(super::in_order(jobs.iter().zip(&plans)), (&pool, &store), &|_| ())?;
    let of = |(job, plan): (&FigureJob<'_>, &Plan)| {
        Ok(evaluation(job, plan, &Made::new(job, plan, super::read(plan, &store)?, None)))
    };
    let all: Vec<_> = pool.install(|| jobs.par_iter().zip(&plans).map(of).collect());
    all.into_iter().collect()
}

fn evaluation(job: &FigureJob<'_>, plan: &Plan, made: &Made) -> Evaluation {
    let mut sources: Vec<String> = Vec::new();
    for of in &job.file.references {
        if !sources.contains(&of.name) {
            sources.push(of.name.clone());
        }
    }
    let table =
        Table { job, plan, cells: &made.cells, sources: &sources, scale: super::draw::vertical(plan).1 };
    let mut points: Vec<PointResult> = Vec::new();
    for (n, statement) in job.file.statements.iter().enumerate() {
        points.extend(table.of_statement(n, statement));
    }
    // the course of runs is in the picture
    if plan.recording.is_none() {
        points.extend(table.others());
    }
    let unit = crate::pictures::scaled(plan.unit.symbol().to_owned(), plan.unit).0;
    let svg = made.plot.to_svg(bentpipe_plot::Mode::Standalone);
    Evaluation { unit, sources, points, svg }
}

struct Table<'a> {
    job: &'a FigureJob<'a>,
    plan: &'a Plan,
    cells: &'a Cells,
    sources: &'a [String],
    /// Units of the table in one of the metric.
    scale: f64,
}

impl Table<'_> {
    fn of_statement(&self, index: usize, statement: &Statement) -> Vec<PointResult> {
        let all = checked(self.job, self.plan, self.cells, statement);
        let row = |c: Checked| {
            let ratio = c.below.is_some();
            let scale = if ratio { 1.0 } else { self.scale };
            let curve = &self.job.file.curves[c.above.0].name.value;
            let name = match &statement.claim {
                Claim::Value { over, .. } if over.is_none_or(|o| o.curve == c.above.0) => {
                    joined(curve, &c.at)
                }
                Claim::Trend { .. } => joined(curve, &c.at),
                _ => c.at.clone(),
            };
            PointResult {
                statement: Some(index),
                name,
                is_ratio: ratio,
                runs: c.runs,
                mean: c.estimate.mean.map(|m| m * scale),
                half_width: c.estimate.half_width.map(|h| h * scale),
                expected: c.expected.map(|v| v * scale),
                bounds: Some((c.low * scale, c.high * scale)),
                printed: self.printed(c.above, ratio),
                verdict: Some(c.verdict),
            }
        };
        all.into_iter().map(row).collect()
    }

    /// Means that no statement is about.
    fn others(&self) -> Vec<PointResult> {
        let mut rows = Vec::new();
        for (curve, cells) in self.cells.iter().enumerate() {
            let runs = matches!(self.plan.curves[curve], Origin::Runs(..));
            for (x, cell) in
                cells.iter().enumerate().filter(|(x, _)| runs && !is_judged(self.job.file, (curve, *x)))
            {
                rows.push(self.other((curve, x), cell));
            }
        }
        rows
    }

    fn other(&self, point: (usize, usize), cell: &Cell) -> PointResult {
        let estimate = cell.estimate();
        let x = self.job.file.across.as_ref().map(|a| format!("{} = {}", a.name(), a.values[point.1].value));
        PointResult {
            statement: None,
            name: joined(&self.job.file.curves[point.0].name.value, &x.unwrap_or_default()),
            is_ratio: false,
            runs: cell.runs,
            mean: estimate.mean.map(|m| m * self.scale),
            half_width: estimate.half_width.map(|h| h * self.scale),
            expected: None,
            bounds: None,
            printed: self.printed(point, false),
            verdict: None,
        }
    }

    /// What sources print about a point; nothing about a ratio of means.
    fn printed(&self, (curve, x): (usize, usize), ratio: bool) -> Vec<Option<f64>> {
        let file = self.job.file;
        let place = file.across.as_ref().map_or(curve as f64 + 1.0, |a| a.positions[x]);
        let of = |name: &String| {
            let fits = file.references.iter().filter(|r| r.name == *name);
            let fits = fits.filter(|r| !ratio && (file.across.is_none() || r.curve == Some(curve)));
            let point = fits.flat_map(|r| &r.points).find(|p| p.place.total_cmp(&place).is_eq())?;
            Some(in_unit(self.plan.unit, point.value.value.amount)? * self.scale)
        };
        self.sources.iter().map(of).collect()
    }
}

fn is_judged(file: &FigureFile, point: (usize, usize)) -> bool {
    file.statements
        .iter()
        .any(|s| matches!(s.claim, Claim::Value { over: None, .. }) && s.points().contains(&point))
}

fn joined(curve: &str, at: &str) -> String {
    if at.is_empty() { curve.to_owned() } else { format!("{curve}, {at}") }
}
