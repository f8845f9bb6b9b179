//! Ranges of the stream that the receiver holds beyond a hole (RFC 2018): sorted and disjoint.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds `[start, end)` and returns the parts that are new.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut new = Vec::new();
        if start >= end {
            return new;
        }
        let first = self.0.partition_point(|r| r.1 < start);
        let last = first + self.0[first..].partition_point(|r| r.0 <= end);
        let (mut at, mut whole) = (start, (start, end));
        for &(left, right) in &self.0[first..last] {
            if at < left {
                new.push((at, left));
            }
            at = at.max(right);
            whole = (whole.0.min(left), whole.1.max(right));
        }
        if at < end {
            new.push((at, end));
        }
        if !new.is_empty() {
            self.0.splice(first..last, [whole]);
        }
        new
    }

    pub(crate) fn drop_before(&mut self, at: u64) {
        if self.0.first().is_none_or(|r| r.0 >= at) {
            return;
        }
        self.0.retain(|r| r.1 > at);
        if let Some(first) = self.0.first_mut() {
            first.0 = first.0.max(at);
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compares with a set of positions.
        #[test]
        fn agrees_with_a_set(ops in proptest::collection::vec((0u64..60, 0u64..12, 0u8..8), 1..60)) {
            let (mut ours, mut oracle) = (Ranges::default(), BTreeSet::new());
            for (start, len, what) in ops {
                if what == 0 {
                    ours.drop_before(start);
                    oracle.retain(|p| *p >= start);
                } else {
                    let new: Vec<u64> = ours.insert(start, start + len).into_iter().flat_map(|r| r.0..r.1).collect();
                    let expected: Vec<u64> = (start..start + len).filter(|p| oracle.insert(*p)).collect();
                    prop_assert_eq!(new, expected);
                }
                let all: Vec<u64> = ours.0.iter().flat_map(|r| r.0..r.1).collect();
                prop_assert_eq!(all, oracle.iter().copied().collect::<Vec<_>>());
                prop_assert!(ours.0.windows(2).all(|w| w[0].1 < w[1].0));
                prop_assert_eq!(ours.is_empty(), oracle.is_empty());
            }
        }
    }
}
