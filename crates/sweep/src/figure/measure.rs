//! What is drawn: a metric, or the ratio of two metrics of the same run.

use crate::error::{Error, metric_error};
use bentpipe_report::metric::{self, Names};
use bentpipe_report::{Metric, Report, Unit};
use bentpipe_scenario::Diagnostic;
use bentpipe_scenario::figure_file::Located;

/// Stands between the two metrics of a ratio.
const OVER: &str = " / ";

pub(crate) struct Measure {
    metric: Metric,
    over: Option<Metric>,
}

impl Measure {
    /// Parses a metric or a ratio.
    pub(crate) fn parse(text: &Located<String>) -> Result<Self, Box<Diagnostic>> {
        let parse = |part: &str| Metric::parse(part).map_err(|error| misplaced(text, &error));
        let (metric, over) = match text.value.split_once(OVER) {
            Some((metric, over)) => (metric, Some(over)),
            None => (text.value.as_str(), None),
        };
        let measure = Self { metric: parse(metric)?, over: over.map(parse).transpose()? };
        if let Some(over) = measure.over.as_ref().filter(|o| o.unit() != measure.metric.unit()) {
            let message = format!("a ratio is of two metrics with the same unit, not of {}", text.value);
            let label = format!("`{}` is {}", over.text(), over.unit().example());
            return Err(text.fault(message, label));
        }
        Ok(measure)
    }

    /// Checks that a run with these names has the metrics.
    pub(crate) fn check(&self, names: &Names<'_>, text: &Located<String>) -> Result<(), Box<Diagnostic>> {
        let mut both = core::iter::once(&self.metric).chain(&self.over);
        both.try_for_each(|m| m.check(names).map_err(|error| misplaced(text, &error)))
    }

    /// Returns the value in a run; `None` if it has none.
    pub(crate) fn of(&self, report: &Report) -> Result<Option<f64>, Error> {
        let value = |m: &Metric| m.of(report).map_err(|e| metric_error(m.text(), e));
        let above = value(&self.metric)?;
        let Some(over) = &self.over else { return Ok(above) };
        Ok(above.zip(value(over)?).and_then(|(a, b)| ratio(a, b)))
    }

    pub(crate) fn unit(&self) -> Unit {
        if self.over.is_some() { Unit::Ratio } else { self.metric.unit() }
    }

    /// Returns the label of an axis and the plot's units per unit of the metric.
    pub(crate) fn axis(&self) -> (String, f64) {
        if let Some(over) = &self.over {
            return (format!("{} / {}", self.metric.text(), over.text()), 1.0);
        }
        crate::pictures::unit(&self.metric)
    }
}

/// Returns the ratio of two values; `None` by zero.
pub(crate) fn ratio(above: f64, below: f64) -> Option<f64> {
    Some(above / below).filter(|ratio| ratio.is_finite())
}

/// Returns the error of a metric at its place in the file.
fn misplaced(text: &Located<String>, error: &metric::Error) -> Box<Diagnostic> {
    let said = error.to_string();
    let mut lines = said.lines().map(str::to_owned);
    let mut fault = text.fault(lines.next().unwrap_or_default(), "");
    fault.help.extend(lines);
    fault
}
