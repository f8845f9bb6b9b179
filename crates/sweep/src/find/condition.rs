//! The condition that a search looks for.

use bentpipe_report::{Metric, Unit};
use bentpipe_scenario::{amount_parts, parse_amount};
use bentpipe_sim::reference::in_unit;

/// On which side of the limit a condition is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`.
    Below,
    /// `<=`.
    AtMost,
    /// `>`.
    Above,
    /// `>=`.
    AtLeast,
}

/// A condition on the mean of a metric: `goodput < 1 Mbit/s`.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The metric.
    pub metric: Metric,
    /// Side of the limit.
    pub comparison: Comparison,
    /// The limit, in the metric's unit.
    pub limit: f64,
    /// The limit as written, with its unit.
    pub written: String,
}

impl Comparison {
    /// Returns the comparison of a sign.
    pub fn from_sign(sign: &str) -> Option<Self> {
        Some(match sign {
            "<" => Self::Below,
            "<=" => Self::AtMost,
            ">" => Self::Above,
            ">=" => Self::AtLeast,
            _ => return None,
        })
    }

    /// Returns the words for a mean that begins to meet it, and for one that meets it.
    pub(crate) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Below => ("falls below", "is below"),
            Self::AtMost => ("falls to", "is at most"),
            Self::Above => ("rises above", "is above"),
            Self::AtLeast => ("rises to", "is at least"),
        }
    }
}

impl Condition {
    pub(crate) fn holds(&self, mean: f64) -> bool {
        match self.comparison {
            Comparison::Below => mean < self.limit,
            Comparison::AtMost => mean <= self.limit,
            Comparison::Above => mean > self.limit,
            Comparison::AtLeast => mean >= self.limit,
        }
    }

    /// True if large values of the metric meet it.
    pub(crate) const fn is_lower_limit(&self) -> bool {
        matches!(self.comparison, Comparison::Above | Comparison::AtLeast)
    }

    /// Returns the unit of the limit as written, and how much of the metric's unit it is.
    pub(crate) fn unit(&self) -> (&str, f64) {
        let (_, name) = amount_parts(&self.written);
        let one = parse_amount(&format!("1 {name}")).ok().and_then(|one| in_unit(self.metric.unit(), one));
        match one {
            Some(scale) if self.metric.unit() != Unit::Count => (name, scale),
            _ => (self.metric.unit().symbol(), 1.0),
        }
    }
}
