//! What was found, in words.

use super::search::{Crossing, Point};
use super::vary::number;
use super::{Condition, Find, Found};
use crate::rounding::{at_step, exponent};
use core::fmt::Write as _;

impl Found {
    /// The answer in one sentence.
    pub fn sentence(&self, find: &Find<'_>) -> String {
        let (until, name) = (&find.until, &find.vary.name);
        let (metric, limit) = (until.metric.text(), until.written.trim());
        let count = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let made = format!("{}, {}", count(self.seeds, "seed"), count(self.runs, "run"));
        let Some(crossing) = &self.crossing else {
            let at = |point: Option<&Point>| {
                let value = point.map_or(f64::NAN, |p| p.x);
                (find.vary.shown(value), point.map_or_else(String::new, |p| measured(p, find)))
            };
            let ((low, at_low), (high, at_high)) = (at(self.points.first()), at(self.points.last()));
            return format!(
                "{metric}: no crossing of {limit} was found at {} from {name} = {low} to {high}: it is {at_low} \
                 at {low} and {at_high} at {high} ({made}).",
                count(self.points.len(), "value")
            );
        };
        let (begins, is) = until.comparison.words();
        let said =
            if crossing.met_above { format!("{begins} {limit} at") } else { format!("{is} {limit} up to") };
        let [value, low, high] = rounded(crossing, find.vary.whole);
        let unit = if find.vary.unit.is_empty() { String::new() } else { format!(" {}", find.vary.unit) };
        let mut out = format!("{metric} {said} {name} = {value}{unit} (");
        if !find.vary.whole || crossing.high - crossing.low > 1.0 {
            let level = if crossing.uncertain { ", 95 %" } else { "" };
            let _ = write!(out, "{low} to {high}{unit}{level}, ");
        }
        let _ = write!(out, "{made}).");
        out
    }

    /// What else to know about the answer, a sentence each.
    pub fn notes(&self, find: &Find<'_>) -> Vec<String> {
        let metric = find.until.metric.text();
        let mut notes = Vec::new();
        if let Some(crossing) = &self.crossing {
            if !crossing.in_order {
                let from = side(&self.points, &find.until);
                notes.push(format!(
                    "The means of {metric} neither rise nor fall throughout, by more than their intervals: there \
                     may be other crossings. This is the first one from {from}."
                ));
            }
            if crossing.cut_off {
                notes.push("The interval reaches a bound of the range, so it may be wider.".to_owned());
            }
        }
        let missing: usize = self.points.iter().map(Point::missing).sum();
        if missing > 0 {
            notes.push(format!(
                "In {missing} of the {} runs {metric} has no value: what it measures did not happen or did not \
                 finish. A value of {} with such a run does not meet the condition.",
                self.runs, find.vary.name
            ));
        }
        notes
    }
}

/// Where a search comes from, as in `search::bracket`.
fn side(points: &[Point], until: &Condition) -> &'static str {
    let met = |point: Option<&Point>| point.is_some_and(|p| p.meets(until));
    let alike = met(points.first()) == met(points.last());
    if alike { "the lower bound" } else { "the side where the condition is not met" }
}

/// The mean at a point, in the unit of the limit.
fn measured(point: &Point, find: &Find<'_>) -> String {
    let Some(mean) = point.figure.mean else {
        return "without a value".to_owned();
    };
    let (unit, scale) = find.until.unit();
    let value = significant(mean / scale, 4);
    format!("{} {unit}", number(value)).trim_end().to_owned()
}

/// Rounds to some significant digits.
fn significant(value: f64, digits: usize) -> f64 {
    let places = digits.saturating_sub(1);
    format!("{value:.places$e}").parse().unwrap_or(value)
}

/// The value and the ends of the interval, rounded to the power of ten below a quarter of its width, with at
/// most six digits.
fn rounded(crossing: &Crossing, whole: bool) -> [String; 3] {
    let all = [crossing.value, crossing.low, crossing.high];
    if whole {
        return all.map(|v| format!("{v:.0}"));
    }
    let width = crossing.high - crossing.low;
    // an interval without a width has the digits of the values tried
    let step = if width > 0.0 { exponent(width / 4.0) } else { exponent(crossing.value) - 5 };
    all.map(|value| {
        let largest = exponent(value);
        let digits = (largest - step).clamp(0, 5);
        let value = significant(value, digits as usize + 1);
        if largest < step || (1e-3..1e7).contains(&value.abs()) {
            // not more than six digits
            at_step(value, step.max(largest - 5).min(0))
        } else {
            format!("{value:.places$e}", places = digits as usize)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_is_the_lower_bound_if_both_bounds_are_alike() {
        let metric = bentpipe_report::Metric::parse("timeouts").unwrap();
        let comparison = super::super::Comparison::Above;
        let until = Condition { metric, comparison, limit: 1.0, written: "1".to_owned() };
        let of = |values: [f64; 3]| side(&values.map(|v| Point::new(v, &[Some(v)])), &until);
        assert_eq!(of([2.0, 0.0, 2.0]), "the lower bound");
        assert_eq!(of([0.0, 2.0, 0.0]), "the lower bound");
        assert_eq!(of([0.0, 3.0, 2.0]), "the side where the condition is not met");
    }

    #[test]
    fn digits_are_those_that_the_interval_supports() {
        let of = |value, low, high| {
            let crossing = Crossing {
                value,
                low,
                high,
                met_above: true,
                uncertain: true,
                cut_off: false,
                in_order: true,
            };
            rounded(&crossing, false).join(" ")
        };
        for (value, low, high, text) in [
            (3.2143e-7, 3.0123e-7, 3.4987e-7, "3.2e-7 3.0e-7 3.5e-7"),
            (12.3456, 12.3401, 12.3512, "12.346 12.340 12.351"),
            (123_456.0, 122_000.0, 124_000.0, "123500 122000 124000"),
            (9.96, 9.5, 10.7, "10.0 9.5 10.7"),
            (0.02, -0.01, 0.3, "0.02 -0.01 0.30"),
            (5.0, 5.0, 5.0, "5.00000 5.00000 5.00000"),
        ] {
            assert_eq!(of(value, low, high), text);
        }
    }
}
