//! Axes: range, ticks, labels, and conversion of values to positions.

use crate::{Axis, Scale};

/// An axis with a fixed range.
#[derive(Clone, Debug)]
pub(crate) struct FittedAxis {
    scale: Scale,
    low: f64,
    high: f64,
    /// Values with a tick, and their labels.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// How the range of an axis follows the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Ends at the outermost points.
    Tight,
    /// Leaves space beyond the outermost points.
    Padded,
    /// Ends at ticks, and starts at zero if that wastes little space.
    Round,
}

/// Largest absolute value of an axis; its inverse is the smallest of a logarithmic one. Otherwise quotients
/// overflow.
const MOST: f64 = 1e150;

impl FittedAxis {
    /// Determines the range of `axis` for `values`, with about `count` ticks.
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64>, fit: Fit, count: u32) -> Self {
        let usable = |v: &f64| v.abs() < MOST && (axis.scale == Scale::Linear || *v > 1.0 / MOST);
        let given = axis.range.filter(|(a, b)| usable(a) && usable(b) && a < b);
        let found = values.filter(usable).fold(None, |r: Option<(f64, f64)>, v| {
            Some(r.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        });
        let fit = if given.is_some() { Fit::Tight } else { fit };
        let (low, high) = given.or(found).unwrap_or(match axis.scale {
            Scale::Linear => (0.0, 1.0),
            Scale::Log => (0.1, 10.0),
        });
        match axis.scale {
            Scale::Linear => Self::linear(low, high, fit, count),
            Scale::Log => Self::log(low, high, fit, count),
        }
    }

    /// An axis with a tick at each of 1, 2, 3 and so on, called by its name.
    pub(crate) fn named(names: &[String]) -> Self {
        let ticks = names.iter().enumerate().map(|(n, name)| (n as f64 + 1.0, name.clone())).collect();
        Self { scale: Scale::Linear, low: 0.5, high: names.len() as f64 + 0.5, ticks }
    }

    fn linear(mut low: f64, mut high: f64, fit: Fit, count: u32) -> Self {
        if fit == Fit::Round && low >= 0.0 && low <= 0.6 * high {
            low = 0.0;
        }
        // treat differences from rounding as zero
        if high - low <= 1e-9 * low.abs().max(high.abs()) {
            let around = if low == 0.0 { 1.0 } else { 0.1 * low.abs() };
            (low, high) = (low - around, high + around);
        }
        let span = high - low;
        if fit == Fit::Padded {
            let zero = low >= 0.0 && low < 0.3 * span;
            (low, high) = (if zero { 0.0 } else { low - 0.04 * span }, high + 0.04 * span);
        }
        let (digit, power) = step((high - low) / f64::from(count.max(2)));
        let (digit, size) = (f64::from(digit), decimal(digit.into(), power));
        if fit == Fit::Round {
            low = decimal(libm::floor(low / size + 1e-9) * digit, power);
            high = decimal(libm::ceil(high / size - 1e-9) * digit, power);
        }
        let first = libm::ceil(low / size - 1e-6);
        let last = libm::floor(high / size + 1e-6);
        let n = (last - first).clamp(0.0, 100.0) as u32;
        let tick = |i: u32| decimal((first + f64::from(i)) * digit, power);
        let ticks = (0..=n).map(tick).map(|v| (v, written(v, power)));
        Self { scale: Scale::Linear, low, high, ticks: ticks.collect() }
    }

    fn log(mut low: f64, mut high: f64, fit: Fit, count: u32) -> Self {
        if high / low < 1.0 + 1e-9 {
            (low, high) = (low / 2.0, high * 2.0);
        }
        if fit == Fit::Padded {
            let margin = libm::pow(high / low, 0.05);
            (low, high) = (low / margin, high * margin);
        }
        let from = libm::floor(libm::log10(low) + 1e-9) as i32;
        let to = libm::ceil(libm::log10(high) - 1e-9) as i32;
        if fit == Fit::Round {
            (low, high) = round_log(low, high, from, to);
        }
        let inside = |v: &(f64, String)| v.0 >= low * (1.0 - 1e-9) && v.0 <= high * (1.0 + 1e-9);
        let whole: Vec<(f64, String)> =
            (from..=to).map(|k| (decimal(1.0, k), power_of_ten(1, k))).filter(inside).collect();
        let ticks = if whole.len() < 3 {
            let fine = |k| [1, 2, 5].map(|d: u32| (decimal(d.into(), k), power_of_ten(d, k)));
            (from..=to).flat_map(fine).filter(inside).collect()
        } else {
            let every = whole.len().div_ceil(count.max(2) as usize + 1);
            whole.into_iter().step_by(every).collect()
        };
        Self { scale: Scale::Log, low, high, ticks }
    }

    /// Both ends.
    pub(crate) const fn ends(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Position along the axis, 0 to 1 inside the range; `None` if the axis cannot show the value.
    pub(crate) fn position(&self, v: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (v - self.low) / (self.high - self.low),
            Scale::Log if v > 0.0 => libm::log(v / self.low) / libm::log(self.high / self.low),
            Scale::Log => return None,
        };
        // all positions far outside look the same, and clamping keeps coordinates short
        share.is_finite().then(|| share.clamp(-9.0, 10.0))
    }
}

