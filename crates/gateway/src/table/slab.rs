//! Values with small integer handles, stored in chunks: growing moves nothing, so no packet waits while a
//! whole table is copied.

/// Values per chunk.
pub(super) const CHUNK: usize = 1024;
/// No handle.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Debug)]
enum Entry<T> {
    Taken(T),
    /// The next free entry.
    Free(u32),
}

/// Values by handle; handles of removed values are reused.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<Entry<T>>>,
    free: u32,
    len: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), free: NONE, len: 0 }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        if let Some(entry) = self.entry_mut(self.free)
            && let Entry::Free(next) = *entry
        {
            *entry = Entry::Taken(value);
            return core::mem::replace(&mut self.free, next);
        }
        if self.chunks.last().is_none_or(|c| c.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let chunk = self.chunks.len() - 1;
        let last = &mut self.chunks[chunk];
        last.push(Entry::Taken(value));
        (chunk * CHUNK + last.len() - 1) as u32
    }

    #[inline]
    fn entry_mut(&mut self, id: u32) -> Option<&mut Entry<T>> {
        self.chunks.get_mut(id as usize / CHUNK)?.get_mut(id as usize % CHUNK)
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        match self.chunks.get(id as usize / CHUNK)?.get(id as usize % CHUNK)? {
            Entry::Taken(value) => Some(value),
            Entry::Free(_) => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        match self.entry_mut(id)? {
            Entry::Taken(value) => Some(value),
            Entry::Free(_) => None,
        }
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let next = self.free;
        let entry = self.entry_mut(id)?;
        if matches!(entry, Entry::Free(_)) {
            return None;
        }
        let Entry::Taken(value) = core::mem::replace(entry, Entry::Free(next)) else { return None };
        self.free = id;
        self.len -= 1;
        Some(value)
    }

    /// Handles in use from `from` on, ascending.
    pub(crate) fn ids(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len()) as u32;
        (from..end).filter(|id| self.get(*id).is_some())
    }

    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    pub(crate) const fn footprint(&self) -> usize {
        self.chunks.len() * CHUNK * size_of::<Entry<T>>()
            + self.chunks.capacity() * size_of::<Vec<Entry<T>>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn agrees_with_a_map(ops in proptest::collection::vec((0u8..3, 0u32..40), 1..200)) {
            let mut slab = Slab::default();
            let mut oracle = BTreeMap::new();
            for (op, n) in ops {
                if op < 2 {
                    let id = slab.insert(n);
                    prop_assert!(oracle.insert(id, n).is_none());
                } else {
                    prop_assert_eq!(slab.remove(n), oracle.remove(&n));
                }
                prop_assert_eq!(slab.ids(0).collect::<Vec<_>>(), oracle.keys().copied().collect::<Vec<_>>());
                prop_assert!(oracle.iter().all(|(id, n)| slab.get(*id) == Some(n)));
                prop_assert_eq!(slab.len() as usize, oracle.len());
            }
        }
    }

    #[test]
    fn chunks_are_filled_one_after_the_other() {
        let mut slab = Slab::default();
        for n in 0..3 * CHUNK as u32 {
            assert_eq!(slab.insert(n), n);
        }
        assert_eq!(slab.remove(NONE), None);
        assert_eq!(slab.remove(1500), Some(1500));
        assert_eq!((slab.insert(7), slab.get(1500).copied(), slab.chunks.len()), (1500, Some(7), 3));
        assert!(slab.footprint() >= 3 * CHUNK * size_of::<u64>());
    }
}
