//! The runs of a sweep, in the order of cells and seeds.

use crate::error::{Error, metric_error};
use crate::key::CellKey;
use crate::manifest::{Manifest, ManifestRun};
use crate::store::{Store, missing_run_error};
use bentpipe_report::Metric;
use bentpipe_scenario::{Files, Scenario, Source, SweepSpec, load_with};
use bentpipe_sim::report::names;
use bentpipe_stats::{Level, half_width, mean};
use rayon::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of runs of a sweep.
pub const MAX_RUNS: usize = 100_000;

/// A shard: the runs with `index mod of = number - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of the shard, from 1.
    pub number: usize,
    /// Number of shards.
    pub of: usize,
}

/// A sweep as requested.
pub struct Job<'a> {
    /// The scenario file.
    pub source: &'a Source,
    /// Reads trace files.
    pub files: &'a (dyn Files + Sync),
    /// Parameters with the same value in every cell; none of them is an axis.
    pub sets: Vec<(String, String)>,
    /// Seed of the first run of each cell; `None`: the file's.
    pub seed: Option<u64>,
    /// Axes, seeds, metrics, precision.
    pub spec: SweepSpec,
    /// Shard to execute; `None`: all runs.
    pub shard: Option<Shard>,
    /// Number of threads; 0: one per core.
    pub threads: usize,
}

impl Job<'_> {
    pub(crate) fn includes(&self, index: usize) -> bool {
        self.shard.is_none_or(|s| index % s.of == s.number - 1)
    }

    /// Loads the scenario of a cell. `seed` replaces that of the file.
    pub(crate) fn load(&self, cell: &[String], seed: Option<u64>) -> Result<Scenario, Error> {
        let axes = || self.spec.axes.iter().map(|(name, _)| name.clone()).zip(cell.iter().cloned());
        let sets: Vec<_> = self.sets.iter().cloned().chain(axes()).collect();
        load_with(self.source, &sets, seed, self.files)
            .map_err(|diagnostic| Error::Cell { diagnostic, cell: axes().collect() })
    }

    /// Loads the scenario without axes, with another parameter set.
    pub(crate) fn load_with(&self, name: &str, value: &str) -> Result<Scenario, Error> {
        let cell = vec![(name.to_owned(), value.to_owned())];
        let sets: Vec<_> = self.sets.iter().chain(&cell).cloned().collect();
        load_with(self.source, &sets, self.seed, self.files)
            .map_err(|diagnostic| Error::Cell { diagnostic, cell })
    }

    /// Returns the metrics of the tables, then the one whose precision is required.
    fn metrics(&self) -> Result<Vec<Metric>, Error> {
        let texts = self.spec.measure.iter().chain(self.spec.precision.as_ref().map(|p| &p.of));
        texts.map(|text| Metric::parse(text).map_err(|e| metric_error(text, e))).collect()
    }

    fn check(&self) -> Result<(), Error> {
        let spec = &self.spec;
        for (name, values) in &spec.axes {
            if values.is_empty() {
                return input_error(format!("the axis `{name}` has no values: write --axis {name}=a,b,c"));
            }
            if spec.axes.iter().filter(|(other, _)| other == name).count() > 1 {
                return input_error(format!("the axis `{name}` is given twice"));
            }
        }
        if self.shard.is_some_and(|s| s.number == 0 || s.number > s.of) {
            return input_error("--shard i/n needs i from 1 to n".to_owned());
        }
        if self.shard.is_some() && spec.precision.is_some() {
            return input_error(
                "a sweep with a precision cannot be split into shards: how many runs it needs depends on all of them\n\
                 help: write --precision none and a fixed number of --seeds"
                    .to_owned(),
            );
        }
        if spec.seeds == 0 {
            return input_error("--seeds must be at least 1".to_owned());
        }
        let cells = spec.axes.iter().try_fold(1_usize, |n, (_, v)| n.checked_mul(v.len()));
        if cells.and_then(|n| n.checked_mul(self.max_seeds() as usize)).is_none_or(|n| n > MAX_RUNS) {
            return input_error(format!(
                "there are too many runs: combinations times seeds must not exceed {MAX_RUNS}\n\
                 help: with a precision, its max_seeds counts"
            ));
        }
        Ok(())
    }

    fn max_seeds(&self) -> u32 {
        self.spec.precision.as_ref().map_or(0, |p| p.max_seeds).max(self.spec.seeds)
    }
}

pub(crate) struct Run {
    pub(crate) index: usize,
    pub(crate) cell: usize,
    pub(crate) seed: u64,
    /// Name in the store; empty until computed by [`Plan::compute_keys`].
    pub(crate) key: String,
}

/// The cell that was loaded last. Most runs that begin one after the other are of one cell, and reading a
/// scenario may take longer than a short run.
#[derive(Default)]
pub(crate) struct LastCell(Mutex<Option<LoadedCell>>);

type LoadedCell = (usize, Arc<(Scenario, CellKey)>);

impl LastCell {
    /// Returns the scenario of a run, and the run's name in the store.
    pub(crate) fn run(
        &self,
        cell: usize,
        seed: u64,
        load: impl FnOnce() -> Result<Scenario, Error>,
    ) -> Result<(Scenario, String), Error> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_cell = match &*last {
            Some((of, loaded)) if *of == cell => Arc::clone(loaded),
            _ => {
                let scenario = load()?;
                let key = CellKey::of(&scenario);
                let loaded = Arc::new((scenario, key));
                *last = Some((cell, Arc::clone(&loaded)));
                loaded
            }
        };
        drop(last);
        let (scenario, key) = &*of_cell;
        Ok((Scenario { seed, ..scenario.clone() }, key.of_run(seed)))
    }
}