/// Rounds `low` and `high` outwards to 1-2-5 steps, or to whole decades if there are several.
fn round_log(low: f64, high: f64, from: i32, to: i32) -> (f64, f64) {
    if to - from > 2 {
        return (decimal(1.0, from), decimal(1.0, to));
    }
    let steps: Vec<f64> = (from..=to).flat_map(|k| [1.0, 2.0, 5.0].map(|d| decimal(d, k))).collect();
    let below = steps.iter().rev().find(|s| **s <= low * (1.0 + 1e-9));
    let above = steps.iter().find(|s| **s >= high * (1.0 - 1e-9));
    (below.copied().unwrap_or(low), above.copied().unwrap_or(high))
}

/// Next 1-2-5 step above `raw`, as a digit and a power of ten.
fn step(raw: f64) -> (u32, i32) {
    let power = libm::floor(libm::log10(raw)) as i32;
    let lead = raw / decimal(1.0, power);
    match lead {
        l if l <= 1.0 + 1e-9 => (1, power),
        l if l <= 2.0 + 1e-9 => (2, power),
        l if l <= 5.0 + 1e-9 => (5, power),
        _ => (1, power + 1),
    }
}

/// The whole number `n` x 10^`power`, rounded to the nearest double.
fn decimal(n: f64, power: i32) -> f64 {
    // parsing rounds correctly, multiplying powers does not
    format!("{n:.0}e{power}").parse().unwrap_or(f64::NAN)
}

/// Label of a tick on a linear axis with steps of 10^`power`.
fn written(v: f64, power: i32) -> String {
    if v == 0.0 {
        return "0".to_owned();
    }
    if v.abs() >= 1e6 || power < -4 {
        let exponent = libm::floor(libm::log10(v.abs()) + 1e-9) as i32;
        let digits = usize::try_from((exponent - power).clamp(0, 12)).unwrap_or(0);
        let lead = format!("{:.digits$}", v.abs() / decimal(1.0, exponent));
        let sign = if v < 0.0 { "−" } else { "" };
        return format!("{sign}{lead}×10{}", superscript(exponent));
    }
    let digits = usize::try_from(-power).unwrap_or(0);
    format!("{v:.digits$}").replace('-', "−")
}

/// Label for `digit` x 10^`power`, written out if that is short.
fn power_of_ten(digit: u32, power: i32) -> String {
    match (digit, power) {
        (_, 0..=4) => decimal(digit.into(), power).to_string(),
        (_, -2..=-1) => format!("{:.*}", power.unsigned_abs() as usize, decimal(digit.into(), power)),
        (1, _) => format!("10{}", superscript(power)),
        _ => format!("{digit}×10{}", superscript(power)),
    }
}

fn superscript(power: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |c: char| c.to_digit(10).map_or('⁻', |d| DIGITS[d as usize]);
    power.to_string().chars().map(raised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis, values: &[f64], fit: Fit) -> Vec<String> {
        FittedAxis::new(axis, values.iter().copied(), fit, 5).ticks.into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn even_axes_step_by_1_2_5() {
        let axis = Axis::linear("");
        assert_eq!(texts(&axis, &[0.0, 9.3], Fit::Round), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(texts(&axis, &[0.31, 0.34], Fit::Round), ["0.31", "0.32", "0.33", "0.34"]);
        assert_eq!(texts(&axis, &[-1.0, 1.0], Fit::Round), ["−1.0", "−0.5", "0", "0.5", "1.0"]);
        assert_eq!(texts(&axis, &[0.0, 4e7], Fit::Round)[1], "1×10⁷");
        assert_eq!(texts(&axis, &[2.0, 2.0], Fit::Round).len(), 5);
        assert_eq!(
            texts(&axis, &[f64::NAN, f64::INFINITY], Fit::Round).first().map(String::as_str),
            Some("0")
        );
    }

    #[test]
    fn logarithmic_axes_show_powers_of_ten() {
        let axis = Axis::log("");
        assert_eq!(texts(&axis, &[3e-8, 2e-5], Fit::Round), ["10⁻⁸", "10⁻⁷", "10⁻⁶", "10⁻⁵", "10⁻⁴"]);
        assert_eq!(texts(&axis, &[3.0, 40.0], Fit::Round), ["2", "5", "10", "20", "50"]);
        assert_eq!(texts(&axis, &[0.0, -1.0], Fit::Round), ["0.1", "1", "10"]);
        assert_eq!(texts(&axis, &[1e-30, 1.0], Fit::Round).len(), 6);
    }

    #[test]
    fn a_value_lies_where_it_should() {
        let even = FittedAxis::new(&Axis::linear("").within(10.0, 20.0), [].into_iter(), Fit::Round, 5);
        assert_eq!(
            (even.position(15.0), even.position(f64::NAN), even.position(1e9)),
            (Some(0.5), None, Some(10.0))
        );
        let log = FittedAxis::new(&Axis::log("").within(1.0, 100.0), [].into_iter(), Fit::Round, 5);
        assert!((log.position(10.0).unwrap_or(0.0) - 0.5).abs() < 1e-12);
        assert_eq!((log.position(0.0), log.position(-3.0)), (None, None));
    }

    #[test]
    fn a_range_that_cannot_be_is_not_used() {
        let axis = Axis::log("").within(0.0, 100.0);
        assert_eq!(FittedAxis::new(&axis, [2.0, 5.0].into_iter(), Fit::Tight, 5).position(2.0), Some(0.0));
    }
}
