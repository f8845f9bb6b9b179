//! Formats numbers for the page.

use crate::check::{CheckResult, Tolerance};
use crate::reading::NumberFormat;
use bentpipe_report::decimals;

/// Shown for an empty cell.
const NOTHING: &str = "–";

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
pub(crate) fn unit(j: &CheckResult) -> &'static str {
    scale(j.check.quantity.number_format()).1
}

/// Decimals that show about five digits.
fn places(j: &CheckResult) -> usize {
    let kind = j.check.quantity.number_format();
    let typical = if j.check.expected.value.is_nan() { j.mean } else { j.check.expected.value };
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
pub(crate) fn value(j: &CheckResult, v: f64) -> String {
    match j.check.quantity.number_format() {
        _ if v.is_nan() => NOTHING.into(),
        NumberFormat::Scientific => format!("{v:.3e}"),
        kind => format!("{:.*}", places(j), v / scale(kind).0),
    }
}

/// Formats `v` with its half-width.
pub(crate) fn with_half_width(j: &CheckResult, v: f64, half_width: Option<f64>) -> String {
    match half_width {
        Some(h) => format!("{} ± {}", value(j, v), value(j, h)),
        None => value(j, v),
    }
}

/// Deviation from the expected value.
pub(crate) fn deviation(j: &CheckResult) -> String {
    if j.deviation().is_nan() {
        return NOTHING.into();
    }
    let text = match (j.check.quantity.number_format(), j.check.tolerance) {
        (NumberFormat::Seconds, _) => format!("{:+.3} ms", j.deviation() * 1e3),
        (NumberFormat::Packets, _) => format!("{:+.0}", j.deviation()),
        (NumberFormat::Utilisation, _) => format!("{:+.1e}", j.deviation()),
        (_, Tolerance::Relative(t)) if t < 2e-3 => format!("{:+.4} %", j.relative() * 100.0),
        _ if j.check.expected.value == 0.0 => value(j, j.deviation()),
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
pub(crate) fn allowed(j: &CheckResult) -> String {
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
