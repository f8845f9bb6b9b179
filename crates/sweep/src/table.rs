//! Contents of tables, plots and pages, from the manifest of a sweep and its stored runs.

use crate::error::{Error, metric_error};
use crate::manifest::{Manifest, ManifestRun};
use crate::store::{Store, missing_run_error};
use bentpipe_report::Metric;
use bentpipe_stats::{Level, half_width, mean};
use rayon::prelude::*;

pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) axes: Vec<String>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) cells: Vec<Vec<String>>,
    pub(crate) runs: Vec<RunValues>,
    /// Statistics for each cell and metric.
    pub(crate) figures: Vec<Vec<CellStatistics>>,
}

/// Cell, seed, and a value per metric.
type RunValues = (usize, u64, Vec<Option<f64>>);

/// Statistics of a metric in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CellStatistics {
    pub(crate) mean: Option<f64>,
    /// Half-width of the 95 % confidence interval.
    pub(crate) half_width: Option<f64>,
    /// Number of runs that have a value.
    pub(crate) n: usize,
}

impl CellStatistics {
    pub(crate) fn of(values: &[f64]) -> Self {
        let known = !values.is_empty();
        Self {
            mean: known.then(|| mean(values)),
            half_width: half_width(values, Level::P95),
            n: values.len(),
        }
    }
}

/// Statistics of runs that must all have a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    /// `None` unless each run has a value.
    pub(crate) mean: Option<f64>,
    /// Half-width of the 95 % interval.
    pub(crate) half_width: Option<f64>,
    /// Runs with a value.
    pub(crate) n: usize,
    /// All runs.
    pub(crate) of: usize,
}

impl Estimate {
    /// A mean over a part of the runs would be one over the better or the worse ones, so it is left out.
    pub(crate) fn new(values: &[Option<f64>]) -> Self {
        let known: Vec<f64> = values.iter().copied().flatten().filter(|v| !v.is_nan()).collect();
        let whole = !known.is_empty() && known.len() == values.len();
        Self {
            mean: whole.then(|| mean(&known)),
            half_width: half_width(&known, Level::P95).filter(|h| whole && h.is_finite()),
            n: known.len(),
            of: values.len(),
        }
    }
}

impl From<Estimate> for CellStatistics {
    fn from(of: Estimate) -> Self {
        Self { mean: of.mean, half_width: of.half_width, n: of.n }
    }
}

/// The table of cells in columns, in the order of `cells.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct CellTable {
    /// Each axis, and its value in each cell as `--set` takes it.
    pub axes: Vec<(String, Vec<String>)>,
    /// Each metric.
    pub metrics: Vec<MetricColumns>,
}

/// A metric of all cells.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricColumns {
    /// Name with its unit: `goodput_bps`.
    pub name: String,
    /// Mean in each cell; `None` if no run has a value.
    pub mean: Vec<Option<f64>>,
    /// Half-width of the 95 % interval; `None` for less than two values.
    pub half_width: Vec<Option<f64>>,
    /// Number of runs that have a value.
    pub n: Vec<usize>,
}

impl Table {
    pub(crate) fn in_columns(&self) -> CellTable {
        let axis = |(i, name): (usize, &String)| {
            (name.clone(), self.cells.iter().map(|cell| cell[i].clone()).collect())
        };
        let metric = |(i, metric): (usize, &Metric)| {
            let of = self.figures.iter().map(|figures| figures[i]);
            MetricColumns {
                name: metric.column(),
                mean: of.clone().map(|f| f.mean).collect(),
                half_width: of.clone().map(|f| f.half_width).collect(),
                n: of.map(|f| f.n).collect(),
            }
        };
        CellTable {
            axes: self.axes.iter().enumerate().map(axis).collect(),
            metrics: self.metrics.iter().enumerate().map(metric).collect(),
        }
    }

    /// Reads the runs of a manifest.
    pub(crate) fn read(manifest: &str, store: &Store) -> Result<Self, Error> {
        let Manifest { title, axes, measure, cells, runs, .. } = Manifest::read(manifest)?;
        let parsed = measure.iter().map(|t| Metric::parse(t).map_err(|e| metric_error(t, e)));
        let metrics: Vec<Metric> = parsed.collect::<Result<_, _>>()?;
        let one = |run: &ManifestRun| {
            let report = store.read(&run.key).ok_or_else(|| missing_run_error(&run.key))?;
            let values = metrics.iter().map(|m| m.of(&report).map_err(|e| metric_error(m.text(), e)));
            Ok((run.cell, run.seed, values.collect::<Result<_, _>>()?))
        };
        let runs: Vec<RunValues> = runs.par_iter().map(one).collect::<Result<_, _>>()?;
        let figures = figures(cells.len(), metrics.len(), &runs);
        Ok(Self { title, axes, metrics, cells, runs, figures })
    }

    /// Returns the column names of `runs.csv`.
    pub(crate) fn run_columns(&self) -> Vec<String> {
        let metrics = self.metrics.iter().map(Metric::column);
        self.axes.iter().cloned().chain(["seed".to_owned()]).chain(metrics).collect()
    }

    /// Returns the column names of `cells.csv`.
    pub(crate) fn cell_columns(&self) -> Vec<String> {
        let of = |c: String| [format!("{c}_mean"), format!("{c}_half_width_95"), format!("{c}_n")];
        self.axes.iter().cloned().chain(self.metrics.iter().flat_map(|m| of(m.column()))).collect()
    }
}

fn figures(cells: usize, metrics: usize, runs: &[RunValues]) -> Vec<Vec<CellStatistics>> {
    let mut values = vec![vec![Vec::new(); metrics]; cells];
    for (cell, _, of_run) in runs {
        for (list, value) in values[*cell].iter_mut().zip(of_run) {
            list.extend(*value);
        }
    }
    values.iter().map(|cell| cell.iter().map(|v| CellStatistics::of(v)).collect()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two axes, two metrics; a run of the second cell has no value.
    pub(crate) fn example() -> Table {
        let cells = [["1e-3", "reno, old"], ["1e-2", "reno, old"]].map(|c| c.map(str::to_owned).to_vec());
        let runs = vec![
            (0, 1, vec![Some(1e6), Some(2.0)]),
            (0, 2, vec![Some(3e6), Some(2.0)]),
            (1, 1, vec![Some(0.5), None]),
        ];
        Table {
            title: "a <b> & c".to_owned(),
            axes: vec!["loss".to_owned(), "tcp".to_owned()],
            metrics: ["goodput", "finished[x1]"].map(|m| Metric::parse(m).unwrap()).to_vec(),
            figures: figures(2, 2, &runs),
            cells: cells.to_vec(),
            runs,
        }
    }
}
