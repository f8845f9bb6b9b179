//! Max-min fair division of a capacity.
//!
//! Source: Bertsekas and Gallager, Data Networks (2nd edition), section 6.5.2. A member with weight w and
//! limit l gets min(l, w * level); the level is the highest at which the sum does not exceed the capacity:
//! who needs less than the others' share gets what it needs, and the rest is divided among the others.
//! The members are visited in the order of l / w. The one visited gets min(l, left * w / weights left), which
//! is final, because all later ones need at least as much per weight.
//! Rates are whole bit/s, rounded down, so the sum never exceeds the capacity.
//! [`shares`] divides among few members of any weight. [`Limits`] holds many members of equal weight: members
//! with the same limit are one entry, so that the level costs a visit of the limits below it.

use std::collections::BTreeMap;

/// A member with a weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// More than 0.
    pub(crate) weight: f64,
    /// The most it can use, bit/s.
    pub(crate) limit: u64,
}

/// Returns the share of each member, bit/s.
pub(crate) fn shares(capacity: u64, members: &[Member]) -> Vec<u64> {
    let need = |i: &usize| members[*i].limit as f64 / members[*i].weight;
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by(|a, b| need(a).total_cmp(&need(b)));
    let mut left = capacity;
    let mut shares = vec![0; members.len()];
    for (visited, i) in order.iter().enumerate() {
        // summed anew each time: differences would gather rounding errors
        let weights: f64 = order[visited..].iter().map(|other| members[*other].weight).sum();
        let part = (left as f64 * (members[*i].weight / weights)) as u64;
        shares[*i] = part.min(left).min(members[*i].limit);
        left -= shares[*i];
    }
    shares
}

/// Members of equal weight, by their limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    counts: BTreeMap<u64, u64>,
    members: u64,
    /// Sum of the limits.
    total: u128,
}

impl Limits {
    /// Adds members with this limit.
    pub(crate) fn add(&mut self, limit: u64, many: u64) {
        *self.counts.entry(limit).or_default() += many;
        self.members += many;
        self.total += u128::from(limit) * u128::from(many);
    }

    /// Removes members with this limit, as many as there are.
    pub(crate) fn remove(&mut self, limit: u64, many: u64) {
        let Some(count) = self.counts.get_mut(&limit) else { return };
        let many = many.min(*count);
        *count -= many;
        if *count == 0 {
            self.counts.remove(&limit);
        }
        self.members -= many;
        self.total -= u128::from(limit) * u128::from(many);
    }

    /// The most that all members together can use, bit/s.
    pub(crate) fn demand(&self) -> u64 {
        u64::try_from(self.total).unwrap_or(u64::MAX)
    }

    /// What each member gets unless its limit is lower, bit/s; `u64::MAX` if all get their limits.
    pub(crate) fn level(&self, capacity: u64) -> u64 {
        let (mut left, mut members) = (capacity, self.members);
        for (limit, count) in &self.counts {
            let level = left.checked_div(members).unwrap_or(u64::MAX);
            if *limit > level {
                return level;
            }
            left -= limit * count;
            members -= count;
        }
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(list: &[(u32, u64)]) -> Vec<Member> {
        list.iter().map(|(weight, limit)| Member { weight: f64::from(*weight), limit: *limit }).collect()
    }

    #[test]
    fn who_needs_little_gets_it_and_the_rest_is_divided() {
        assert_eq!(shares(90, &members(&[(1, 10), (1, 1000), (1, 1000)])), [10, 40, 40]);
        assert_eq!(shares(90, &members(&[(1, u64::MAX), (2, u64::MAX)])), [30, 60]);
        assert_eq!(shares(90, &members(&[(1, u64::MAX), (2, 20)])), [70, 20]);
        assert!(shares(90, &[]).is_empty());
        assert_eq!(shares(0, &members(&[(1, 5)])), [0]);
    }

    #[test]
    fn the_level_holds_back_those_above_it() {
        let mut limits = Limits::default();
        assert_eq!((limits.level(100), limits.demand()), (u64::MAX, 0));
        for limit in [10, 1000, u64::MAX] {
            limits.add(limit, 1);
        }
        assert_eq!((limits.level(90), limits.demand()), (40, u64::MAX));
        limits.remove(u64::MAX, 1);
        assert_eq!((limits.level(90), limits.level(2000), limits.demand()), (80, u64::MAX, 1010));
        limits.remove(77, 1); // nobody has it
        limits.remove(10, 1);
        assert_eq!((limits.level(90), limits.demand()), (90, 1000));
    }

    proptest! {
        #[test]
        fn shares_are_max_min_fair(
            capacity in 0u64..1 << 44,
            list in proptest::collection::vec((1u32..20, 0u64..1 << 40), 1..30),
        ) {
            let members = members(&list);
            let shares = shares(capacity, &members);
            prop_assert!(shares.iter().sum::<u64>() <= capacity);
            prop_assert!(shares.iter().zip(&members).all(|(share, member)| *share <= member.limit));
            let per_weight = |i: usize| shares[i] as f64 / members[i].weight;
            let most = (0..shares.len()).map(per_weight).fold(0.0, f64::max);
            // rounding down may leave a bit/s per member, and moves later ones by as much
            let slack = shares.len() as f64;
            for (i, (share, member)) in shares.iter().zip(&members).enumerate() {
                prop_assert!(*share == member.limit || per_weight(i) >= most - slack, "{shares:?}");
            }
            if shares.iter().zip(&members).any(|(share, member)| *share < member.limit) {
                prop_assert!(shares.iter().sum::<u64>() + 2 * shares.len() as u64 >= capacity);
            }
        }

        #[test]
        fn equal_members_get_what_the_general_rule_gives(
            capacity in 0u64..1 << 44,
            list in proptest::collection::vec(0u64..1 << 40, 1..30),
        ) {
            let mut limits = Limits::default();
            for limit in &list {
                limits.add(*limit, 1);
            }
            let level = limits.level(capacity);
            let ours: Vec<u64> = list.iter().map(|limit| level.min(*limit)).collect();
            let weighted: Vec<(u32, u64)> = list.iter().map(|limit| (1, *limit)).collect();
            let rule = shares(capacity, &members(&weighted));
            prop_assert!(ours.iter().sum::<u64>() <= capacity);
            let slack = list.len() as u64;
            prop_assert!(ours.iter().zip(&rule).all(|(a, b)| a.abs_diff(*b) <= slack), "{ours:?} {rule:?}");
        }

        #[test]
        fn what_was_added_can_be_taken_out(list in proptest::collection::vec(0u64..1000, 0..30)) {
            let mut limits = Limits::default();
            for limit in &list {
                limits.add(*limit, 1);
            }
            list.iter().rev().for_each(|limit| limits.remove(*limit, 1));
            prop_assert_eq!((limits.demand(), limits.level(5), limits.counts.len()), (0, u64::MAX, 0));
        }
    }
}
