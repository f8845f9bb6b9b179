//! Quantities as types, so that every number has a unit.

use crate::time::{Duration, Instant, write_exact};
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A rate in bit/s, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// A probability in 0..=1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

/// A differentiated-services code point, 0..=63 (RFC 2474).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

impl Rate {
    /// From bit/s. `None` for zero: a link that carries nothing is an outage, not a rate.
    pub const fn from_bps(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }
    /// In bit/s.
    pub const fn bps(self) -> u64 {
        self.0
    }
    /// Time to serialise `size` at this rate, rounded up to the nanosecond.
    pub fn time_for(self, size: Size) -> Duration {
        let ns = (u128::from(size.0) * 8_000_000_000).div_ceil(u128::from(self.0));
        Duration(u64::try_from(ns).unwrap_or(u64::MAX))
    }
    /// Bytes carried in `time`, rounded down; saturates.
    pub fn bytes_in(self, time: Duration) -> Size {
        let bytes = u128::from(self.0) * u128::from(time.0) / 8_000_000_000;
        Size(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Size {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// The largest size, used as "no limit".
    pub const MAX: Self = Self(u64::MAX);

    /// Bits in this many bytes; saturates.
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }
}

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);
    /// Always.
    pub const ONE: Self = Self(1.0);

    /// `None` unless `0 <= p <= 1`.
    pub fn new(p: f64) -> Option<Self> {
        (0.0..=1.0).contains(&p).then_some(Self(p))
    }
    /// The bare number.
    pub const fn get(self) -> f64 {
        self.0
    }
    /// True if zero.
    pub fn is_zero(self) -> bool {
        self.0 <= 0.0
    }
}

impl Dscp {
    /// Default forwarding (RFC 2474).
    pub const DEFAULT: Self = Self(0);
    /// Lower effort (RFC 8622).
    pub const LE: Self = Self(1);

    /// `None` above 63.
    pub const fn new(v: u8) -> Option<Self> {
        if v < 64 { Some(Self(v)) } else { None }
    }
    /// The code point.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Sums, which saturate.
macro_rules! sums {
    ($($whole:ident + $part:ident),+) => {$(
        impl Add<$part> for $whole {
            type Output = Self;
            #[inline]
            fn add(self, part: $part) -> Self {
                Self(self.0.saturating_add(part.0))
            }
        }
        impl AddAssign<$part> for $whole {
            #[inline]
            fn add_assign(&mut self, part: $part) {
                *self = *self + part;
            }
        }
    )+};
}
sums!(Instant + Duration, Duration + Duration, Size + Size);

/// Differences.
macro_rules! differences {
    ($($kind:ident),+) => {$(
        impl $kind {
            /// Difference, or zero.
            #[inline]
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
        impl Sub for $kind {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
    )+};
}
differences!(Duration, Size);

/// Writes `n` exactly, in the largest unit of `units` that needs at most three decimals. The last one is 1.
fn scaled(f: &mut fmt::Formatter<'_>, n: u64, units: [(u64, &str); 4]) -> fmt::Result {
    let fits = |(unit, _): &(u64, &str)| n >= *unit && (n % unit * 1000).is_multiple_of(*unit);
    let (unit, name) = units.into_iter().find(fits).unwrap_or(units[3]);
    write_exact(f, n, unit, name)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")];
        scaled(f, self.0, units)
    }
}
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 != 0 && self.0.is_multiple_of(1024) {
            return scaled(f, self.0, [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")]);
        }
        write!(f, "{} B", self.0)
    }
}
impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 != 0.0 && self.0 < 1e-3 { write!(f, "{:e}", self.0) } else { write!(f, "{}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_bytes_are_inverse() {
        let t1 = Rate::from_bps(1_544_000).unwrap();
        assert_eq!(t1.time_for(Size(1040)), Duration(5_388_602)); // 8320 bit / 1.544 Mbit/s, rounded up
        assert_eq!(t1.bytes_in(t1.time_for(Size(1040))), Size(1040));
        assert_eq!(Rate::from_bps(0), None);
    }

    #[test]
    fn quantities_print_exactly() {
        assert_eq!(Rate::from_bps(1_544_000).unwrap().to_string(), "1.544 Mbit/s");
        assert_eq!(Rate::from_bps(24_000_000).unwrap().to_string(), "24 Mbit/s");
        assert_eq!(Rate::from_bps(1_234_567_891).unwrap().to_string(), "1234567.891 kbit/s");
        assert_eq!(Size(102 * 1024).to_string(), "102 KiB");
        assert_eq!(Size(50_000).to_string(), "50000 B");
        assert_eq!(Probability::new(1e-4).unwrap().to_string(), "1e-4");
        assert_eq!(Probability::new(0.25).unwrap().to_string(), "0.25");
    }

    #[test]
    fn impossible_values_are_refused() {
        assert_eq!(Probability::new(1.5), None);
        assert_eq!(Probability::new(f64::NAN), None);
        assert_eq!(Dscp::new(64), None);
    }
}
