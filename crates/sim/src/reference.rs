//! `[[references]]`: what others found, beside what this run did.

use crate::metric::{Error, Metric, Unit};
use crate::report::Report;
use crate::text::{rate, trim};
use bentpipe_scenario::{Amount, Measures, ReferenceSpec, Scenario};
use core::fmt::Write as _;
use serde::Serialize;

/// A figure of somebody else's and this run's.
#[derive(Clone, Debug, Serialize)]
pub struct ReferenceReport {
    /// The metric, as written.
    pub metric: String,
    /// Its value in this run, in the metric's unit; null without one.
    pub value: Option<f64>,
    /// The other's, in the same unit.
    pub reference: f64,
    /// Unit of both; empty for bare numbers.
    pub unit: &'static str,
    /// `value` over `reference`, less 1; null where one of them is missing or 0.
    pub deviation: Option<f64>,
    /// Where the other's was found.
    pub source: String,
}

/// What is wrong with a reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Its metric.
    #[error("{0}")]
    Metric(Error),
    /// Its value is none of this metric's.
    #[error("`{value}` does not fit `{metric}`, which is {wanted}")]
    Unit {
        /// As written.
        value: String,
        /// As written.
        metric: String,
        /// What it is measured in.
        wanted: &'static str,
    },
}

/// Refuses the first reference to what no run of `scenario` will have.
///
/// # Errors
/// Which one, and what is wrong with it.
pub fn check(scenario: &Scenario) -> Result<(), (&ReferenceSpec, Fault)> {
    scenario
        .references
        .iter()
        .try_for_each(|reference| read(reference, scenario).map(|_| ()).map_err(|why| (reference, why)))
}

fn read(reference: &ReferenceSpec, scenario: &Scenario) -> Result<(Metric, f64), Fault> {
    let metric = Metric::parse(&reference.metric).map_err(Fault::Metric)?;
    metric.check(scenario).map_err(Fault::Metric)?;
    let value = metric.unit().takes(reference.value).ok_or_else(|| Fault::Unit {
        value: reference.written.clone(),
        metric: reference.metric.clone(),
        wanted: metric.unit().example(),
    })?;
    Ok((metric, value))
}

impl Unit {
    /// An amount in this unit; `None` when it measures something else.
    pub fn takes(self, amount: Amount) -> Option<f64> {
        let (wanted, factor) = match self {
            Self::Rate => (Measures::Rate, 1.0),
            Self::Seconds => (Measures::Time, 1.0),
            Self::Milliseconds => (Measures::Time, 1e3),
            Self::Bytes => (Measures::Bytes, 1.0),
            Self::Count if amount.measures == Measures::Pieces => (Measures::Pieces, 1.0),
            Self::Ratio | Self::Count => (Measures::Bare, 1.0),
        };
        (amount.measures == wanted).then_some(amount.value * factor)
    }

    /// What to write.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Rate => "a rate, as in 1 Mbit/s",
            Self::Seconds => "a time, as in 10 s",
            Self::Milliseconds => "a time, as in 500 ms",
            Self::Bytes => "a size, as in 50 kB",
            Self::Ratio => "a number without a unit or a percentage, as in 0.9 or 90 %",
            Self::Count => "a number, as in 3",
        }
    }
}

impl Report {
    /// Puts this run's figures beside those that the scenario refers to. A reference that [`check`] refuses has no row.
    pub fn compare(&mut self, scenario: &Scenario) {
        if scenario.references.is_empty() {
            return;
        }
        let json = serde_json::to_value(&*self).unwrap_or_default();
        let row = |spec: &ReferenceSpec| {
            let (metric, reference) = read(spec, scenario).ok()?;
            let value = metric.of_json(&json).ok()?;
            Some(ReferenceReport {
                metric: spec.metric.clone(),
                value,
                reference,
                unit: metric.unit().symbol(),
                deviation: value.map(|v| v / reference - 1.0).filter(|d| d.is_finite()),
                source: spec.source.clone(),
            })
        };
        self.references = scenario.references.iter().filter_map(row).collect();
    }
}

/// The figures of this run beside those of others, as a table in text.
pub(crate) fn table(out: &mut String, rows: &[ReferenceReport]) {
    if rows.is_empty() {
        return;
    }
    let head = ["figure", "this run", "reference", "difference", "found in"].map(str::to_owned);
    let row = |r: &ReferenceReport| {
        [
            r.metric.clone(),
            r.value.map_or_else(|| "none".to_owned(), |v| shown(v, r.unit)),
            shown(r.reference, r.unit),
            r.deviation.map_or_else(String::new, |d| format!("{:+.1} %", d * 100.0)),
            r.source.clone(),
        ]
    };
    let rows: Vec<[String; 5]> = core::iter::once(head).chain(rows.iter().map(row)).collect();
    let width = |n: usize| rows.iter().map(|r| r[n].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    out.push('\n');
    for [metric, value, reference, deviation, source] in &rows {
        let [w0, w1, w2, w3] = widths;
        let _ = writeln!(out, "{metric:w0$}  {value:>w1$}  {reference:>w2$}  {deviation:>w3$}  {source}");
    }
}

fn shown(value: f64, unit: &str) -> String {
    if unit == Unit::Rate.symbol() {
        rate(value)
    } else {
        format!("{} {unit}", trim(value, 3)).trim_end().to_owned()
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
            unit: "bit/s",
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

    #[test]
    fn amounts_are_taken_in_the_unit_of_the_metric() {
        let amount = |text| bentpipe_scenario::amount(text).unwrap();
        assert_eq!(Unit::Milliseconds.takes(amount("1.5 s")), Some(1500.0));
        assert_eq!(Unit::Rate.takes(amount("2 kbit/s")), Some(2000.0));
        assert_eq!(Unit::Count.takes(amount("3 packets")), Some(3.0));
        assert_eq!(Unit::Count.takes(amount("3")), Some(3.0));
        assert_eq!(Unit::Rate.takes(amount("3")), None);
        assert_eq!(Unit::Bytes.takes(amount("3 s")), None);
    }
}
