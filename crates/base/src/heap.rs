//! A 4-ary heap of wake-ups in a total order, for the far future.
//!
//! Keys are stored apart from owners, so that four children share a cache line. The smallest of four is found
//! without a branch, because a branch would be unpredictable.

use crate::ids::{NodeId, Slot};

/// Time in the upper half, number of the insertion in the lower, so that one comparison orders two wake-ups.
pub(crate) type Key = u128;
/// The node and timer to wake.
pub(crate) type Owner = (NodeId, Slot);

/// Wake-ups by key.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    keys: Vec<Key>,
    owners: Vec<Owner>,
}

impl Heap {
    #[inline]
    pub(crate) fn first(&self) -> Option<Key> {
        self.keys.first().copied()
    }

    pub(crate) const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Calls `each` with every wake-up, in no order.
    pub(crate) fn each(&self, each: &mut impl FnMut(Key, Owner)) {
        self.keys.iter().zip(&self.owners).for_each(|(key, owner)| each(*key, *owner));
    }

    pub(crate) fn push(&mut self, key: Key, owner: Owner) {
        self.keys.push(key);
        self.owners.push(owner);
        let mut at = self.keys.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.keys[parent] < key {
                break;
            }
            self.keys[at] = self.keys[parent];
            self.owners[at] = self.owners[parent];
            at = parent;
        }
        self.keys[at] = key;
        self.owners[at] = owner;
    }

    pub(crate) fn pop(&mut self) -> Option<(Key, Owner)> {
        let (key, owner) = (self.keys.pop()?, self.owners.pop()?);
        let (Some(first), Some(first_owner)) = (self.keys.first(), self.owners.first()) else {
            return Some((key, owner));
        };
        let taken = (*first, *first_owner);
        self.sift_down(key, owner);
        Some(taken)
    }

    /// Moves `key` down from the root, which is empty.
    fn sift_down(&mut self, key: Key, owner: Owner) {
        let keys = self.keys.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * 4 + 1;
            let least = if let Some(&[a, b, c, d]) = keys.get(first..first + 4) {
                let (ab, i) = if b < a { (b, 1) } else { (a, 0) };
                let (cd, j) = if d < c { (d, 3) } else { (c, 2) };
                first + if cd < ab { j } else { i }
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
            self.owners[at] = self.owners[least];
            at = least;
        }
        keys[at] = key;
        self.owners[at] = owner;
    }
}
