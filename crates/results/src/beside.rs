//! Tables of gateways and of references, for the page and as CSV files.

use crate::markup::table;
use crate::tables::{keys, number, optional};
use bentpipe_base::names::csv_cell;
use bentpipe_report::{Counts, GatewayReport, ReferenceReport, Report};
use core::fmt::Write as _;

pub(crate) fn references_csv(rows: &[ReferenceReport]) -> String {
    let mut out = String::from("metric,unit,value,reference,deviation,source\n");
    for row in rows {
        let _ = writeln!(
            out,
            "{},{},{},{},{},{}",
            csv_cell(&row.metric),
            row.unit,
            optional(row.value),
            number(row.reference),
            optional(row.deviation),
            csv_cell(&row.source)
        );
    }
    out
}

/// `gateways.csv`: one column for each reason and cause that occurs.
pub(crate) fn gateways_csv(rows: &[GatewayReport]) -> String {
    let (reasons, causes) = (keys(rows, |g| &g.flows.passed), keys(rows, |g| &g.not_forwarded));
    let mut out =
        String::from("name,accelerated,forwarded,losses,repairs,resent,copies,timeouts,held_peak_bytes");
    for (kind, key) in
        reasons.iter().map(|k| ("passed", k)).chain(causes.iter().map(|k| ("not_forwarded", k)))
    {
        let _ = write!(out, ",{kind}_{key}");
    }
    out.push('\n');
    for row in rows {
        let _ = write!(out, "{},{}", csv_cell(&row.name), row.flows.accelerated);
        for count in counts(row).into_iter().chain([row.held_peak_bytes]) {
            let _ = write!(out, ",{count}");
        }
        let by_cause = reasons
            .iter()
            .map(|k| (&row.flows.passed, k))
            .chain(causes.iter().map(|k| (&row.not_forwarded, k)));
        for (map, key) in by_cause {
            let _ = write!(out, ",{}", count(map, key));
        }
        out.push('\n');
    }
    out
}

/// Table of reference values beside those of this run.
pub(crate) fn references(out: &mut String, report: &Report) {
    if report.references.is_empty() {
        return;
    }
    let row = |r: &ReferenceReport| {
        let (value, reference, unit) = in_unit(r);
        let deviation = r.deviation.map_or_else(|| "–".to_owned(), |d| format!("{:+.1}", 100.0 * d));
        vec![
            r.metric.clone(),
            value.unwrap_or_else(|| "–".to_owned()),
            reference,
            unit,
            deviation,
            r.source.clone(),
        ]
    };
    let head = ["figure", "this run", "reference", "unit", "difference, %", "found in"];
    let rows: Vec<_> = report.references.iter().map(row).collect();
    table(out, "Beside what others found", &head, &rows, "references.csv");
}

/// Rates in Mbit/s; all other values unchanged.
fn in_unit(r: &ReferenceReport) -> (Option<String>, String, String) {
    let (size, unit) = if r.unit == "bit/s" { (1e6, "Mbit/s") } else { (1.0, r.unit.as_str()) };
    let shown = |v: f64| format!("{:.3}", v / size);
    (r.value.map(shown), shown(r.reference), unit.to_owned())
}

pub(crate) fn gateways(out: &mut String, report: &Report) {
    if report.gateways.is_empty() {
        return;
    }
    let reasons = keys(&report.gateways, |g| &g.flows.passed);
    let row = |g: &GatewayReport| {
        let mut cells = vec![g.name.clone(), g.flows.accelerated.to_string()];
        cells.extend(reasons.iter().map(|key| count(&g.flows.passed, key).to_string()));
        cells.extend(counts(g).map(|n| n.to_string()));
        cells.push(format!("{:.1}", g.held_peak_bytes as f64 / 1e3));
        cells
    };
    let mut head = vec!["gateway".to_owned(), "flows accelerated".to_owned()];
    head.extend(reasons.iter().map(|key| format!("passed: {}", key.replace('_', " "))));
    head.extend(
        ["packets", "lost in the hop", "repaired", "resent", "copies", "timeouts", "held at most, kB"]
            .map(String::from),
    );
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let rows: Vec<_> = report.gateways.iter().map(row).collect();
    table(out, "Gateways", &head, &rows, "gateways.csv");
}

fn counts(g: &GatewayReport) -> [u64; 6] {
    [g.forwarded, g.losses, g.repairs, g.resent, g.copies, g.timeouts]
}

fn count(counts: &Counts, key: &str) -> u64 {
    counts.get(key).copied().unwrap_or(0)
}
