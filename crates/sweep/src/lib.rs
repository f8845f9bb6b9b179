//! Runs a scenario many times: every combination of its axes with several seeds each, on all cores.
//!
//! A run is a cell and a seed. Run `k` of every cell has the seed `base + k`, so that cells are compared
//! with the same random numbers. A finished run is one file in `runs/`, named by a hash of everything that
//! can change its result. Tables and plots are made from these files only, in the order of cells and seeds,
//! so they do not depend on threads, interruptions or shards.

pub mod batch;
mod error;
pub mod figure;
pub mod find;
mod key;
mod manifest;
mod page;
pub mod papers;
#[cfg(feature = "parquet")]
mod parquet;
mod pictures;
mod plan;
mod progress;
mod rounding;
mod store;
mod table;
mod text;
mod write;

pub use bentpipe_plot::Formats;
use bentpipe_report::Report;
pub use error::Error;
use manifest::Manifest;
pub use plan::{Job, MAX_RUNS, Shard};
use plan::{Plan, Run};
use progress::Tracker;
pub use progress::{LiveProgress, Progress, Tell};
use rayon::{ThreadPool, prelude::*};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use store::{Course, Store};
use table::Table;
pub use table::{CellTable, MetricColumns};
pub use write::PAGE;

/// Summary of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of new runs.
    pub executed: usize,
    /// Number of runs already in the store.
    pub already_stored: usize,
}

/// What a sweep or a merge has made.
pub struct SweepResult {
    /// Numbers of runs.
    pub runs: Summary,
    table: Option<Table>,
}

impl SweepResult {
    /// Formats the table of cells for a terminal, ending in a newline; empty for a shard.
    pub fn to_text(&self) -> String {
        self.table.as_ref().map_or_else(String::new, text::cells)
    }

    /// Returns the table of cells in columns; `None` for a shard.
    pub fn cells(&self) -> Option<CellTable> {
        self.table.as_ref().map(Table::in_columns)
    }

    /// Returns the name of the page in the folder; `None` for a shard.
    pub fn page(&self) -> Option<&'static str> {
        self.table.as_ref().map(|_| PAGE)
    }
}

/// Executes the runs of `job` missing in `out`, then writes the tables. A shard only executes its runs.
/// `tell` is called after every run. Curves are SVG files whether or not `pictures` has them.
///
/// # Errors
/// The first error in the input, or a file that cannot be read or written.
pub fn sweep(job: &Job<'_>, out: &Path, pictures: Formats, tell: Tell<'_>) -> Result<SweepResult, Error> {
    let mut plan = Plan::new(job)?;
    let pool = threads(job.threads)?;
    // find all errors in the input before anything is written
    pool.install(|| plan.compute_keys(job))?;
    let store = Store::open(out)?;
    let mut summary = Summary { executed: 0, already_stored: 0 };
    let tracker = Tracker::new(pool.current_num_threads(), job.spec.precision.is_some(), tell);
    let mut seen = BTreeSet::new();
    let mut done = 0;
    loop {
        // axis values may be equal in different notation: one run serves both
        let new = plan.runs[done..].iter().filter(|r| job.includes(r.index) && seen.insert(r.key.clone()));
        let mine: Vec<&Run> = new.collect();
        let mut missing: Vec<&Run> =
            pool.install(|| mine.par_iter().copied().filter(|r| store.read(&r.key).is_none()).collect());
        let kept = mine.len() - missing.len();
        summary.already_stored += kept;
        // one run of every cell first: their times tell how long the others will take
        missing.sort_by_key(|run| run.seed != plan.base);
        let make = |run: &&Run| store.write(&run.key, execute_run(job, &plan, run)?, &Course::new());
        tracker.announce(kept, missing.iter().map(|r| r.cell));
        make_all(&pool, &missing, |run| run.cell, make, &tracker)?;
        summary.executed += missing.len();
        done = plan.runs.len();
        if !plan.extend(&store)? {
            break;
        }
        pool.install(|| plan.compute_keys(job))?;
    }
    let manifest = plan.manifest();
    store::write_file(&out.join("sweep.json"), manifest.as_bytes())?;
    let whole = job.shard.is_none();
    let write = || pool.install(|| write::write(&manifest, &store, out, pictures));
    let table = whole.then(write).transpose()?;
    Ok(SweepResult { runs: summary, table })
}

