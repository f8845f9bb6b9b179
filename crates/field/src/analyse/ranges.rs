//! A set of byte offsets, stored as disjoint ranges.

use std::collections::BTreeMap;

/// Set of byte offsets.
#[derive(Clone, Debug, Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds `begin..end` and returns the parts that were not in the set, in order.
    pub fn add(&mut self, begin: u64, end: u64) -> Vec<(u64, u64)> {
        if begin >= end {
            return Vec::new();
        }
        let (mut new, mut at) = (Vec::new(), begin);
        let (mut from, mut to) = (begin, end);
        let before = self.0.range(..begin).next_back().filter(|r| *r.1 >= begin).map(|r| *r.0);
        let keys: Vec<u64> = before.into_iter().chain(self.0.range(begin..=end).map(|r| *r.0)).collect();
        for key in keys {
            let Some(stop) = self.0.remove(&key) else { continue };
            if key > at {
                new.push((at, key.min(end)));
            }
            at = at.max(stop);
            (from, to) = (from.min(key), to.max(stop));
        }
        if at < end {
            new.push((at, end));
        }
        self.0.insert(from, to);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_in_parts() {
        let mut set = Ranges::default();
        assert_eq!(set.add(10, 20), [(10, 20)]);
        assert_eq!(set.add(30, 40), [(30, 40)]);
        assert_eq!(set.add(5, 45), [(5, 10), (20, 30), (40, 45)]);
        assert_eq!(set.add(5, 45), []);
        assert_eq!(set.add(45, 45), []);
        assert_eq!(set.add(0, 5), [(0, 5)]);
        assert_eq!(set.0, BTreeMap::from([(0, 45)]));
    }
}
