//! Wake-ups while there are few of them: one sorted array.
//!
//! A new wake-up is mostly later than those of other links and earlier than the timers of hosts, so it finds its
//! place after a few comparisons; the next one is the last element.

use crate::heap::{Key, Owner};
use crate::time::Instant;
use core::cell::Cell;

/// Most wake-ups kept here; a power of two.
pub(crate) const MOST: usize = 64;

/// A wake-up; `number` orders those due at the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Instant,
    pub(crate) number: u64,
    pub(crate) owner: Owner,
}

impl Entry {
    /// The wake-up as it is in the ring and in the heap.
    pub(crate) const fn keyed(&self) -> (Key, Owner) {
        ((self.at.0 as u128) << 64 | self.number as u128, self.owner)
    }
}

/// At most [`MOST`] wake-ups, the latest first.
#[derive(Debug)]
pub(crate) struct Few {
    entries: Box<[Entry; MOST]>,
    len: usize,
}

impl Default for Few {
    fn default() -> Self {
        let entry = Entry { at: Instant::NEVER, number: 0, owner: Owner::default() };
        Self { entries: Box::new([entry; MOST]), len: 0 }
    }
}

impl Few {
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The wake-ups, the latest first.
    pub(crate) fn as_slice(&self) -> &[Entry] {
        &self.entries[..self.len]
    }

    /// Adds a wake-up; returns false if there is no room.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `EventQueue::push`")]
    pub(crate) fn push(&mut self, entry: Entry) -> bool {
        let Some(places) = self.entries.get_mut(..=self.len) else { return false };
        self.len += 1;
        // pairs of cells, so that no place is checked to be within the array
        let places = Cell::from_mut(places).as_slice_of_cells();
        for pair in places.windows(2).rev() {
            let before = pair[0].get();
            if before.at > entry.at || (before.at == entry.at && before.number > entry.number) {
                pair[1].set(entry);
                return true;
            }
            pair[1].set(before);
        }
        places[0].set(entry);
        true
    }

    /// Takes the earliest wake-up if it is due at or before `limit`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `EventQueue::push`")]
    pub(crate) fn pop_until(&mut self, limit: Instant) -> Option<(Instant, Owner)> {
        let last = self.len.checked_sub(1)?;
        let Entry { at, owner, .. } = self.entries[last % MOST];
        if at > limit {
            return None;
        }
        self.len = last;
        Some((at, owner))
    }

    /// Takes all wake-ups, the latest first.
    pub(crate) fn take(&mut self) -> Vec<Entry> {
        let all = self.as_slice().to_vec();
        self.len = 0;
        all
    }
}
