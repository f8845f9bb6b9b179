//! SipHash-1-3: a keyed hash for table indices (Aumasson & Bernstein, "SipHash: a fast short-input PRF",
//! 2012; the 1-3 variant is the one the hash tables of Rust, Python and Ruby use).
//!
//! Without a keyed hash, an attacker who chooses addresses and ports could put all connections into one run
//! of the table and make every look-up slow. With a secret 128-bit key nobody outside can find such a set.
//! The key comes from the driver's random streams: equal seeds give equal tables, so simulations are
//! reproducible; a live driver must seed its world with random bits from the system. Deviation: the input is
//! always two 64-bit words, the second with the length in its upper byte as in the paper's padding.

/// The secret key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HashKey(pub(crate) u64, pub(crate) u64);

const fn round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    [a, b, c, d]
}

impl HashKey {
    /// Hashes 8 + `rest` bytes, `rest` < 8; the upper byte of `last` must be zero.
    #[inline]
    pub(crate) const fn hash(self, first: u64, last: u64, rest: u8) -> u64 {
        debug_assert!(last >> 56 == 0 && rest < 8, "a block of its own begins after 7 bytes");
        let last = last | (8 + rest as u64) << 56;
        let mut v = [
            self.0 ^ 0x736f_6d65_7073_6575,
            self.1 ^ 0x646f_7261_6e64_6f6d,
            self.0 ^ 0x6c79_6765_6e65_7261,
            self.1 ^ 0x7465_6462_7974_6573,
        ];
        v[3] ^= first;
        v = round(v);
        v[0] ^= first;
        v[3] ^= last;
        v = round(v);
        v[0] ^= last;
        v[2] ^= 0xff;
        v = round(round(round(v)));
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(deprecated, reason = "the only SipHash-2-4 at hand; its rounds are the same")]
    fn the_round_is_that_of_the_paper() {
        // SipHash-2-4 built from the same round, compared with that of std
        use std::hash::{Hasher, SipHasher};
        let key = HashKey(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        for (first, last) in [(0, 0), (1, 2), (u64::MAX, 0xffff_ffff), (0x1234_5678_9abc_def0, 77)] {
            let mut theirs = SipHasher::new_with_keys(key.0, key.1);
            theirs.write(&u64::to_le_bytes(first));
            theirs.write(&u32::to_le_bytes(last));
            let last = u64::from(last) | 12 << 56;
            let mut v = [
                key.0 ^ 0x736f_6d65_7073_6575,
                key.1 ^ 0x646f_7261_6e64_6f6d,
                key.0 ^ 0x6c79_6765_6e65_7261,
                key.1 ^ 0x7465_6462_7974_6573,
            ];
            for word in [first, last] {
                v[3] ^= word;
                v = round(round(v));
                v[0] ^= word;
            }
            v[2] ^= 0xff;
            v = round(round(round(round(v))));
            assert_eq!(v[0] ^ v[1] ^ v[2] ^ v[3], theirs.finish());
        }
    }

    #[test]
    fn agrees_with_the_hasher_of_std() {
        // std's DefaultHasher is SipHash-1-3 with key 0
        use std::hash::Hasher;
        let mut theirs = std::collections::hash_map::DefaultHasher::new();
        theirs.write(&42u64.to_le_bytes());
        theirs.write(&7u32.to_le_bytes());
        assert_eq!(HashKey(0, 0).hash(42, 7, 4), theirs.finish());
    }

    #[test]
    fn the_key_decides() {
        assert_ne!(HashKey(1, 2).hash(3, 4, 4), HashKey(1, 3).hash(3, 4, 4));
        assert_ne!(HashKey(1, 2).hash(3, 4, 4), HashKey(2, 2).hash(3, 4, 4));
    }
}
