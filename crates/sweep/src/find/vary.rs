//! The parameter that a search varies: its range, and how its values are written.

use bentpipe_scenario::{Dimension, parse_amount};

/// Ranges of a wider ratio are searched by the logarithm.
const LOG_RATIO: f64 = 100.0;
/// Significant digits of the values tried, less one; a bracket of 0.1 % needs four.
const DIGITS: usize = 5;

/// A parameter and the range in which a value of it is searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    /// Name of the parameter.
    pub name: String,
    /// The smallest value, in `unit`.
    pub low: f64,
    /// The largest value, in `unit`.
    pub high: f64,
    /// Unit of all values; empty for bare numbers.
    pub unit: String,
    dimension: Dimension,
    /// Whole units in which scenario files count, such as bit/s and ns, in one of `unit`.
    scale: f64,
    /// True if only integers are values.
    pub(crate) whole: bool,
}

impl Vary {
    /// A parameter with values from `low` to `high` in `unit`.
    ///
    /// # Errors
    /// The unit is unknown.
    pub fn new(name: impl Into<String>, (low, high): (f64, f64), unit: &str) -> Result<Self, String> {
        let one = parse_amount(&format!("1 {unit}"))?;
        let scale = match one.dimension {
            // amounts of time are in seconds, and files count nanoseconds
            Dimension::Time => (one.value * 1e9).round(),
            _ => one.value,
        };
        let dimension = one.dimension;
        Ok(Self { name: name.into(), low, high, unit: unit.to_owned(), dimension, scale, whole: false })
    }

    /// True if both bounds are integers of something that may be a count.
    pub(crate) fn may_be_whole(&self) -> bool {
        let counts = matches!(self.dimension, Dimension::Pieces | Dimension::Bare);
        counts && [self.low, self.high].iter().all(|v| v.fract() == 0.0 && v.abs() < 1e15)
    }

    /// True if the parameter counts pieces, so that there is nothing between integers.
    pub(crate) fn counts_pieces(&self) -> bool {
        self.dimension == Dimension::Pieces
    }

    /// True if the range is searched by the logarithm. Decibels are logarithms already.
    pub(crate) fn is_log(&self) -> bool {
        self.low > 0.0 && self.high > LOG_RATIO * self.low && self.dimension != Dimension::Decimal("dB")
    }

    /// The coordinate in which the search is linear.
    pub(crate) fn coordinate(&self, value: f64) -> f64 {
        if self.is_log() { libm::log(value) } else { value }
    }

    /// The value at the share `t` of the way from `a` to `b`, in the searched coordinate.
    pub(crate) fn between(&self, a: f64, b: f64, t: f64) -> f64 {
        let (from, to) = (self.coordinate(a), self.coordinate(b));
        let at = from + t * (to - from);
        let value = if self.is_log() { libm::exp(at) } else { at };
        value.clamp(a, b)
    }

    /// The nearest value that a scenario can have and that is short to write.
    pub(crate) fn snap(&self, value: f64) -> f64 {
        if self.whole {
            return value.round();
        }
        let short = format!("{value:.DIGITS$e}").parse().unwrap_or(value);
        match self.dimension {
            Dimension::Rate | Dimension::Time | Dimension::Bytes => (short * self.scale).round() / self.scale,
            _ => short,
        }
    }

    /// Writes a value for a scenario file, exactly.
    pub(crate) fn text(&self, value: f64) -> String {
        let counted = |unit: &str| format!("{:.0} {unit}", (value * self.scale).round());
        match self.dimension {
            Dimension::Rate => counted("bit/s"),
            Dimension::Time => counted("ns"),
            Dimension::Bytes => counted("B"),
            _ => self.shown(value),
        }
    }

    /// Writes a value in the unit of the range.
    pub(crate) fn shown(&self, value: f64) -> String {
        let number = number(value);
        if self.unit.is_empty() { number } else { format!("{number} {}", self.unit) }
    }
}

/// Writes a number so that reading it gives the same one.
pub(crate) fn number(value: f64) -> String {
    let plain = value == 0.0 || (1e-3..1e15).contains(&value.abs());
    if plain { value.to_string() } else { format!("{value:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(low: f64, high: f64, unit: &str) -> Vary {
        Vary::new("x", (low, high), unit).unwrap()
    }

    #[test]
    fn values_are_written_as_files_count_them() {
        for (unit, value, snapped, text) in [
            ("Mbit/s", 1.234_567_89, 1.234_57, "1234570 bit/s"),
            ("ms", 585.123_456, 585.123, "585123000 ns"),
            ("kB", 2.345_678_9, 2.346, "2346 B"),
            ("", 3.162_277_66e-6, 3.162_28e-6, "3.16228e-6"),
            ("dB", -2.5, -2.5, "-2.5 dB"),
        ] {
            let vary = vary(-10.0, 1000.0, unit);
            assert_eq!((vary.snap(value), vary.text(vary.snap(value)).as_str()), (snapped, text));
        }
        let packets = Vary { whole: true, ..vary(1.0, 64.0, "packets") };
        assert_eq!((packets.snap(16.75), packets.text(17.0).as_str()), (17.0, "17 packets"));
        assert!(Vary::new("x", (1.0, 2.0), "parsec").unwrap_err().contains("unknown unit"));
    }

    #[test]
    fn wide_ranges_are_logarithmic() {
        assert!(vary(1e-9, 1e-4, "").is_log() && !vary(1.0, 100.0, "").is_log());
        assert!(!vary(0.0, 1e6, "").is_log() && !vary(0.1, 50.0, "dB").is_log());
        let log = vary(1e-9, 1e-5, "");
        assert!((log.between(1e-9, 1e-5, 0.5) / 1e-7 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn only_bare_numbers_and_pieces_may_be_integers() {
        for (low, high, unit, may) in [
            (1.0, 20.0, "", true),
            (1.0, 20.5, "", false),
            (1.0, 9.0, "packets", true),
            (1.0, 9.0, "s", false),
        ] {
            assert_eq!(vary(low, high, unit).may_be_whole(), may, "{low} {high} {unit}");
        }
    }
}
