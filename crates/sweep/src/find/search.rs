//! Search of the value of a parameter at which the mean of a metric crosses a threshold.
//!
//! Idea: bisection on the sample mean with common random numbers. Every value is run with the same seeds, so
//! neighbours differ by what the parameter does and less by chance, and the means are close to monotonic even
//! where their intervals are wide. The method and why it beats independent samples: Law, "Simulation Modeling
//! and Analysis", 11.2.
//!
//! Equations: the bracket [a, b] has the condition met by the mean at one end only. The next value is in its
//! middle. The crossing is interpolated linearly between the means at a and b. A value is uncertain if its
//! 95 % interval (Student's t) has a width and contains the threshold. The interval of the crossing is the
//! bracket, widened up to where the band of intervals, linear between the values tried, leaves the threshold.
//! There, too, values are tried until neighbours are at most half of the interval apart.
//!
//! Deviations: stochastic root finders such as Robbins and Monro's need no monotonic means but many more
//! runs, and give no interval after a few. A run without a value counts as not meeting the condition, as in
//! an expectation.
//!
//! Defaults: three values between the bounds at the start, a bracket of 0.1 %, at most 60 values.

use super::condition::Condition;
use super::vary::Vary;
use crate::table::Estimate;

/// Values tried at the start, both bounds included.
const FIRST: u32 = 5;
/// Width of the bracket at which the search ends, relative to its larger end.
const WIDTH: f64 = 1e-3;
/// Least end that this width is relative to, as a share of a linear range: it may contain zero.
const LEAST_END: f64 = 1e-6;
/// Maximum number of values tried.
pub(super) const MAX_VALUES: usize = 60;
/// Distance of the neighbours between which the band leaves the threshold, as a share of the interval.
const EDGE: f64 = 0.5;
/// Disorder of less than this share of the range of the means is not reported.
const DISORDER: f64 = 0.01;

/// A value that was tried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) figure: Estimate,
}

/// Where the crossing is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The value of the parameter; of integers, the first that meets the condition.
    pub value: f64,
    /// Lower end of the interval in which the crossing lies.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// True if larger values meet the condition, false if smaller ones do.
    pub met_above: bool,
    /// True if chance decides how wide the interval is; false if only the search does.
    pub uncertain: bool,
    /// True if the interval reaches a bound of the range.
    pub cut_off: bool,
    /// True if the means increase or decrease throughout, as far as their intervals tell.
    pub in_order: bool,
}

impl Point {
    pub(super) fn new(x: f64, values: &[Option<f64>]) -> Self {
        Self { x, figure: Estimate::new(values) }
    }

    /// The mean, if every run has a value.
    fn mean(&self) -> Option<f64> {
        self.figure.mean
    }

    /// Number of runs without a value.
    pub(crate) fn missing(&self) -> usize {
        self.figure.of - self.figure.n
    }

    pub(crate) fn meets(&self, until: &Condition) -> bool {
        self.mean().is_some_and(|mean| until.holds(mean))
    }

    fn half_width(&self) -> f64 {
        self.figure.half_width.unwrap_or(0.0)
    }

    /// Distance of the threshold from the interval, negative inside; `None` without a mean.
    fn distance(&self, limit: f64) -> Option<f64> {
        self.mean().map(|mean| (mean - limit).abs() - self.half_width())
    }

    /// True if chance decides whether the mean meets the condition. If all runs agree nothing does, even if
    /// they are at the threshold.
    fn is_uncertain(&self, limit: f64) -> bool {
        self.half_width() > 0.0 && self.distance(limit).is_some_and(|d| d <= 0.0)
    }
}

/// Gives, for each of some values, the metric of each run.
type Evaluate<'a, E> = &'a mut dyn FnMut(&[f64]) -> Result<Vec<Vec<Option<f64>>>, E>;

