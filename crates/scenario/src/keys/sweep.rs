//! Keys of `[sweep]`: many runs of one file.

use crate::form::table;
use crate::lists::Axis;
use crate::scalars::{Text, Whole};

pub(crate) const MAX_SEEDS: u64 = 10_000;

table! {
    /// Runs the file for every combination of axis values and every seed. Only `bentpipe sweep` uses this
    /// table.
    struct SweepKeys "[sweep]" {
        /// For each axis, the name of a parameter and a list of values as for `--set`. Text is in quotes.
        axes: Vec<Axis>,
        /// Number of runs of each combination, with seeds 1, 2, ...
        seeds: Whole<1, MAX_SEEDS> = "`5`",
        /// Metrics to record in each run, named as for `--expect`.
        measure: Vec<String> = "`[\"goodput\"]`",
        /// Run more seeds until the mean is known with this precision.
        precision: PrecisionKeys = "none: always `seeds` runs",
    }

    /// A combination has enough runs when the half-width of the 95 % confidence interval is at most
    /// `relative` times the mean.
    struct PrecisionKeys "precision" {
        /// Name of a metric of `measure`.
        of: Text,
        /// Required half-width divided by the mean, more than 0 and less than 1.
        relative: f64,
        /// Maximum number of runs of a combination.
        max_seeds: Whole<1, MAX_SEEDS> = "`50`",
    }
}
