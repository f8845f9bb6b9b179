//! Tables of gateways and of references, for the page and as CSV files.

use crate::markup::table;
use crate::tables::{columns, count, keys, number, optional};
use bentpipe_report::{GatewayReport, ReferenceReport, Report, csv};

pub(crate) fn references_csv(rows: &[ReferenceReport]) -> String {
    let row = |r: &ReferenceReport| {
        let (value, reference, deviation) = (optional(r.value), number(r.reference), optional(r.deviation));
        vec![r.metric.clone(), r.unit.clone(), value, reference, deviation, r.source.clone()]
    };
    csv(columns("metric,unit,value,reference,deviation,source"), rows.iter().map(row))
}

/// `gateways.csv`: one column for each reason and cause that occurs.
pub(crate) fn gateways_csv(rows: &[GatewayReport]) -> String {
    let (reasons, causes) = (keys(rows, |g| &g.flows.passed), keys(rows, |g| &g.not_forwarded));
    let mut head =
        columns("name,accelerated,forwarded,losses,repairs,resent,copies,timeouts,held_peak_bytes");
    head.extend(reasons.iter().map(|key| format!("passed_{key}")));
    head.extend(causes.iter().map(|key| format!("not_forwarded_{key}")));
    let row = |g: &GatewayReport| {
        let mut cells = vec![g.name.clone(), g.flows.accelerated.to_string()];
        cells.extend(counts(g).map(|n| n.to_string()));
        cells.push(g.held_peak_bytes.to_string());
        cells.extend(reasons.iter().map(|key| count(&g.flows.passed, key)));
        cells.extend(causes.iter().map(|key| count(&g.not_forwarded, key)));
        cells
    };
    csv(head, rows.iter().map(row))
}

/// Table of reference values beside those of this run.
pub(crate) fn references(out: &mut String, report: &Report) {
    if report.references.is_empty() {
        return;
    }
    let row = |r: &ReferenceReport| {
        // rates in Mbit/s, all other values as they are
        let (size, unit) = if r.unit == "bit/s" { (1e6, "Mbit/s") } else { (1.0, r.unit.as_str()) };
        let shown = |v: f64| format!("{:.3}", v / size);
        let none = || "–".to_owned();
        vec![
            r.metric.clone(),
            r.value.map_or_else(none, shown),
            shown(r.reference),
            unit.to_owned(),
            r.deviation.map_or_else(none, |d| format!("{:+.1}", 100.0 * d)),
            r.source.clone(),
        ]
    };
    let head = ["figure", "this run", "reference", "unit", "difference, %", "found in"];
    let rows: Vec<_> = report.references.iter().map(row).collect();
    table(out, "Beside what others found", &head, &rows, "references.csv");
}

pub(crate) fn gateways(out: &mut String, report: &Report) {
    if report.gateways.is_empty() {
        return;
    }
    let reasons = keys(&report.gateways, |g| &g.flows.passed);
    let row = |g: &GatewayReport| {
        let mut cells = vec![g.name.clone(), g.flows.accelerated.to_string()];
        cells.extend(reasons.iter().map(|key| count(&g.flows.passed, key)));
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
    let rows: Vec<_> = report.gateways.iter().map(row).collect();
    table(out, "Gateways", &head, &rows, "gateways.csv");
}

fn counts(g: &GatewayReport) -> [u64; 6] {
    [g.forwarded, g.losses, g.repairs, g.resent, g.copies, g.timeouts]
}
