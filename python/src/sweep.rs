//! Sweeps: which runs are missing, batches of runs, and the tables.

use crate::error;
use crate::scenario::Scenario;
use crate::table::{Table, cells};
use crate::watch::{Stop, Watch, engine};
use bentpipe_cli::library::Beside;
use bentpipe_scenario::{Precision, SweepSpec};
use bentpipe_sweep::batch::{self, RunOfCell};
use bentpipe_sweep::{Error, Job};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A sweep of a scenario.
#[pyclass(frozen, module = "bentpipe._native")]
pub(crate) struct Sweep {
    source: bentpipe_scenario::Source,
    path: PathBuf,
    sets: Vec<(String, String)>,
    seed: Option<u64>,
    spec: SweepSpec,
}

/// What is swept: an object of Python with these attributes.
#[derive(FromPyObject)]
pub(crate) struct Wanted {
    /// They replace those of the file, or come after them.
    axes: Vec<(String, Vec<String>)>,
    seeds: Option<u32>,
    measure: Vec<String>,
    /// Metric, half-width as a share of the mean, and the maximum number of runs.
    precision: Option<(String, f64, u32)>,
    seed: Option<u64>,
}

#[pymethods]
impl Sweep {
    /// What is `None` or empty is the file's.
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, wanted: Wanted) -> PyResult<Self> {
        let Wanted { axes, seeds, measure, precision, seed } = wanted;
        let source = scenario.source.clone();
        let spec = bentpipe_scenario::sweep(&source).map_err(|e| error::diagnostic(py, &e))?;
        let mut spec = spec.unwrap_or_default();
        let sets = spec.keep(&scenario.sets);
        for (name, values) in axes {
            if scenario.sets.iter().any(|(set, _)| *set == name) {
                let text = format!("`{name}` is an axis and has one value by with_: write one of the two");
                return Err(error::input(py, &text));
            }
            spec.set_axis(&name, values);
        }
        spec.seeds = seeds.unwrap_or(spec.seeds);
        if !measure.is_empty() {
            spec.measure = measure;
        }
        if let Some((of, relative, max_seeds)) = precision {
            if !spec.measure.contains(&of) {
                spec.measure.push(of.clone());
            }
            spec.precision = Some(Precision { of, relative, max_seeds: max_seeds.max(spec.seeds) });
        }
        Ok(Self { source, path: scenario.path.clone(), sets, seed, spec })
    }

    /// The runs that the folder lacks, as numbers of cells and seeds.
    fn missing(&self, py: Python<'_>, out: PathBuf) -> PyResult<Vec<RunOfCell>> {
        engine(py, || self.with_job(|job| batch::missing(job, &out)))?.map_err(|e| failure(py, &e))
    }

    /// Makes runs one after the other; returns how many it made.
    fn make(
        &self,
        py: Python<'_>,
        out: PathBuf,
        runs: Vec<RunOfCell>,
        signals: bool,
        stop: Option<Stop>,
    ) -> PyResult<usize> {
        let mut watch = Watch::new(signals, stop);
        let made = engine(py, || self.with_job(|job| batch::make(job, &out, &runs, &mut || watch.go_on())))?;
        watch.error().map_or(Ok(()), Err)?;
        made.map_err(|e| failure(py, &e))
    }

    /// Writes the tables and returns that of cells. Runs that are still missing are made.
    fn finish(&self, py: Python<'_>, out: PathBuf, numeric: Vec<String>) -> PyResult<Table> {
        let pictures = bentpipe_sweep::Formats::default();
        let done = engine(py, || self.with_job(|job| bentpipe_sweep::sweep(job, &out, pictures, &|_| ())))?;
        let done = done.map_err(|e| failure(py, &e))?;
        let table = done.cells().ok_or_else(|| error::bug(py, "a whole sweep has no table"))?;
        cells(py, &table, &numeric)
    }
}

impl Sweep {
    fn with_job<T>(&self, work: impl FnOnce(&Job<'_>) -> T) -> T {
        let files = Beside(&self.path);
        let (sets, spec) = (self.sets.clone(), self.spec.clone());
        work(&Job {
            source: &self.source,
            files: &files,
            sets,
            seed: self.seed,
            spec,
            shard: None,
            threads: 0,
        })
    }
}

/// Converts an error. What is wrong in a cell is in the axes or in the scenario.
fn failure(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::File { .. } => error::system(&error.to_string()),
        Error::Cell { diagnostic, .. } => error::in_option(py, diagnostic, "axes"),
        _ => error::input(py, &error.to_string()),
    }
}