fn execute_run(job: &Job<'_>, plan: &Plan, run: &Run) -> Result<Report, Error> {
    Ok(bentpipe_sim::run(&planned(job, plan, run)?))
}

/// Returns the scenario of a run.
fn planned(job: &Job<'_>, plan: &Plan, run: &Run) -> Result<bentpipe_scenario::Scenario, Error> {
    let load = || job.load(&plan.cells[run.cell], Some(run.seed));
    let (scenario, key) = plan.last.run(run.cell, run.seed, load)?;
    check_key(&key, &run.key)?;
    Ok(scenario)
}

/// Makes runs that `tracker` knows of on all threads, begun in their order.
fn make_all<T: Sync>(
    pool: &ThreadPool,
    missing: &[T],
    cell: impl Fn(&T) -> usize + Sync,
    make: impl Fn(&T) -> Result<(), Error> + Sync,
    tracker: &Tracker<'_>,
) -> Result<(), Error> {
    let one = |one: &T| tracker.run(cell(one), || make(one), |()| true);
    pool.install(|| missing.iter().par_bridge().try_for_each(one))
}

/// Checks that a run has the name in the store that it was planned with.
fn check_key(key: &str, planned: &str) -> Result<(), Error> {
    if key == planned {
        return Ok(());
    }
    Err(Error::Input("a trace file was changed during the sweep".to_owned()))
}

fn threads(number: usize) -> Result<ThreadPool, Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(number).build();
    pool.map_err(|e| Error::Input(format!("cannot start the threads: {e}")))
}

/// Merges the shards of a sweep into `out` and writes the tables, with `pictures` as [`sweep()`] does.
///
/// # Errors
/// Folders that are not shards of the same sweep, missing runs, or a file that cannot be read or written.
pub fn merge(shards: &[PathBuf], out: &Path, pictures: Formats) -> Result<SweepResult, Error> {
    let mut manifest: Option<String> = None;
    for shard in shards {
        let path = shard.join("sweep.json");
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Error::Input(format!(
                "{}: {error}\nhelp: a folder of `bentpipe sweep --shard` has it when all its runs are finished",
                path.display()
            ))
        })?;
        if manifest.as_ref().is_some_and(|m| *m != text) {
            return Err(Error::Input(format!(
                "{} belongs to another sweep than {}: their sweep.json differ\n\
                 help: all shards need the same file, options and version",
                shard.display(),
                shards[0].display()
            )));
        }
        manifest = Some(text);
    }
    let manifest = manifest.unwrap_or_default();
    let keys: BTreeSet<String> = Manifest::read(&manifest)?.runs.into_iter().map(|r| r.key).collect();
    let others: Vec<Store> = shards.iter().map(|s| Store::read_only(s)).collect();
    let missing: Vec<&String> =
        keys.iter().filter(|k| others.iter().all(|s| s.read_text(k).is_none())).collect();
    if let Some(first) = missing.first() {
        return Err(Error::Input(format!(
            "{} of {} runs are in none of the folders, {first} for one\n\
             help: a shard is missing, not finished or damaged: sweep it again, then merge all of them",
            missing.len(),
            keys.len()
        )));
    }
    let store = Store::open(out)?;
    for key in &keys {
        if store.read(key).is_none() {
            let text =
                others.iter().find_map(|s| s.read_text(key)).ok_or_else(|| store::missing_run_error(key))?;
            store.write_text(key, &text)?;
        }
    }
    store::write_file(&out.join("sweep.json"), manifest.as_bytes())?;
    let table = Some(write::write(&manifest, &store, out, pictures)?);
    Ok(SweepResult { runs: Summary { executed: 0, already_stored: keys.len() }, table })
}
