//! Finds entries by the hash of their key: open addressing with linear probing (Knuth, TAOCP 3, section 6.4,
//! algorithm L).
//!
//! A slot holds the entry's number and 32 bits of its hash (8 bytes), and at most half of the slots are used,
//! so a look-up rarely touches more than one cache line before the entry itself. Removing moves later members
//! of a run back (algorithm R), so there are no tombstones, and a table is as fast after a flood as a new
//! one. The size is fixed by the limits: nothing grows under attack. The index is never iterated, so results
//! cannot depend on its order.

/// Entry numbers by hash.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Hash in the upper half, number plus one in the lower; 0 if free.
    places: Vec<u64>,
    len: usize,
}

const fn tag(hash: u64) -> u64 {
    hash >> 32
}

impl Index {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { places: vec![0; (capacity.max(8) * 2).next_power_of_two()], len: 0 }
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.places.len() / 2
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn footprint(&self) -> usize {
        self.places.capacity() * size_of::<u64>()
    }

    #[inline]
    const fn home(&self, tag: u64) -> usize {
        tag as usize & (self.places.len() - 1)
    }

    #[inline]
    const fn after(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    /// The slot of the entry with this hash for which `is_it` is true, or the free one that ends its run.
    #[inline]
    fn seek(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> usize {
        let mut at = self.home(tag(hash));
        loop {
            let place = self.places[at];
            if place == 0 || (place >> 32 == tag(hash) && is_it(place as u32 - 1)) {
                return at;
            }
            at = self.after(at);
        }
    }

    /// Returns the entry with this hash for which `is_it` is true.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let place = self.places[self.seek(hash, is_it)];
        (place != 0).then(|| place as u32 - 1)
    }

    pub(crate) fn insert(&mut self, hash: u64, id: u32) {
        assert!(
            self.len < self.capacity() && id < u32::MAX,
            "the index has room for as many entries as may be"
        );
        let at = self.seek(hash, |_| false);
        self.places[at] = tag(hash) << 32 | u64::from(id + 1);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, hash: u64, id: u32) {
        let mut hole = self.seek(hash, |other| other == id);
        assert!(self.places[hole] != 0, "an entry is in the index as long as it lives");
        self.len -= 1;
        let mut at = self.after(hole);
        while self.places[at] != 0 {
            // may move back if its home slot is not cyclically between the hole and its slot
            let mask = self.places.len() - 1;
            let from_home = at.wrapping_sub(self.home(self.places[at] >> 32)) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.places[hole] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Compares with a map. Few hash values make runs long and let them wrap around.
        #[test]
        fn agrees_with_a_map(ops in proptest::collection::vec((any::<bool>(), 0u64..24), 1..300)) {
            let mut index = Index::new(8);
            let mut oracle: BTreeMap<u64, u32> = BTreeMap::new();
            // two keys share each tag, and home slots crowd around the end of the table
            let hash = |key: u64| ((key / 2) % 12 + 10) << 32;
            for (i, (insert, key)) in ops.into_iter().enumerate() {
                let id = i as u32 * 100 + key as u32;
                let found = index.find(hash(key), |id| u64::from(id % 100) == key);
                prop_assert_eq!(found, oracle.get(&key).copied());
                match found {
                    Some(id) if !insert => {
                        index.remove(hash(key), id);
                        oracle.remove(&key);
                    }
                    None if insert && oracle.len() < index.capacity() => {
                        index.insert(hash(key), id);
                        oracle.insert(key, id);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.len(), oracle.len());
                for (key, id) in &oracle {
                    prop_assert_eq!(index.find(hash(*key), |id| u64::from(id % 100) == *key), Some(*id));
                }
            }
        }
    }
}
