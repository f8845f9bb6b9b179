//! TCP sequence numbers (RFC 9293, section 3.4).
//!
//! On the wire a sequence number has 32 bits and wraps. Inside the engine a position in a stream is a `u64`
//! that never wraps: offset 0 is the SYN, offset 1 the first byte. Only `Seq::at` and `Seq::offset_near`
//! convert between the two, so no other code has to handle wrap-around.

use core::fmt;

/// A 32-bit sequence number, as in a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// Returns the sequence number of stream position `offset`, where `self` is that of offset 0.
    #[inline]
    #[must_use]
    pub const fn at(self, offset: u64) -> Self {
        Self(self.0.wrapping_add(offset as u32))
    }

    /// Returns the stream position of `seq` that is nearest to `near`, where `self` is that of offset 0.
    ///
    /// Correct if the true position lies within 2^31 of `near`. `None` for a position before the beginning of
    /// the stream (an old duplicate of another connection).
    #[inline]
    pub const fn offset_near(self, seq: Self, near: u64) -> Option<u64> {
        let low = seq.0.wrapping_sub(self.0);
        let delta = low.wrapping_sub(near as u32).cast_signed();
        near.checked_add_signed(delta as i64)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_position_survives_the_wire(iss: u32, near in 0u64..1 << 40, delta in -(1i64 << 31) + 1..1i64 << 31) {
            let iss = Seq(iss);
            if let Some(position) = near.checked_add_signed(delta) {
                prop_assert_eq!(iss.offset_near(iss.at(position), near), Some(position));
            }
        }
    }

    #[test]
    fn before_the_beginning_is_none() {
        assert_eq!(Seq(10).offset_near(Seq(9), 0), None);
        assert_eq!(Seq(10).offset_near(Seq(9), 1 << 32), Some((1 << 32) - 1));
    }
}
