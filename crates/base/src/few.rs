//! Wake-ups while there are few of them: one sorted array.
//!
//! A new wake-up is mostly later than those of other links and earlier than the timers of hosts, so it finds
//! its place after a few comparisons; the next one is the last element.

use crate::events::Key;
use core::cell::Cell;

/// Most wake-ups kept here; a power of two.
pub(crate) const MOST: usize = 64;

/// At most [`MOST`] wake-ups, the latest first.
#[derive(Debug)]
pub(crate) struct Few {
    keys: Box<[Key; MOST]>,
    len: usize,
}

impl Default for Few {
    fn default() -> Self {
        Self { keys: Box::new([Key::default(); MOST]), len: 0 }
    }
}

impl Few {
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The wake-ups, the latest first.
    pub(crate) fn as_slice(&self) -> &[Key] {
        &self.keys[..self.len]
    }

    /// Adds a wake-up; returns false if there is no room.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `EventQueue::push`")]
    pub(crate) fn push(&mut self, key: Key) -> bool {
        let Some(places) = self.keys.get_mut(..=self.len) else { return false };
        self.len += 1;
        // pairs of cells, so that no place is checked to be within the array
        let places = Cell::from_mut(places).as_slice_of_cells();
        for pair in places.windows(2).rev() {
            let before = pair[0].get();
            if !before.is_before(key) {
                pair[1].set(key);
                return true;
            }
            pair[1].set(before);
        }
        places[0].set(key);
        true
    }

    /// Takes the earliest wake-up up to `limit`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `EventQueue::push`")]
    pub(crate) fn pop_until(&mut self, limit: Key) -> Option<Key> {
        let last = self.len.checked_sub(1)?;
        let key = self.keys[last % MOST];
        if limit.is_before(key) {
            return None;
        }
        self.len = last;
        Some(key)
    }

    /// Takes all wake-ups, the latest first.
    pub(crate) fn take(&mut self) -> Vec<Key> {
        let all = self.as_slice().to_vec();
        self.len = 0;
        all
    }
}
