//! The Internet checksum: ones'-complement sums (RFC 1071) and their incremental update (RFC 1624).

use crate::layout::AddressPair;

/// A ones'-complement sum of 16-bit words, folded to 16 bits only on demand.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Sum(u64);

impl Sum {
    /// The empty sum.
    pub const ZERO: Self = Self(0);

    /// The sum of `bytes`, an odd last byte padded with a zero.
    pub fn of(bytes: &[u8]) -> Self {
        Self::ZERO.bytes(bytes)
    }

    /// Adds `bytes`, which must start at an even position; an odd last byte is padded with a zero.
    ///
    /// 32-bit words give the same folded sum as 16-bit ones: 2^16 is 1 in ones'-complement arithmetic.
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<4>();
        let sum: u64 = words.iter().map(|w| u64::from(u32::from_be_bytes(*w))).sum();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(self.0 + sum + u64::from(u32::from_be_bytes(last)))
    }

    /// Adds a 16-bit word.
    pub const fn word(self, word: u16) -> Self {
        Self(self.0 + word as u64)
    }

    /// The sum folded to 16 bits, with end-around carry.
    pub const fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum field for bytes with this sum.
    pub const fn finish(self) -> u16 {
        !self.fold()
    }

    /// Returns the sum after words with the sum `old` were replaced by words with the sum `new`.
    ///
    /// In ones'-complement arithmetic `-x` is `!x`, so equation 3 of RFC 1624 on a checksum field is
    /// `!(!field - old + new)`. Zero has two representations, 0 and 0xffff; unless all of the data is zero,
    /// the result has the same one as a sum from scratch.
    pub const fn replace(self, old: Self, new: Self) -> Self {
        Self(self.fold() as u64 + !old.fold() as u64 + new.fold() as u64)
    }
}

/// The sum of the pseudo-header of TCP or UDP (RFC 9293, section 3.1; RFC 8200, section 8.1). `len` counts
/// the transport header and the payload.
pub fn pseudo_header(ends: &AddressPair, protocol: u8, len: usize) -> Sum {
    let addresses = match ends {
        AddressPair::V4 { src, dst } => Sum::of(&src.octets()).bytes(&dst.octets()),
        AddressPair::V6 { src, dst } => Sum::of(&src.octets()).bytes(&dst.octets()),
    };
    addresses.word(u16::from(protocol)).bytes(&(len as u32).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071, section 4.1, word by word.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(Sum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).fold(), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // section 4: the header word 0x5555 becomes 0x3285, the checksum 0xdd2f becomes 0x0000 (not 0xffff)
        let sum = Sum::ZERO.word(!0xdd2f).replace(Sum::ZERO.word(0x5555), Sum::ZERO.word(0x3285));
        assert_eq!(sum.finish(), 0);
    }

    #[test]
    fn carries_go_round_until_none_is_left() {
        assert_eq!(Sum(0xffff_ffff_ffff).fold(), 0xffff);
        assert_eq!(Sum(0x0001_ffff).fold(), 1);
        assert_eq!(Sum::of(&[0xff; 4096]).fold(), 0xffff);
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_sum(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(Sum::of(&bytes).fold(), plain(&bytes));
        }

        #[test]
        fn an_update_equals_a_fresh_sum(
            mut bytes in proptest::collection::vec(any::<u8>(), 4..60), at in 0usize..30, new: [u8; 2],
        ) {
            bytes[0] = 0x45; // not all zero, as in every header
            let at = 2 + at * 2 % (bytes.len() - 2) / 2 * 2;
            let at = at.min((bytes.len() - 2) / 2 * 2);
            prop_assume!(at >= 2);
            let before = Sum::of(&bytes);
            let old = Sum::of(&bytes[at..at + 2]);
            bytes[at..at + 2].copy_from_slice(&new);
            prop_assert_eq!(before.replace(old, Sum::of(&new)).finish(), Sum::of(&bytes).finish());
        }
    }
}
