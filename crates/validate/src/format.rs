//! Formats numbers for the page.

use crate::check::{CheckResult, CheckTable, Tolerance};
use crate::reading::NumberFormat;
use crate::table::{NOTHING, Row, Table};
use bentpipe_report::decimals;

/// The table of a check, without rows.
pub(crate) fn table(of: &CheckTable, first: &CheckResult) -> Table {
    let unit = unit(first);
    let in_unit = |name: &str| if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") };
    let runs = if first.packets.is_some() { "packets" } else { "runs" };
    let mut columns: Vec<String> = of.columns.iter().map(|c| (*c).to_owned()).collect();
    columns.extend([runs.to_owned(), in_unit("bentpipe"), in_unit(of.expected)]);
    columns.extend(["deviation", "tolerance"].map(str::to_owned));
    Table { title: of.title.to_owned(), columns, words: of.columns.len(), ..Table::default() }
}

/// The row of a check.
pub(crate) fn row(j: &CheckResult) -> Row {
    let runs = j.check.jobs.len() / j.check.quantity.runs_per_value();
    let (ours, expected) = (with_half_width(j, j.mean, j.half_width), value(j, j.check.expected));
    let mut cells = j.check.labels.clone();
    cells.push(j.packets.unwrap_or(runs as u64).to_string());
    cells.extend([ours.clone(), expected.clone(), deviation(j), allowed(j)]);
    let with_unit = |text: String| format!("{text} {}", unit(j));
    Row {
        name: j.check.labels.join(", "),
        ours: with_unit(ours),
        expected: if j.check.expected.is_nan() { NOTHING.to_owned() } else { with_unit(expected) },
        allowed: allowed(j),
        cells,
        used: j.tolerance_used(),
        verdict: j.verdict,
    }
}

/// Size of the displayed unit in the quantity's own unit, and its name.
const fn scale(shown: NumberFormat) -> (f64, &'static str) {
    match shown {
        NumberFormat::Goodput => (1e3, "kB/s"),
        NumberFormat::Seconds => (1.0, "s"),
        NumberFormat::Packets | NumberFormat::MeanPackets => (1.0, "packets"),
        NumberFormat::Share => (1e-2, "%"),
        NumberFormat::Ratio | NumberFormat::Utilisation | NumberFormat::Scientific => (1.0, ""),
    }
}

/// The name of the unit.
fn unit(j: &CheckResult) -> &'static str {
    scale(j.check.quantity.number_format()).1
}

/// Decimals that show about five digits.
fn places(j: &CheckResult) -> usize {
    let kind = j.check.quantity.number_format();
    let typical = if j.check.expected.is_nan() { j.mean } else { j.check.expected };
    let shown = (typical / scale(kind).0).abs();
    match kind {
        NumberFormat::Seconds => 5,
        NumberFormat::Packets => 0,
        NumberFormat::Utilisation => 6,
        NumberFormat::Ratio => 3,
        _ if shown >= 1000.0 => 1,
        _ if shown >= 100.0 => 2,
        _ if shown >= 10.0 => 3,
        _ if shown >= 0.01 => 4,
        _ => 5,
    }
}

/// Formats `v` like the other values of its row.
fn value(j: &CheckResult, v: f64) -> String {
    match j.check.quantity.number_format() {
        _ if v.is_nan() => NOTHING.into(),
        NumberFormat::Scientific => format!("{v:.3e}"),
        kind => format!("{:.*}", places(j), v / scale(kind).0),
    }
}

/// Formats `v` with its half-width.
fn with_half_width(j: &CheckResult, v: f64, half_width: Option<f64>) -> String {
    match half_width {
        Some(h) => format!("{} ± {}", value(j, v), value(j, h)),
        None => value(j, v),
    }
}

/// Deviation from the expected value.
fn deviation(j: &CheckResult) -> String {
    if j.deviation().is_nan() {
        return NOTHING.into();
    }
    let text = match (j.check.quantity.number_format(), j.check.tolerance) {
        (NumberFormat::Seconds, _) => format!("{:+.3} ms", j.deviation() * 1e3),
        (NumberFormat::Packets, _) => format!("{:+.0}", j.deviation()),
        (NumberFormat::Utilisation, _) => format!("{:+.1e}", j.deviation()),
        (_, Tolerance::Relative(t)) if t < 2e-3 => format!("{:+.4} %", j.relative() * 100.0),
        _ if j.check.expected == 0.0 => value(j, j.deviation()),
        _ => format!("{:+.2} %", j.relative() * 100.0),
    };
    // avoids "-0.00"
    if text.starts_with('-') && !text.contains(|c| ('1'..='9').contains(&c)) {
        text.replacen('-', "+", 1)
    } else {
        text
    }
}

/// The accepted range of the mean.
fn allowed(j: &CheckResult) -> String {
    match (j.check.tolerance, j.bounds) {
        (Tolerance::Relative(t), _) => format!("±{} %", decimals(t * 100.0, 2)),
        (Tolerance::Absolute(t), _) => match j.check.quantity.number_format() {
            NumberFormat::Seconds => format!("±{} ms", decimals(t * 1e3, 2)),
            NumberFormat::Utilisation => format!("±{t:.0e}"),
            _ => format!("±{}", decimals(t, 2)),
        },
        (Tolerance::Between(..) | Tolerance::Binomial, Some((low, high))) => {
            format!("{} to {}", value(j, low), value(j, high))
        }
        (Tolerance::AtLeast(low), _) => format!("≥ {}", value(j, low)),
        (Tolerance::AtMost(high), _) => format!("≤ {}", value(j, high)),
        _ => NOTHING.into(),
    }
}
