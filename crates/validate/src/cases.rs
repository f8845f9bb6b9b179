//! Checks against numbers measured with ns-2: one or two for each of its rows.

use crate::check::{Check, Expected, Quantity, Tolerance};
use crate::group::Group;
use crate::job::{Change, File, Job};
use crate::reference::Row;

/// Fewest runs of a cell in which chance plays a part.
const FEWEST_RUNS: u32 = 5;

/// What CUBIC with the beta of RFC 9438 should reach at a loss of 1e-2, B/s. ns-2's has 0.8, which gains 11 % there
/// by the formula of RFC 9438, section 5.1.
const CUBIC_AT_HIGH_LOSS: Tolerance = Tolerance::Between(880e3, 960e3);

/// The checks that `rows` give.
pub fn all(rows: &[Row]) -> Vec<Check> {
    let mut all: Vec<Check> =
        rows.iter().filter(|r| r.sim == "ns2").flat_map(|row| checks(row, rows)).collect();
    // two kinds of CUBIC come from each row: one after the other (stable, so all else stays)
    all.sort_by_key(|c| if c.group == Group::Cubic { c.labels[0].clone() } else { String::new() });
    all
}

fn checks(row: &Row, rows: &[Row]) -> Vec<Check> {
    let case = row.case.split_once('-').map_or(row.case.as_str(), |(case, _)| case);
    match (case, row.case.as_str()) {
        (_, "C-ber") => vec![bit_errors(row)],
        (_, "C-window" | "C-conns") => vec![windows(row, rows)],
        ("C", name) => vec![transfer(row, name, rows)],
        ("D", _) => burst(row, rows),
        ("A", _) if row.variant == "linux-cubic" => cubic(row),
        ("A", _) => vec![sharing(row)],
        _ => Vec::new(),
    }
}

impl Check {
    /// A check of the goodput of `row`.
    fn of(row: &Row, group: Group, labels: &[&str], job: &Job, tolerance: Tolerance) -> Self {
        let runs = if row.is_deterministic() { 1 } else { row.runs.max(FEWEST_RUNS) };
        Self {
            group,
            labels: labels.iter().map(|l| (*l).to_owned()).collect(),
            quantity: Quantity::Goodput,
            jobs: job.seeds(runs),
            expected: Expected { value: row.goodput, half_width: row.goodput_ci95, other: None },
            tolerance,
        }
    }

    fn reading(mut self, quantity: Quantity, value: f64, other: Option<f64>) -> Self {
        self.quantity = quantity;
        self.expected = Expected { value, half_width: None, other };
        self
    }
}

/// The row of the same experiment in the other simulator.
fn other<'a>(row: &Row, rows: &'a [Row]) -> Option<&'a Row> {
    rows.iter().find(|r| row.same_cell(r))
}

fn seconds(row: &Row) -> String {
    format!("{} s", row.duration_s.unwrap_or(0.0))
}

fn packets(n: &str) -> String {
    format!("{n} packets")
}

fn segments(n: &str) -> String {
    format!("{n} segments")
}

fn transfer(row: &Row, name: &str, rows: &[Row]) -> Check {
    let bytes = name.trim_start_matches("C-iw-").trim_end_matches('B');
    let size_kb = bytes.parse::<f64>().unwrap_or(f64::NAN) / 1e3;
    let job = Job::new(File::Transfer, &[("size", &format!("{bytes} B")), ("iw", &row.iw)]);
    let seconds = row.finished_s.unwrap_or(f64::NAN);
    let ns3 = other(row, rows).and_then(|r| r.finished_s);
    Check::of(row, Group::Transfers, &[&format!("{size_kb} kB"), &row.iw], &job, Tolerance::Absolute(1e-3))
        .reading(Quantity::Completion, seconds, ns3)
}

fn windows(row: &Row, rows: &[Row]) -> Check {
    let sets = [
        ("tcp", row.variant.as_str()),
        ("window", &segments(&row.window)),
        ("flows", &row.flows),
        ("duration", &seconds(row)),
    ];
    let job = Job::new(File::Window, &sets);
    let ns3 = other(row, rows).map(|r| r.goodput);
    Check::of(row, Group::Windows, &[&row.flows, &row.window], &job, Tolerance::Relative(0.005)).reading(
        Quantity::Goodput,
        row.goodput,
        ns3,
    )
}

