//! What is drawn: a metric of a run, a quantity over its course, or the ratio of two of them in the same run.

use super::course::Quantity;
use crate::error::{Error, metric_error};
use crate::store::Course;
use bentpipe_report::metric;
use bentpipe_report::{Metric, Report, Unit};
use bentpipe_scenario::figure_file::Located;
use bentpipe_scenario::{Diagnostic, Scenario};
use bentpipe_sim::report::names;

/// Stands between the two parts of a ratio.
const OVER: &str = " / ";

enum Part {
    /// A value of the whole run.
    Metric(Metric),
    /// A value in each step of time.
    Course(Quantity),
}

impl Part {
    fn parse(text: &str, over_time: bool) -> Result<Self, metric::Error> {
        if over_time {
            Quantity::parse(text).map(Self::Course)
        } else {
            Metric::parse(text).map(Self::Metric)
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Metric(m) => m.text(),
            Self::Course(q) => q.text(),
        }
    }

    const fn unit(&self) -> Unit {
        match self {
            Self::Metric(m) => m.unit(),
            Self::Course(q) => q.unit(),
        }
    }

    fn check(&self, scenario: &Scenario) -> Result<(), metric::Error> {
        match self {
            Self::Metric(m) => m.check(&names(scenario)),
            Self::Course(q) => q.check(scenario),
        }
    }

    /// Returns the values in a run: one, or one for each step of time.
    fn values(&self, report: &Report, course: &Course) -> Result<Vec<Option<f64>>, Error> {
        match self {
            Self::Metric(m) => Ok(vec![m.of(report).map_err(|e| metric_error(m.text(), e))?]),
            Self::Course(q) => Ok(course.get(q.text()).cloned().unwrap_or_default()),
        }
    }
}

pub(crate) struct Measure {
    part: Part,
    over: Option<Part>,
}

impl Measure {
    /// Parses a metric or a ratio; `over_time`: quantities over the course of a run in place of metrics.
    pub(crate) fn parse(text: &Located<String>, over_time: bool) -> Result<Self, Box<Diagnostic>> {
        let parse = |part: &str| Part::parse(part, over_time).map_err(|error| misplaced(text, &error));
        let (part, over) = match text.value.split_once(OVER) {
            Some((part, over)) => (part, Some(over)),
            None => (text.value.as_str(), None),
        };
        let measure = Self { part: parse(part)?, over: over.map(parse).transpose()? };
        if let Some(over) = measure.over.as_ref().filter(|o| o.unit() != measure.part.unit()) {
            let message = format!("a ratio is of two metrics with the same unit, not of {}", text.value);
            let label = format!("`{}` is {}", over.text(), over.unit().example());
            return Err(text.fault(message, label));
        }
        Ok(measure)
    }

    /// Checks that a run of the scenario has the metrics.
    pub(crate) fn check(&self, scenario: &Scenario, text: &Located<String>) -> Result<(), Box<Diagnostic>> {
        let mut both = core::iter::once(&self.part).chain(&self.over);
        both.try_for_each(|m| m.check(scenario).map_err(|error| misplaced(text, &error)))
    }

    /// Returns the quantities over time that it needs.
    pub(crate) fn quantities(&self) -> impl Iterator<Item = &Quantity> {
        core::iter::once(&self.part).chain(&self.over).filter_map(|part| match part {
            Part::Metric(_) => None,
            Part::Course(quantity) => Some(quantity),
        })
    }

    /// Returns the values in a run, one or one for each step of time; `None` where it has none.
    pub(crate) fn of(&self, report: &Report, course: &Course) -> Result<Vec<Option<f64>>, Error> {
        let above = self.part.values(report, course)?;
        let Some(over) = &self.over else { return Ok(above) };
        let below = over.values(report, course)?;
        Ok(above.iter().zip(&below).map(|(a, b)| ratio((*a)?, (*b)?)).collect())
    }

    pub(crate) fn unit(&self) -> Unit {
        if self.over.is_some() { Unit::Ratio } else { self.part.unit() }
    }

    /// Returns the label of an axis and the plot's units per unit of the metric.
    pub(crate) fn axis(&self) -> (String, f64) {
        match (&self.part, &self.over) {
            (part, Some(over)) => (format!("{} / {}", part.text(), over.text()), 1.0),
            (Part::Metric(metric), None) => crate::pictures::unit(metric),
            (Part::Course(quantity), None) => crate::pictures::scaled(quantity.label(), quantity.unit()),
        }
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
