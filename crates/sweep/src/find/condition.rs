//! The condition that a search looks for.

use crate::pictures::written_unit;
use bentpipe_report::{Metric, Unit};

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
    /// True if `value` is on this side of `limit`.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
        }
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
        self.comparison.holds(mean, self.limit)
    }

    /// True if large values of the metric meet it.
    pub(crate) const fn is_lower_limit(&self) -> bool {
        matches!(self.comparison, Comparison::Above | Comparison::AtLeast)
    }

    /// Returns the unit of the limit as written, and how much of the metric's unit it is.
    pub(crate) fn unit(&self) -> (&str, f64) {
        let unit = self.metric.unit();
        // packets or segments, as the metric says
        if unit == Unit::Count { (unit.symbol(), 1.0) } else { written_unit(&self.written, unit) }
    }
}