pub(crate) struct Plan {
    /// Axis values of each cell.
    pub(crate) cells: Vec<Vec<String>>,
    pub(crate) runs: Vec<Run>,
    /// Number of runs of each cell.
    counts: Vec<u32>,
    /// Seed of the first run of each cell.
    pub(crate) base: u64,
    spec: SweepSpec,
    /// For [`crate::planned`].
    pub(crate) last: LastCell,
    metrics: Vec<Metric>,
    pub(crate) title: String,
    /// Values per cell of the metric whose precision is required, and the number of runs they cover.
    measured: (Vec<Vec<f64>>, usize),
}

fn input_error<T>(text: String) -> Result<T, Error> {
    Err(Error::Input(text))
}

impl Plan {
    pub(crate) fn new(job: &Job<'_>) -> Result<Self, Error> {
        job.check()?;
        let metrics = job.metrics()?;
        let spec = job.spec.clone();
        let cells = cells(&spec.axes);
        let first = job.load(&cells[0], job.seed)?;
        let most = job.max_seeds();
        if first.seed.checked_add(u64::from(most)).is_none() {
            return input_error(format!("the seed {} leaves no room for {most} seeds after it", first.seed));
        }
        let n = cells.len();
        let mut plan = Self {
            cells,
            runs: Vec::new(),
            counts: vec![0; n],
            base: first.seed,
            spec,
            last: LastCell::default(),
            metrics,
            title: first.title,
            measured: (vec![Vec::new(); n], 0),
        };
        plan.add(&(0..n).collect::<Vec<_>>(), plan.spec.seeds);
        Ok(plan)
    }

    fn add(&mut self, cells: &[usize], upto: u32) {
        for &cell in cells {
            for k in self.counts[cell]..upto {
                let seed = self.base + u64::from(k);
                self.runs.push(Run { index: self.runs.len(), cell, seed, key: String::new() });
            }
            self.counts[cell] = upto;
        }
    }

    /// Computes missing keys and checks that the runs have all metrics. Returns the first error in their
    /// order.
    pub(crate) fn compute_keys(&mut self, job: &Job<'_>) -> Result<(), Error> {
        let (cells, metrics) = (&self.cells, &self.metrics);
        let named: Vec<Result<(), Error>> = self
            .runs
            .par_chunk_by_mut(|one, next| one.cell == next.cell)
            .filter(|runs| runs.iter().any(|run| run.key.is_empty()))
            .map(|runs| {
                let scenario = job.load(&cells[runs[0].cell], Some(runs[0].seed))?;
                let names = names(&scenario);
                metrics.iter().try_for_each(|m| m.check(&names).map_err(|e| metric_error(m.text(), e)))?;
                let key = CellKey::of(&scenario);
                for run in runs {
                    run.key = key.of_run(run.seed);
                }
                Ok(())
            })
            .collect();
        named.into_iter().collect()
    }

    /// Adds another batch of runs for each cell that needs more precision. Returns false if no cell does.
    pub(crate) fn extend(&mut self, store: &Store) -> Result<bool, Error> {
        let Some(precision) = self.spec.precision.clone() else { return Ok(false) };
        let metric = Metric::parse(&precision.of).map_err(|e| metric_error(&precision.of, e))?;
        let (values, judged) = &mut self.measured;
        for run in &self.runs[*judged..] {
            let report = store.read(&run.key).ok_or_else(|| missing_run_error(&run.key))?;
            values[run.cell].extend(metric.of(&report).map_err(|e| metric_error(metric.text(), e))?);
        }
        *judged = self.runs.len();
        let known = |v: &[f64]| {
            half_width(v, Level::P95).is_some_and(|width| width <= precision.relative * mean(v).abs())
        };
        // all open cells have had the same number of batches
        let open: Vec<usize> = (0..self.cells.len())
            .filter(|&c| self.counts[c] < precision.max_seeds && !known(&values[c]))
            .collect();
        if let Some(&first) = open.first() {
            let upto = (self.counts[first] + self.spec.seeds).min(precision.max_seeds);
            self.add(&open, upto);
        }
        Ok(!open.is_empty())
    }

    /// Returns the whole plan as JSON, which is the same for all shards.
    pub(crate) fn manifest(&self) -> String {
        let named = |r: &Run| ManifestRun { cell: r.cell, seed: r.seed, key: r.key.clone() };
        let mut runs: Vec<ManifestRun> = self.runs.iter().map(named).collect();
        runs.sort_by_key(|r| (r.cell, r.seed));
        let axes = self.spec.axes.iter().map(|(name, _)| name.clone()).collect();
        Manifest::new(self.title.clone(), axes, self.spec.measure.clone(), self.cells.clone(), runs).to_json()
    }
}

/// Returns all combinations; the last axis varies fastest.
fn cells(axes: &[(String, Vec<String>)]) -> Vec<Vec<String>> {
    let n = axes.iter().map(|(_, values)| values.len()).product();
    (0..n).map(|cell| cell_at(axes, cell)).collect()
}

/// Returns the values of a combination by its number; a number beyond the last one begins again.
pub(crate) fn cell_at(axes: &[(String, Vec<String>)], mut cell: usize) -> Vec<String> {
    let mut values: Vec<String> = Vec::with_capacity(axes.len());
    for (_, all) in axes.iter().rev() {
        values.push(all[cell % all.len()].clone());
        cell /= all.len();
    }
    values.reverse();
    values
}