fn bit_errors(row: &Row) -> Check {
    let sets = [
        ("tcp", row.variant.as_str()),
        ("window", &segments(&row.window)),
        ("ber", &row.ber),
        ("duration", &seconds(row)),
    ];
    let tolerance = if row.variant == "vegas" { Tolerance::Unjudged } else { Tolerance::Relative(0.08) };
    Check::of(row, Group::BitErrors, &[&row.variant, &row.ber], &Job::new(File::Window, &sets), tolerance)
}

fn burst(row: &Row, rows: &[Row]) -> Vec<Check> {
    let acks = if row.delayed_ack { "every second" } else { "every" };
    let sets = [
        ("tcp", row.variant.as_str()),
        ("buffer", &packets(&row.buffer)),
        ("window", &segments(&row.window)),
        ("delayed_ack", if row.delayed_ack { "on" } else { "off" }),
    ];
    let job = Job::new(File::Burst, &sets);
    let judged = row.variant == "sack" && !row.delayed_ack;
    let tolerance = |t| if judged { t } else { Tolerance::Unjudged };
    let ns3 = other(row, rows);
    let labels = [row.variant.as_str(), acks, &row.buffer];
    let goodput = Check::of(row, Group::Bursts, &labels, &job, tolerance(Tolerance::Relative(0.02)));
    let peak = Check::of(row, Group::Queues, &labels, &job, tolerance(Tolerance::Absolute(1.0)));
    vec![
        goodput.reading(Quantity::Goodput, row.goodput, ns3.map(|r| r.goodput)),
        peak.reading(Quantity::QueuePeak, row.queue_peak, ns3.map(|r| r.queue_peak)),
    ]
}

fn sharing_job(row: &Row, tcp: &str) -> Job {
    let jitter = if row.case == "A-jitter" { "0.9 ms" } else { "0 ms" };
    let sets = [
        ("tcp", tcp),
        ("loss", row.loss.as_str()),
        ("flows", &row.flows),
        ("jitter", jitter),
        ("buffer", &packets(&row.buffer)),
        ("window", &segments(&row.window)),
        ("duration", &seconds(row)),
    ];
    Job::new(File::Sharing, &sets)
}

fn sharing(row: &Row) -> Check {
    let loss = probability(row);
    let jitter = row.case == "A-jitter";
    let tolerance = match row.variant.as_str() {
        "vegas" if loss <= 1e-3 => Tolerance::Relative(0.06),
        "vegas" => Tolerance::Relative(0.10),
        _ if jitter || loss >= 5e-3 => Tolerance::Relative(0.06),
        _ => Tolerance::Unjudged,
    };
    let group = if jitter { Group::Jitter } else { Group::Sharing };
    Check::of(row, group, &[&row.variant, &row.loss], &sharing_job(row, &row.variant), tolerance)
}

fn cubic(row: &Row) -> Vec<Check> {
    let job = sharing_job(row, "cubic");
    let standard = if probability(row) <= 5e-3 { Tolerance::Relative(0.04) } else { CUBIC_AT_HIGH_LOSS };
    let old = job.clone().with(Change::OldCubic);
    let check = |label, job, tolerance| Check::of(row, Group::Cubic, &[label, &row.loss], job, tolerance);
    vec![
        check("beta 0.8, no HyStart", &old, Tolerance::Relative(0.06)),
        check("beta 0.7, HyStart++", &job, standard),
    ]
}

fn probability(row: &Row) -> f64 {
    row.loss.parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::rows;

    #[test]
    fn every_row_of_ns2_is_used() {
        let rows = rows().unwrap();
        for row in rows.iter().filter(|r| r.sim == "ns2") {
            assert!(!checks(row, &rows).is_empty(), "{row:?}");
        }
    }

    #[test]
    fn every_job_reads_and_has_runs_enough() {
        let rows = rows().unwrap();
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
