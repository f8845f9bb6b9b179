//! A 4-ary heap of wake-ups in a total order, for the far future.
//!
//! The smallest of four children is found without a branch, because a branch would be unpredictable.

use crate::events::Key;

/// Wake-ups by key.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    keys: Vec<Key>,
}

impl Heap {
    #[inline]
    pub(crate) fn first(&self) -> Option<Key> {
        self.keys.first().copied()
    }

    /// All wake-ups, in no order.
    pub(crate) const fn as_slice(&self) -> &[Key] {
        self.keys.as_slice()
    }

    pub(crate) fn push(&mut self, key: Key) {
        self.keys.push(key);
        let mut at = self.keys.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.keys[parent].is_before(key) {
                break;
            }
            self.keys[at] = self.keys[parent];
            at = parent;
        }
        self.keys[at] = key;
    }

    pub(crate) fn pop(&mut self) -> Option<Key> {
        let key = self.keys.pop()?;
        let Some(first) = self.keys.first().copied() else { return Some(key) };
        self.sift_down(key);
        Some(first)
    }

    /// Moves `key` down from the root, which is empty.
    fn sift_down(&mut self, key: Key) {
        let keys = self.keys.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * 4 + 1;
            let least = if let Some(&[a, b, c, d]) = keys.get(first..first + 4) {
                let (ab, i) = if b.is_before(a) { (b, 1) } else { (a, 0) };
                let (cd, j) = if d.is_before(c) { (d, 3) } else { (c, 2) };
                first + if cd.is_before(ab) { j } else { i }
            } else {
                match (first..keys.len()).min_by_key(|i| keys[*i]) {
                    Some(least) => least,
                    None => break,
                }
            };
            if keys[least] >= key {
                break;
            }
            keys[at] = keys[least];
            at = least;
        }
        keys[at] = key;
    }
}
