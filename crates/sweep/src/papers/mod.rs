//! Papers: all their figures from one store of runs, a verdict on each item of the papers, and one page.
//!
//! All figures are planned before the first run, so that an error in one of them is found first. Runs that
//! several figures need are made once. Files are made from stored runs alone, as those of a single figure.

mod items;
mod page;
mod tables;
#[cfg(test)]
mod tests;

pub use items::{Item, Paper, read};

use crate::Summary;
use crate::error::{Error, file_error};
use crate::figure::live::{self, LiveResults};
use crate::figure::{
    self, FigureJob, LIVE_TABLE, LivePlan, LiveRunner, LiveTable, Made, PAGE, Plan, Verdict, Wanted,
};
use crate::progress::Tell;
use crate::store::{Store, write_file};
use bentpipe_scenario::figure_file::FigureFile;
use items::Judged;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::fs;
use std::path::Path;

/// A figure of a paper.
pub struct Figure<'a> {
    /// Paper and name of its file: `003/figure-5`.
    pub name: String,
    /// The figure.
    pub job: FigureJob<'a>,
}

impl Figure<'_> {
    /// Name of its files.
    fn file_name(&self) -> String {
        self.name.replace('/', "-")
    }
}

/// Papers as requested.
pub struct PapersJob<'a> {
    /// Papers with their items.
    pub papers: &'a [Paper],
    /// Figures in the order of the page.
    pub figures: &'a [Figure<'a>],
    /// True for a paper of which items without a statement are listed too.
    pub whole: &'a dyn Fn(&Paper) -> bool,
    /// The shorter versions were requested. Figures without one are whole nevertheless.
    pub quick: bool,
    /// Number of threads; 0: one per core.
    pub threads: usize,
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PapersResult {
    /// Number of runs made and kept.
    pub runs: Summary,
    /// Number of live runs made and kept; `None` without `--live`.
    pub live: Option<Summary>,
    /// The verdicts for a terminal, ending in a newline.
    pub text: String,
    /// A statement differs, and its file does not say so; or a live value differs from the simulated one.
    pub differs: bool,
}

/// Makes the missing runs of all figures, the costliest first, then `index.html`, `verdicts.csv`,
/// `statements.csv` and the files in `figures/`. `tell` is called after every run.
///
/// # Errors
/// The first error in the input, or a file that cannot be read or written.
pub fn papers(job: &PapersJob<'_>, out: &Path, tell: Tell<'_>) -> Result<PapersResult, Error> {
    make(job, None, out, tell)
}

/// As [`papers`], and makes the live runs of the figures after the simulated ones, which adds `live.csv`.
///
/// # Errors
/// As [`papers`]; no figure has a live run, or one is refused or fails.
pub fn papers_live(
    job: &PapersJob<'_>,
    runner: &dyn LiveRunner,
    out: &Path,
    tell: Tell<'_>,
) -> Result<PapersResult, Error> {
    if job.figures.iter().all(|f| f.job.file.live.is_none()) {
        let message = "these figures have nothing that is run live\nhelp: leave out --live, or name others";
        return Err(Error::Input(message.to_owned()));
    }
    make(job, Some(runner), out, tell)
}

fn make(
    job: &PapersJob<'_>,
    runner: Option<&dyn LiveRunner>,
    out: &Path,
    tell: Tell<'_>,
) -> Result<PapersResult, Error> {
    let pool = crate::threads(job.threads)?;
    let files: Vec<Option<FigureFile>> =
        job.figures.iter().map(|f| runner.and_then(|_| live::file_of(f.job.file))).collect();
    let both = job.figures.iter().zip(&files);
    let plans =
        pool.install(|| both.map(|(f, file)| plan(f, file.as_ref())).collect::<Result<Vec<_>, _>>())?;
    let (plans, live_plans): (Vec<Plan>, Vec<Option<LivePlan<'_>>>) = plans.into_iter().unzip();
    let live: Vec<&LivePlan<'_>> = live_plans.iter().flatten().collect();
    live::check(&live, runner)?;
    let store = Store::open(out)?;
    let runs = figure::make_missing(in_order(job, &plans, &live), (&pool, &store), tell)?;
    let made_live = runner.map(|runner| live::make_live(&live, &store, runner, (runs, tell))).transpose()?;
    let results = made_live.as_ref().map(|(results, _)| results);
    let make =
        |n: usize| make_figure((&job.figures[n], &plans[n], live_plans[n].as_ref()), (&store, out), results);
    let folder = out.join("figures");
    fs::create_dir_all(&folder).map_err(file_error(&folder))?;
    let made: Vec<Result<Made, Error>> =
        pool.install(|| (0..job.figures.len()).into_par_iter().map(make).collect());
    let made: Vec<Made> = made.into_iter().collect::<Result<_, _>>()?;
    let written = write(job, (&plans, &made), runner.is_some(), out)?;
    Ok(PapersResult { runs, live: made_live.map(|(_, summary)| summary), ..written })
}

/// Plans the runs of a figure, and the live runs of `file`.
fn plan<'a>(
    figure: &'a Figure<'_>,
    file: Option<&'a FigureFile>,
) -> Result<(Plan, Option<LivePlan<'a>>), Error> {
    Ok((Plan::new(&figure.job)?, LivePlan::new(&figure.job, file)?))
}

