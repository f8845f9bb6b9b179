//! Comparison of a run with published or measured values.

use crate::number;
use crate::unit::Unit;
use crate::words::{aligned, decimals, rate};
use serde::{Deserialize, Serialize};

/// A reference value and the value of this run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct ReferenceReport {
    /// The metric, as written.
    pub metric: String,
    /// Value in this run, in the metric's unit; null if there is none.
    pub value: Option<f64>,
    /// Reference value, in the same unit.
    #[serde(deserialize_with = "number::or_nan")]
    pub reference: f64,
    /// Unit of both; empty for bare numbers.
    pub unit: String,
    /// `value / reference - 1`; null if one of them is missing or 0.
    pub deviation: Option<f64>,
    /// Source of the reference value.
    pub source: String,
}

/// Writes a text table of values and references.
pub(crate) fn table(out: &mut String, rows: &[ReferenceReport]) {
    if rows.is_empty() {
        return;
    }
    let head = ["figure", "this run", "reference", "difference", "found in"].map(str::to_owned);
    let row = |r: &ReferenceReport| {
        [
            r.metric.clone(),
            r.value.map_or_else(|| "none".to_owned(), |v| shown(v, &r.unit)),
            shown(r.reference, &r.unit),
            r.deviation.map_or_else(String::new, |d| format!("{:+.1} %", d * 100.0)),
            r.source.clone(),
        ]
    };
    let rows: Vec<[String; 5]> = core::iter::once(head).chain(rows.iter().map(row)).collect();
    out.push('\n');
    *out += &aligned(&rows, &[0, 4]);
}

fn shown(value: f64, unit: &str) -> String {
    if unit == Unit::Rate.symbol() {
        rate(value)
    } else {
        format!("{} {unit}", decimals(value, 3)).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_side_by_side() {
        let row = |metric: &str, value, deviation| ReferenceReport {
            metric: metric.into(),
            value,
            reference: 23.67e6,
            unit: "bit/s".into(),
            deviation,
            source: "a paper, table 2".into(),
        };
        let mut out = String::new();
        table(&mut out, &[row("carried[hop]", Some(23.88e6), Some(0.008_87)), row("goodput", None, None)]);
        let wanted = "
figure            this run     reference  difference  found in
carried[hop]  23.88 Mbit/s  23.67 Mbit/s      +0.9 %  a paper, table 2
goodput               none  23.67 Mbit/s              a paper, table 2
";
        assert_eq!(out, wanted);
    }
}
