//! Checks against measurements with ns-2: one or two for each row of `data/reference.csv`.

mod schemes;
mod shared;
mod single;

use crate::prelude::*;
use crate::reference::{Row, rows};

/// Fewest runs of a cell with random results.
const FEWEST_RUNS: u32 = 5;

/// The comparison with `data/reference.csv`.
pub static SECTION: Section = Section {
    title: "Against ns-2 and ns-3",
    intro: "",
    pictures: &[
        (
            "validation-sharing.svg",
            "Sum of the goodputs of twenty connections for three probabilities of loss",
        ),
        ("validation-faded.svg", "Goodput over bit error rate for two windows"),
    ],
    tables: &[
        &single::TRANSFERS,
        &single::WINDOWS,
        &single::BIT_ERRORS,
        &single::FADED,
        &single::BURSTS,
        &single::QUEUES,
        &shared::JITTER,
        &shared::SHARING,
        &shared::CUBIC,
        &schemes::WESTWOOD,
        &schemes::BBR,
        &schemes::ORDER,
        &shared::FAIRNESS,
        &shared::SUMS,
    ],
    checks: || all(&rows()),
};

pub(crate) use shared::{CUBIC, JITTER, SHARING};
pub(crate) use single::{FADED, TRANSFERS};

/// The checks for `rows`.
fn all(rows: &[Row]) -> Vec<Check> {
    let mut all: Vec<Check> =
        rows.iter().filter(|r| r.sim == "ns2").flat_map(|row| checks(row, rows)).collect();
    // each row gives checks of two kinds of CUBIC or Westwood; the stable sort groups them by kind
    let two_kinds = [&shared::CUBIC, &schemes::WESTWOOD];
    all.sort_by_key(|c| if two_kinds.contains(&c.table) { c.labels[0].clone() } else { String::new() });
    all.extend(schemes::bbr());
    all.extend(schemes::order());
    all.extend(shared::fairness_without_jitter());
    all
}

fn checks(row: &Row, rows: &[Row]) -> Vec<Check> {
    let case = row.case.split_once('-').map_or(row.case, |(case, _)| case);
    match (case, row.case) {
        (_, "C-ber") => vec![single::bit_errors(row)],
        (_, "C-window" | "C-conns") => vec![single::windows(row, rows)],
        ("C", name) => vec![single::transfer(row, name, rows)],
        ("D", _) => single::burst(row, rows),
        ("A", _) if row.variant == "linux-cubic" => shared::cubic(row, rows),
        ("A", _) if row.variant == "linux-westwood" => schemes::westwood(row),
        ("A", _) => vec![shared::sharing(row)],
        ("B", _) => shared::fairness(row),
        ("E", _) => vec![single::faded(row, rows)],
        _ => Vec::new(),
    }
}

impl Check {
    /// A check of the goodput of `row`.
    fn of(row: &Row, group: &'static CheckTable, labels: &[&str], job: &Job, tolerance: Tolerance) -> Self {
        let runs = if row.is_deterministic() { 1 } else { row.runs.max(FEWEST_RUNS) };
        let check = Self::new(group, labels, Quantity::GOODPUT, job.seeds(runs), row.goodput, tolerance);
        Self { expected: Expected { half_width: row.goodput_ci95, ..check.expected }, ..check }
    }

    /// The same check of another number of the row.
    fn reading(self, reading: Reading, value: f64, other: Option<f64>) -> Self {
        let expected = Expected { value, half_width: None, other };
        Self { quantity: Quantity::Mean(reading), expected, ..self }
    }
}

fn seconds(row: &Row) -> String {
    format!("{} s", row.duration_s.unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_ns2_is_used() {
        let rows = rows();
        for row in rows.iter().filter(|r| r.sim == "ns2") {
            assert!(!checks(row, &rows).is_empty(), "{row:?}");
        }
    }

    #[test]
    fn every_job_reads_and_has_runs_enough() {
        let rows = rows();
        for row in rows.iter().filter(|r| r.sim == "ns2") {
            for check in checks(row, &rows) {
                assert!(check.jobs.len() >= row.runs as usize, "{check:?}");
                assert!(row.is_deterministic() || check.jobs.len() >= 5, "{check:?}");
                let scenario = check.jobs[0].scenario().unwrap();
                if let Some(duration) = row.duration_s {
                    assert!((scenario.duration.as_secs_f64() - duration).abs() < 1e-9, "{check:?}");
                }
            }
        }
    }
}
