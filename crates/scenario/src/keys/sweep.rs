//! Keys of `[sweep]`: many runs of one file.

use crate::form::table;
use crate::lists::{Axes, Texts};
use crate::scalars::{Text, Whole};

/// Most seeds of a cell.
pub(crate) const MAX_SEEDS: u64 = 10_000;

table! {
    /// Runs the file once for every combination of the values of its axes and for several seeds:
    /// `bentpipe sweep`. A single run ignores this table.
    struct SweepKeys "[sweep]" {
        required {
            /// For each axis the name of a parameter and a list of values, written as for `--set`; text in
            /// quotes.
            axes: Axes,
        }
        optional {
            /// Runs of each combination, with the seeds 1, 2, ...
            seeds: Whole<1, MAX_SEEDS> = "`5`",
            /// What to measure in each run: names of metrics, as for `--expect`.
            measure: Texts = "`[\"goodput\"]`",
            /// More seeds until the mean is known this well.
            precision: PrecisionKeys = "none: always `seeds` runs",
        }
    }
}

table! {
    /// When a combination has had enough runs: the half-width of the 95 % interval is at most `relative` of
    /// the mean.
    struct PrecisionKeys "precision" {
        required {
            /// One of `measure`.
            of: Text,
            /// Wished half-width over mean, more than 0 and less than 1.
            relative: f64,
        }
        optional {
            /// Runs of a combination at most.
            max_seeds: Whole<1, MAX_SEEDS> = "`50`",
        }
    }
}
