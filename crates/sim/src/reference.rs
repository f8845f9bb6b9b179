//! `[[references]]`: comparison of a run with published or measured values.

use crate::report::names;
use bentpipe_report::metric::{Error, Metric};
use bentpipe_report::{ReferenceReport, Report, Unit};
use bentpipe_scenario::{Amount, Dimension, ReferenceSpec, Scenario};

/// Why a reference is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The metric is invalid.
    #[error("{0}")]
    Metric(Error),
    /// The value does not have the metric's unit.
    #[error("`{value}` does not fit `{metric}`, which is {wanted}")]
    Unit {
        /// Value as written.
        value: String,
        /// Metric as written.
        metric: String,
        /// Required unit.
        wanted: &'static str,
    },
}

/// Checks that runs of `scenario` have all referenced metrics.
///
/// # Errors
/// The first invalid reference, and what is wrong with it.
pub fn check(scenario: &Scenario) -> Result<(), (&ReferenceSpec, ReferenceError)> {
    scenario
        .references
        .iter()
        .try_for_each(|reference| read(reference, scenario).map(|_| ()).map_err(|why| (reference, why)))
}

fn read(reference: &ReferenceSpec, scenario: &Scenario) -> Result<(Metric, f64), ReferenceError> {
    let metric = Metric::parse(&reference.metric).map_err(ReferenceError::Metric)?;
    metric.check(&names(scenario)).map_err(ReferenceError::Metric)?;
    let value = in_unit(metric.unit(), reference.value).ok_or_else(|| ReferenceError::Unit {
        value: reference.written.clone(),
        metric: reference.metric.clone(),
        wanted: metric.unit().example(),
    })?;
    Ok((metric, value))
}

/// Converts `amount` to a metric's unit; `None` if the dimension differs.
pub fn in_unit(unit: Unit, amount: Amount) -> Option<f64> {
    let (wanted, factor) = match unit {
        Unit::Rate => (Dimension::Rate, 1.0),
        Unit::Seconds => (Dimension::Time, 1.0),
        Unit::Milliseconds => (Dimension::Time, 1e3),
        Unit::Bytes => (Dimension::Bytes, 1.0),
        Unit::Count if amount.dimension == Dimension::Pieces => (Dimension::Pieces, 1.0),
        Unit::Ratio | Unit::Count => (Dimension::Bare, 1.0),
        Unit::Decibels => (Dimension::Decimal("dB"), 1.0),
    };
    (amount.dimension == wanted).then_some(amount.value * factor)
}

/// Adds comparisons with the scenario's references to the report. Invalid ones are omitted.
pub(crate) fn compare(report: &mut Report, scenario: &Scenario) {
    let row = |spec: &ReferenceSpec| {
        let (metric, reference) = read(spec, scenario).ok()?;
        let value = metric.of(report).ok()?;
        Some(ReferenceReport {
            metric: spec.metric.clone(),
            value,
            reference,
            unit: metric.unit().symbol().to_owned(),
            deviation: value.map(|v| v / reference - 1.0).filter(|d| d.is_finite()),
            source: spec.source.clone(),
        })
    };
    report.references = scenario.references.iter().filter_map(row).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_taken_in_the_unit_of_the_metric() {
        let given = |unit, text| in_unit(unit, bentpipe_scenario::parse_amount(text).unwrap());
        assert_eq!(given(Unit::Milliseconds, "1.5 s"), Some(1500.0));
        assert_eq!(given(Unit::Rate, "2 kbit/s"), Some(2000.0));
        assert_eq!(given(Unit::Count, "3 packets"), Some(3.0));
        assert_eq!(given(Unit::Count, "3"), Some(3.0));
        assert_eq!(given(Unit::Decibels, "-3 dB"), Some(-3.0));
        assert_eq!(given(Unit::Rate, "3"), None);
        assert_eq!(given(Unit::Bytes, "3 s"), None);
    }
}
