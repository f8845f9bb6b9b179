//! Instants and durations in whole nanoseconds.
//!
//! `std::time::Instant` cannot be built from a number, so a simulation could not use it. This one counts from
//! the start of the run; a live driver maps the monotonic clock onto it. Range: 584 years.

use core::fmt;
use core::ops::{Div, Mul};

/// A point in time: nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every possible instant: stands for "never" where an `Option` would cost too much.
    pub const NEVER: Self = Self(u64::MAX);

    /// Time elapsed since `earlier`; zero if `earlier` lies in the future.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// Seconds since the run began.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `None` if this is [`Instant::NEVER`].
    #[inline]
    pub const fn as_deadline(self) -> Option<Self> {
        if self.0 == u64::MAX { None } else { Some(self) }
    }
}

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// From whole microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// From whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// From whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// From seconds, rounded to the nearest nanosecond. Negative and non-finite values give zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9 + 0.5) as u64)
    }
    /// As seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// As milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// This span scaled by a factor in `0..`; saturates.
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
    /// True if zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    #[inline]
    fn mul(self, k: u64) -> Self {
        Self(self.0.saturating_mul(k))
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    #[inline]
    fn div(self, k: u64) -> Self {
        Self(self.0 / k)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}

impl fmt::Display for Duration {
    /// Shortest exact form with a unit that the scenario parser reads back: `550 ms`, `0.9 ms`, `500 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0 => (1_000_000_000, "s"),
            ns if ns % 1_000_000_000 == 0 => (1_000_000_000, "s"),
            ns if ns % 1_000 == 0 => (1_000_000, "ms"),
            ns if ns >= 1_000 => (1_000, "us"),
            _ => (1, "ns"),
        };
        write_exact(f, self.0, unit, name)
    }
}

/// Writes `n` in a unit of which it is a multiple of a thousandth, with the decimals it needs.
pub(crate) fn write_exact(f: &mut fmt::Formatter<'_>, n: u64, unit: u64, name: &str) -> fmt::Result {
    let decimals = format!(".{:03}", n % unit * 1000 / unit);
    write!(f, "{}{} {name}", n / unit, decimals.trim_end_matches(['0', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_in_a_unit_that_reads_back() {
        for (ns, text) in [
            (0, "0 s"),
            (550_000_000, "550 ms"),
            (900_000, "0.9 ms"),
            (500_000_000_000, "500 s"),
            (1_500_000, "1.5 ms"),
            (1_234, "1.234 us"),
            (12, "12 ns"),
        ] {
            assert_eq!(Duration(ns).to_string(), text);
        }
    }

    #[test]
    fn never_is_later_than_any_sum() {
        assert_eq!(Instant::NEVER + Duration(1), Instant::NEVER);
        assert_eq!(Instant::NEVER.as_deadline(), None);
        assert_eq!(Instant(5).as_deadline(), Some(Instant(5)));
    }
}