/// Judges and draws a figure, and writes its files.
fn make_figure(
    (figure, plan, live): (&Figure<'_>, &Plan, Option<&LivePlan<'_>>),
    (store, out): (&Store, &Path),
    results: Option<&LiveResults>,
) -> Result<Made, Error> {
    let part = live.zip(results).map(|(live, results)| live::points(live, store, results)).transpose()?;
    let made = Made::new(&figure.job, plan, figure::read(plan, store)?, part);
    let name = out.join("figures").join(figure.file_name());
    made.write_pictures(&name)?;
    let points = figure::points(&figure.job, plan, &made.cells);
    write_file(&name.with_extension("csv"), points.as_bytes())?;
    Ok(made)
}

/// Writes the tables and the page of all figures. Returns the result without its runs.
fn write(
    job: &PapersJob<'_>,
    (plans, made): (&[Plan], &[Made]),
    is_live: bool,
    out: &Path,
) -> Result<PapersResult, Error> {
    let statements = statements(job, made);
    let items = items::judge(job.papers, &statements, job.whole);
    let each = job.figures.iter().zip(plans).zip(made);
    let live: Vec<LiveTable<'_>> = each
        .filter_map(|((f, plan), made)| Some((f.name.as_str(), &f.job, plan, made.live.as_ref()?)))
        .collect();
    for (name, text) in [
        ("verdicts.csv", Some(tables::verdicts(&items))),
        ("statements.csv", Some(tables::statements(&statements))),
        (LIVE_TABLE, is_live.then(|| live::csv(&live))),
        (PAGE, Some(page::page(job, plans, made, &statements, &items))),
    ] {
        if let Some(text) = text {
            write_file(&out.join(name), text.as_bytes())?;
        }
    }
    let unknown = |s: &Judged<'_>| s.result.verdict == Verdict::Differs && s.result.known.is_none();
    let differs = statements.iter().any(unknown) || live.iter().any(|of| of.3.differs());
    let verdicts = tables::text(job.papers, &statements, &items);
    let text =
        [verdicts, live::text(&live)].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n");
    Ok(PapersResult { runs: Summary::default(), live: None, text, differs })
}

/// Returns each run once, the costliest first, so that no long one is left for the end.
fn in_order<'a>(job: &'a PapersJob<'_>, plans: &'a [Plan], live: &[&'a LivePlan<'a>]) -> Vec<Wanted<'a>> {
    let (mut all, mut cells) = (Vec::new(), 0);
    let figures = job.figures.iter().zip(plans).map(|(figure, plan)| (&figure.job, plan));
    for (job, plan) in figures.chain(live.iter().map(|live| (&live.job, &live.plan))) {
        all.extend(Wanted::of(job, plan, cells));
        cells += plan.cells();
    }
    let mut all = figure::once(all.into_iter());
    let class = |wanted: &Wanted<'_>| Reverse(wanted.job.file.cost);
    all.sort_by(|a, b| class(a).cmp(&class(b)).then_with(|| b.run.cost.total_cmp(&a.run.cost)));
    all
}

fn statements<'a>(job: &'a PapersJob<'_>, made: &'a [Made]) -> Vec<Judged<'a>> {
    let of = |(figure, made): (&'a Figure<'_>, &'a Made)| {
        let each = made.verdicts.iter().zip(&figure.job.file.statements);
        each.map(move |(result, of)| Judged { figure, result, notes: of.notes.as_deref() })
    };
    job.figures.iter().zip(made).flat_map(of).collect()
}