/// Searches. Returns the points in order,
/// and the crossing if there is one.
pub(super) fn search<E>(
    vary: &Vary,
    until: &Condition,
    evaluate: Evaluate<'_, E>,
) -> Result<(Vec<Point>, Option<Crossing>), E> {
    let (low, high) = (vary.low, vary.high);
    let shares = (1..FIRST - 1).map(|n| f64::from(n) / f64::from(FIRST - 1));
    let inner = shares.map(|t| vary.snap(vary.between(low, high, t))).filter(|x| low < *x && *x < high);
    let mut first: Vec<f64> = [low].into_iter().chain(inner).chain([high]).collect();
    first.dedup();
    let mut points = try_values(&first, evaluate)?;
    loop {
        let Some(at) = bracket(&points, until) else { return Ok((points, None)) };
        let (a, b) = (&points[at], &points[at + 1]);
        let mut next = Vec::new();
        if !is_enough(vary, until, (a, b)) {
            next.extend(middle(vary, a, b));
        }
        let crossing = crossing(vary, until, &points, at);
        if next.is_empty() {
            next = edges(vary, until, &points, &crossing);
        }
        next.truncate(MAX_VALUES - points.len());
        if next.is_empty() {
            return Ok((points, Some(crossing)));
        }
        points.extend(try_values(&next, evaluate)?);
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
}

/// The value in the middle of two points, if there is one.
fn middle(vary: &Vary, a: &Point, b: &Point) -> Option<f64> {
    Some(vary.snap(vary.between(a.x, b.x, 0.5))).filter(|middle| a.x < *middle && *middle < b.x)
}

/// Values that tell where the band leaves the threshold, while neighbours there are far apart.
fn edges(vary: &Vary, until: &Condition, points: &[Point], crossing: &Crossing) -> Vec<f64> {
    let distance = |a: f64, b: f64| vary.coordinate(b) - vary.coordinate(a);
    let most = EDGE * distance(crossing.low, crossing.high);
    let leaves = |pair: &&[Point]| pair[0].is_uncertain(until.limit) != pair[1].is_uncertain(until.limit);
    let mut changes = points.windows(2).filter(leaves);
    let (first, last) = (changes.next(), changes.next_back());
    let apart = |pair: &&[Point]| distance(pair[0].x, pair[1].x) > most;
    let outer = [first, last].into_iter().flatten().filter(apart);
    outer.filter_map(|pair| middle(vary, &pair[0], &pair[1])).collect()
}

fn try_values<E>(values: &[f64], evaluate: Evaluate<'_, E>) -> Result<Vec<Point>, E> {
    let results = evaluate(values)?;
    Ok(values.iter().zip(&results).map(|(x, runs)| Point::new(*x, runs)).collect())
}

/// Returns the first of the two neighbours between which the condition begins to be met, coming from the
/// bound where it is not. Coming from the lower bound if it is met at both or at none.
fn bracket(points: &[Point], until: &Condition) -> Option<usize> {
    let met: Vec<bool> = points.iter().map(|p| p.meets(until)).collect();
    let mut changes = (1..met.len()).filter(|n| met[n - 1] != met[*n]).map(|n| n - 1);
    let from_above = met.first() == Some(&true) && met.last() == Some(&false);
    if from_above { changes.next_back() } else { changes.next() }
}

fn is_enough(vary: &Vary, until: &Condition, (a, b): (&Point, &Point)) -> bool {
    let least = if vary.is_log() { 0.0 } else { LEAST_END * (vary.high - vary.low) };
    let width = if vary.whole { 1.0 } else { WIDTH * a.x.abs().max(b.x.abs()).max(least) };
    b.x - a.x <= width || (a.is_uncertain(until.limit) && b.is_uncertain(until.limit))
}

/// Describes the crossing between the neighbours `at` and `at + 1`.
fn crossing(vary: &Vary, until: &Condition, points: &[Point], at: usize) -> Crossing {
    let (a, b) = (&points[at], &points[at + 1]);
    let met_above = b.meets(until);
    let share = |from: f64, to: f64| {
        let t = from / (from - to);
        if t.is_finite() { t.clamp(0.0, 1.0) } else { 0.5 }
    };
    let t = match (a.mean(), b.mean()) {
        (Some(from), Some(to)) => share(from - until.limit, to - until.limit),
        _ => 0.5,
    };
    let mut value = vary.between(a.x, b.x, t);
    let uncertain: Vec<usize> = (0..points.len()).filter(|n| points[*n].is_uncertain(until.limit)).collect();
    // where the band leaves the threshold, from an uncertain point to its outer neighbour
    let edge = |inner: usize, outer: Option<usize>| {
        let inner = &points[inner];
        let Some(outer) = outer.and_then(|n| points.get(n)) else { return inner.x };
        match (inner.distance(until.limit), outer.distance(until.limit)) {
            (Some(inside), Some(outside)) => {
                let t = share(inside, outside);
                let (low, high) = (inner.x.min(outer.x), inner.x.max(outer.x));
                vary.between(low, high, if inner.x <= outer.x { t } else { 1.0 - t })
            }
            _ => outer.x,
        }
    };
    let (mut low, mut high) = (a.x, b.x);
    if let (Some(first), Some(last)) = (uncertain.first(), uncertain.last()) {
        low = low.min(edge(*first, first.checked_sub(1)));
        high = high.max(edge(*last, Some(last + 1)));
    }
    if vary.whole {
        (low, high) = (low.floor(), high.ceil());
        value = if met_above { value.ceil().max(a.x + 1.0) } else { value.floor().min(b.x - 1.0) };
    }
    let ends = [0, points.len() - 1];
    Crossing {
        value,
        low,
        high,
        met_above,
        uncertain: !uncertain.is_empty(),
        cut_off: uncertain.iter().any(|n| ends.contains(n)),
        in_order: are_in_order(points, met_above == until.is_lower_limit()),
    }
}

/// True if no two means are in the wrong order by more than their intervals.
fn are_in_order(points: &[Point], increasing: bool) -> bool {
    let sign = if increasing { 1.0 } else { -1.0 };
    let known: Vec<(f64, f64)> =
        points.iter().filter_map(|p| Some((p.mean()? * sign, p.half_width()))).collect();
    let (least, most) = known.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), (mean, _)| {
        (least.min(*mean), most.max(*mean))
    });
    let tolerance = DISORDER * (most - least);
    let mut highest = f64::NEG_INFINITY;
    known.iter().all(|(mean, half)| {
        let fits = highest <= mean + half + tolerance;
        highest = highest.max(mean - half);
        fits
    })
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
