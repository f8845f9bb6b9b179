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
use crate::figure::{self, FigureJob, Made, PAGE, Plan, Verdict};
use crate::progress::Tell;
use crate::store::{Store, write_file};
use items::Judged;
use rayon::prelude::*;
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
    /// The verdicts for a terminal, ending in a newline.
    pub text: String,
    /// A statement differs, and its file does not say so.
    pub differs: bool,
}

/// Makes the missing runs of all figures, the costliest first, then `index.html`, `verdicts.csv`,
/// `statements.csv` and the files in `figures/`. `tell` is called after every run.
///
/// # Errors
/// The first error in the input, or a file that cannot be read or written.
pub fn papers(job: &PapersJob<'_>, out: &Path, tell: Tell<'_>) -> Result<PapersResult, Error> {
    let pool = crate::threads(job.threads)?;
    let plans: Vec<Plan> =
        pool.install(|| job.figures.iter().map(|f| Plan::new(&f.job)).collect::<Result<_, _>>())?;
    let store = Store::open(out)?;
    let wanted = figure::in_order(job.figures.iter().map(|f| &f.job).zip(&plans));
    let runs = figure::make_missing(wanted, (&pool, &store), tell)?;
    let folder = out.join("figures");
    fs::create_dir_all(&folder).map_err(file_error(&folder))?;
    let make = |(figure, plan): (&Figure<'_>, &Plan)| {
        let made = Made::new(&figure.job, plan, figure::read(plan, &store)?);
        let name = folder.join(figure.file_name());
        made.write_pictures(&name)?;
        let points = figure::points(&figure.job, plan, &made.cells);
        write_file(&name.with_extension("csv"), points.as_bytes())?;
        Ok(made)
    };
    let made: Vec<Result<Made, Error>> =
        pool.install(|| job.figures.par_iter().zip(&plans).map(make).collect());
    let made: Vec<Made> = made.into_iter().collect::<Result<_, _>>()?;
    let statements = statements(job, &made);
    let items = items::judge(job.papers, &statements, job.whole);
    for (name, text) in [
        ("verdicts.csv", tables::verdicts(&items)),
        ("statements.csv", tables::statements(&statements)),
        (PAGE, page::page(job, &plans, &made, &statements, &items)),
    ] {
        write_file(&out.join(name), text.as_bytes())?;
    }
    let differs = statements.iter().any(|s| s.result.verdict == Verdict::Differs && s.result.known.is_none());
    Ok(PapersResult { runs, text: tables::text(job.papers, &statements, &items), differs })
}

fn statements<'a>(job: &'a PapersJob<'_>, made: &'a [Made]) -> Vec<Judged<'a>> {
    let of = |(figure, made): (&'a Figure<'_>, &'a Made)| {
        let each = made.verdicts.iter().zip(&figure.job.file.statements);
        each.map(move |(result, of)| Judged { figure, result, notes: of.notes.as_deref() })
    };
    job.figures.iter().zip(made).flat_map(of).collect()
}
