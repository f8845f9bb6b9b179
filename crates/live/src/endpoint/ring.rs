//! Ring buffer for the bytes of a stream: written and not acknowledged, or arrived and not read.
//!
//! The engine only knows ranges. The capacity is a power of two, so a position maps to an index by one AND,
//! and writing beyond a gap costs no more than writing at the end.

/// Bytes `[base, base + capacity)` of a stream. Only bytes that were written may be read.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// Its length is the capacity: a power of two, or 0.
    bytes: Vec<u8>,
    /// First position in the buffer.
    pub(super) base: u64,
}

/// Smallest capacity in bytes, if not 0.
const LEAST: usize = 4096;

impl Ring {
    pub(super) const fn capacity(&self) -> usize {
        self.bytes.len()
    }

    fn place(&self, at: u64) -> usize {
        at as usize & self.bytes.len().saturating_sub(1)
    }

    /// Writes `data` at position `at`, at least `base`. The caller limits `at`, and so the memory.
    pub(super) fn write(&mut self, at: u64, data: &[u8]) {
        assert!(at >= self.base, "a position that was given up is not written again");
        if data.is_empty() {
            return;
        }
        self.reserve((at - self.base) as usize + data.len());
        put(&mut self.bytes, at, data);
    }

    /// Grows the buffer to at least `needed` bytes from the base on.
    pub(super) fn reserve(&mut self, needed: usize) {
        let old = self.bytes.len();
        if needed <= old {
            return;
        }
        let base = self.place(self.base);
        let mut bytes = vec![0; needed.next_power_of_two().max(LEAST)];
        // each byte keeps its position but gets a new index
        let (front, back) = self.bytes.split_at(base);
        put(&mut bytes, self.base, back);
        put(&mut bytes, self.base + back.len() as u64, front);
        self.bytes = bytes;
    }

    /// True if the bytes of `[at, at + len)` are kept.
    pub(super) const fn has(&self, at: u64, len: usize) -> bool {
        at >= self.base && (at - self.base) as usize + len <= self.bytes.len()
    }

    /// Returns the bytes of `[at, at + len)`, in two pieces if they wrap around the end.
    pub(super) fn get(&self, at: u64, len: usize) -> (&[u8], &[u8]) {
        assert!(self.has(at, len), "only what is kept");
        if len == 0 {
            return (&[], &[]);
        }
        let place = self.place(at);
        let first = len.min(self.bytes.len() - place);
        (&self.bytes[place..place + first], &self.bytes[..len - first])
    }

    /// Discards everything below `to`.
    pub(super) fn release(&mut self, to: u64) {
        self.base = self.base.max(to);
    }

    /// Frees the memory and discards the content.
    pub(super) fn free(&mut self) {
        self.bytes = Vec::new();
    }
}

/// Copies `data` to position `at` of the stream that `ring` holds; bytes beyond its end go to its front.
fn put(ring: &mut [u8], at: u64, data: &[u8]) {
    let place = at as usize & (ring.len() - 1);
    let (first, rest) = data.split_at(data.len().min(ring.len() - place));
    ring[place..place + first.len()].copy_from_slice(first);
    ring[..rest.len()].copy_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a vector that keeps the whole stream.
        #[test]
        fn bytes_are_where_they_were_put(
            steps in proptest::collection::vec((0usize..9000, 0usize..5000, any::<u8>(), 0usize..6000), 1..40),
        ) {
            let mut ring = Ring::default();
            let mut stream = vec![0u8; 1 << 20];
            let (mut base, mut end) = (0usize, 0usize);
            for (gap, len, fill, release) in steps {
                let data: Vec<u8> = (0..len).map(|i| fill.wrapping_add(i as u8)).collect();
                ring.write((base + gap) as u64, &data);
                stream[base + gap..base + gap + len].copy_from_slice(&data);
                if len > 0 {
                    end = end.max(base + gap + len);
                }
                let (a, b) = ring.get(base as u64, end - base);
                let held: Vec<u8> = a.iter().chain(b).copied().collect();
                // a gap may hold old bytes: only the written ones count
                prop_assert_eq!(&held[gap.min(held.len())..(gap + len).min(held.len())], &data[..]);
                base = (base + release).min(end);
                ring.release(base as u64);
                prop_assert!(ring.capacity() <= ((9000 + 5000 + 6000usize) * 2).next_power_of_two());
            }
        }

        #[test]
        fn growing_keeps_everything(start in 0u64..100_000, lens in proptest::collection::vec(1usize..3000, 1..12)) {
            let mut ring = Ring::default();
            ring.release(start);
            let mut at = start;
            let mut all = Vec::new();
            for len in lens {
                let data: Vec<u8> = (0..len).map(|i| (at as usize + i) as u8 ^ 0x5a).collect();
                ring.write(at, &data);
                all.extend(data);
                at += len as u64;
                let (a, b) = ring.get(start, all.len());
                prop_assert_eq!([a, b].concat(), all.clone());
            }
        }
    }

    #[test]
    fn nothing_has_no_bytes() {
        let ring = Ring::default();
        assert_eq!((ring.get(0, 0), ring.capacity()), ((&[][..], &[][..]), 0));
    }
}
