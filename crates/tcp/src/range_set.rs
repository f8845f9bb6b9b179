//! A set of byte positions as sorted, disjoint, non-touching ranges `[left, right)`.
//!
//! Used by the receiver for out-of-order data, and by the sender for SACKed and copied data.

/// Sorted disjoint ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<(u64, u64)>,
}

impl RangeSet {
    /// Returns the ranges in ascending order.
    #[inline]
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// True if the set is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Returns the range that holds `position`.
    pub fn containing(&self, position: u64) -> Option<(u64, u64)> {
        let i = self.ranges.partition_point(|r| r.1 <= position);
        self.ranges.get(i).copied().filter(|r| r.0 <= position)
    }

    /// True when all of `[left, right)` is in the set.
    pub fn covers(&self, left: u64, right: u64) -> bool {
        left >= right || self.containing(left).is_some_and(|r| r.1 >= right)
    }

    /// Adds `[left, right)`. Returns the range that now holds it.
    pub fn insert(&mut self, left: u64, right: u64) -> (u64, u64) {
        assert!(left < right, "an empty range cannot be inserted");
        // ranges[first..last] touch or overlap the new one
        let first = self.ranges.partition_point(|r| r.1 < left);
        let mut last = first;
        let mut merged = (left, right);
        while let Some(&(l, r)) = self.ranges.get(last)
            && l <= right
        {
            merged = (merged.0.min(l), merged.1.max(r));
            last += 1;
        }
        if first == last {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..last);
        }
        merged
    }

    /// Removes all positions below `floor`.
    #[inline]
    pub fn remove_below(&mut self, floor: u64) {
        if self.ranges.first().is_none_or(|r| r.0 >= floor) {
            return;
        }
        let keep = self.ranges.partition_point(|r| r.1 <= floor);
        self.ranges.drain(..keep);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(floor);
        }
    }

    /// If the set begins at `position`, removes that first range and returns its end.
    #[inline]
    pub fn take_at(&mut self, position: u64) -> Option<u64> {
        let first = *self.ranges.first()?;
        if first.0 > position {
            return None;
        }
        self.ranges.remove(0);
        Some(first.1.max(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compares with a set of single positions: members, ranges sorted and apart.
        #[test]
        fn agrees_with_a_set_of_positions(ops in proptest::collection::vec((0u8..8, 0u64..120, 1u64..25), 1..60)) {
            let mut ours = RangeSet::default();
            let mut model: BTreeSet<u64> = BTreeSet::new();
            for (op, left, len) in ops {
                match op {
                    0 => {
                        ours.remove_below(left);
                        model.retain(|p| *p >= left);
                    }
                    1 => {
                        let first = model.first().copied();
                        let got = ours.take_at(left);
                        match first.filter(|p| *p <= left) {
                            None => prop_assert_eq!(got, None),
                            Some(p) => {
                                let end = (p..p + 200).find(|q| !model.contains(q)).unwrap();
                                prop_assert_eq!(got, Some(end.max(left)));
                                model.retain(|q| *q >= end);
                            }
                        }
                    }
                    _ => {
                        let merged = ours.insert(left, left + len);
                        model.extend(left..left + len);
                        prop_assert!(merged.0 <= left && merged.1 >= left + len);
                        prop_assert!((merged.0..merged.1).all(|p| model.contains(&p)));
                    }
                }
                let members: BTreeSet<u64> = ours.as_slice().iter().flat_map(|r| r.0..r.1).collect();
                prop_assert_eq!(&members, &model);
                prop_assert!(ours.as_slice().windows(2).all(|w| w[0].1 < w[1].0));
                prop_assert_eq!(ours.containing(left).is_some(), model.contains(&left));
                prop_assert_eq!(ours.covers(left, left + 3), (left..left + 3).all(|p| model.contains(&p)));
            }
        }
    }
}
