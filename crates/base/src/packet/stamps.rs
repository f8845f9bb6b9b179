//! Timestamps, and what each leaves out of the time at which it was taken.
//!
//! They (RFC 7323) count milliseconds here, and a round trip is seldom a whole number of them: of one
//! round more than of the next. Exact fast-forward ([`crate::shift`]) moves a timestamp by the time of many
//! rounds, so it must know where within its millisecond it was taken. Nothing else reads this, and it is in
//! no header: a packet that was parsed has zero.

use crate::time::Instant;

/// The timestamps option (RFC 7323, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The peer's clock value, echoed.
    pub echo: u32,
}

/// Time since the millisecond began, below 1 000 000 ns; three bytes, so that a header has room for two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phase([u8; 3]);

/// The phases of the two timestamps of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Of the sender's clock.
    pub value: Phase,
    /// Of the peer's clock value, echoed.
    pub echo: Phase,
}

impl Phase {
    /// Nanoseconds in a millisecond.
    pub(crate) const MS: u64 = 1_000_000;

    /// Returns where `at` is within its millisecond.
    #[inline]
    pub const fn of(at: Instant) -> Self {
        let [a, b, c, _] = ((at.0 % Self::MS) as u32).to_le_bytes();
        Self([a, b, c])
    }

    /// Returns the nanoseconds since the millisecond began.
    #[inline]
    pub const fn ns(self) -> u32 {
        let Self([a, b, c]) = self;
        u32::from_le_bytes([a, b, c, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_what_a_millisecond_leaves() {
        for (at, ns) in [(0, 0), (999_999, 999_999), (1_000_000, 0), (u64::MAX, 551_615), (7_000_256, 256)] {
            assert_eq!(Phase::of(Instant(at)).ns(), ns);
        }
    }
}
