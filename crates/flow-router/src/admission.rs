//! Admission of guaranteed and maximum rates, and preemption.
//!
//! Sources: Roberts, explicit-rate TCP; ITU-T Y.2121. A class may reserve a part of the usable rate. A
//! request that fits is admitted. If it does not fit, flows of the class with a lower preemption priority
//! lose their reservations, the lowest priority first and the newest first within one, until it fits; if that
//! is not enough, the request is refused and nobody loses anything.
//! Readings: a refusal is GR = 0 with M = 1 (the source names no code for it); a flow that asks for more than
//! fits keeps what it has. A preempted flow is told in its next packet.
//! A judgement costs the number of priorities, not that of flows; an admission also visits those it preempts.

use crate::flows::FlowKey;
use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What a flow wants to reserve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Index of its class.
    pub(crate) class: usize,
    /// Rate in bit/s.
    pub(crate) rate: u64,
    /// Preemption priority, 0 the lowest.
    pub(crate) priority: u8,
}

/// What becomes of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It fits.
    Fits,
    /// It fits if others lose their reservations.
    Preempts,
    /// It does not fit.
    Refused,
}

/// A reservation with its number in the order of admission.
#[derive(Clone, Copy, Debug)]
struct Held {
    demand: Demand,
    number: u64,
}

/// Preemption priorities.
const PRIORITIES: usize = 64;

/// The reservations of one class.
#[derive(Debug)]
struct ClassReservations {
    /// In the order in which they are preempted.
    order: BTreeSet<(u8, Reverse<u64>, FlowKey)>,
    /// Sums by priority, bit/s.
    sums: [u64; PRIORITIES],
}

impl Default for ClassReservations {
    fn default() -> Self {
        Self { order: BTreeSet::new(), sums: [0; PRIORITIES] }
    }
}

impl ClassReservations {
    fn below(&self, priority: u8) -> u64 {
        self.sums.iter().take(usize::from(priority)).fold(0, |sum, rate| sum.saturating_add(*rate))
    }
}

/// All reservations.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    held: BTreeMap<FlowKey, Held>,
    by_class: BTreeMap<usize, ClassReservations>,
    admitted: u64,
}

impl Reservations {
    /// What [`Reservations::ask`] would do if the reservation of `freed` were given back before.
    pub(crate) fn judge(
        &self,
        key: &FlowKey,
        demand: Demand,
        reservable: u64,
        freed: Option<&FlowKey>,
    ) -> Verdict {
        let freed = freed.filter(|freed| *freed != key);
        let own = [Some(key), freed].into_iter().flatten().filter_map(|key| self.held.get(key));
        let own: Vec<Demand> =
            own.map(|held| held.demand).filter(|held| held.class == demand.class).collect();
        let sum = |list: &mut dyn Iterator<Item = &Demand>| list.map(|held| held.rate).sum::<u64>();
        let others = self.in_class(demand.class).saturating_sub(sum(&mut own.iter()));
        let missing = others.saturating_add(demand.rate).saturating_sub(reservable);
        let below = self.by_class.get(&demand.class).map_or(0, |class| class.below(demand.priority));
        let own_below = sum(&mut own.iter().filter(|held| held.priority < demand.priority));
        match missing {
            0 => Verdict::Fits,
            missing if missing <= below.saturating_sub(own_below) => Verdict::Preempts,
            _ => Verdict::Refused,
        }
    }

    /// Admits a demand in place of what the flow holds, and returns the flows that lost their reservations
    /// for it; `None` if it is refused. `reservable` is the limit of the class in bit/s.
    pub(crate) fn ask(&mut self, key: FlowKey, demand: Demand, reservable: u64) -> Option<Vec<FlowKey>> {
        if self.judge(&key, demand, reservable, None) == Verdict::Refused {
            return None;
        }
        self.take(&key);
        let left = reservable.saturating_sub(demand.rate);
        let mut preempted = Vec::new();
        while self.in_class(demand.class) > left
            && let Some(other) = self.first_of(demand.class)
        {
            self.take(&other);
            preempted.push(other);
        }
        self.admitted += 1;
        self.put(key, Held { demand, number: self.admitted });
        Some(preempted)
    }

    /// Lowers what a flow holds; 0 releases it. A higher rate than it holds changes nothing.
    pub(crate) fn lower(&mut self, key: FlowKey, rate: u64) {
        let Some(mut held) = self.take(&key) else { return };
        held.demand.rate = held.demand.rate.min(rate);
        if held.demand.rate > 0 {
            self.put(key, held);
        }
    }

    /// Takes reservations of a class away until the rest fits, and returns their flows.
    pub(crate) fn shrink(&mut self, class: usize, reservable: u64) -> Vec<FlowKey> {
        let mut lost = Vec::new();
        while self.in_class(class) > reservable
            && let Some(key) = self.first_of(class)
        {
            self.take(&key);
            lost.push(key);
        }
        lost
    }

    /// What a flow holds, bit/s.
    pub(crate) fn rate(&self, key: &FlowKey) -> u64 {
        self.held.get(key).map_or(0, |held| held.demand.rate)
    }

    /// Sum of all reservations, bit/s.
    pub(crate) fn total(&self) -> u64 {
        self.by_class.keys().fold(0, |sum, class| sum.saturating_add(self.in_class(*class)))
    }

    fn in_class(&self, class: usize) -> u64 {
        self.by_class.get(&class).map_or(0, |class| class.below(PRIORITIES as u8))
    }

    /// The flow of a class that is preempted first.
    fn first_of(&self, class: usize) -> Option<FlowKey> {
        self.by_class.get(&class)?.order.first().map(|(.., key)| *key)
    }

    fn put(&mut self, key: FlowKey, held: Held) {
        let Demand { class, rate, priority } = held.demand;
        self.held.insert(key, held);
        let class = self.by_class.entry(class).or_default();
        class.order.insert((priority, Reverse(held.number), key));
        if let Some(sum) = class.sums.get_mut(usize::from(priority)) {
            *sum += rate;
        }
    }

    fn take(&mut self, key: &FlowKey) -> Option<Held> {
        let held = self.held.remove(key)?;
        let Demand { class, rate, priority } = held.demand;
        if let Some(class) = self.by_class.get_mut(&class) {
            class.order.remove(&(priority, Reverse(held.number), *key));
            if let Some(sum) = class.sums.get_mut(usize::from(priority)) {
                *sum -= rate;
            }
        }
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Addr, Packet};
    use proptest::prelude::*;

    fn key(n: u32) -> FlowKey {
        FlowKey::of(&Packet { src: Addr(n), ..Packet::default() })
    }

    fn demand(rate: u64, priority: u8) -> Demand {
        Demand { class: 0, rate, priority }
    }

    #[test]
    fn what_fits_is_admitted_and_the_rest_is_refused() {
        let mut all = Reservations::default();
        assert_eq!(all.ask(key(1), demand(60, 0), 100), Some(vec![]));
        assert_eq!(all.ask(key(2), demand(60, 0), 100), None);
        assert_eq!(all.ask(key(2), demand(40, 0), 100), Some(vec![]));
        assert_eq!((all.total(), all.rate(&key(1)), all.rate(&key(3))), (100, 60, 0));
        // another class has its own limit
        assert_eq!(all.ask(key(3), Demand { class: 1, ..demand(50, 0) }, 50), Some(vec![]));
        assert_eq!(all.total(), 150);
    }

    #[test]
    fn a_higher_priority_preempts_the_lowest_and_newest_first() {
        let mut all = Reservations::default();
        for (n, priority) in [(1, 5), (2, 1), (3, 1), (4, 9)] {
            assert_eq!(all.ask(key(n), demand(25, priority), 100), Some(vec![]));
        }
        assert_eq!(all.ask(key(5), demand(30, 1), 100), None, "an equal priority does not");
        assert_eq!(all.ask(key(5), demand(30, 6), 100), Some(vec![key(3), key(2)]));
        assert_eq!(all.ask(key(6), demand(50, 6), 100), None, "those below it hold too little");
        assert_eq!((all.rate(&key(1)), all.rate(&key(4)), all.total()), (25, 25, 80));
    }

    #[test]
    fn a_refused_raise_leaves_what_the_flow_has() {
        let mut all = Reservations::default();
        all.ask(key(1), demand(60, 0), 100);
        assert_eq!(all.ask(key(1), demand(101, 0), 100), None);
        assert_eq!(all.rate(&key(1)), 60);
        assert_eq!(all.ask(key(1), demand(100, 0), 100), Some(vec![]));
        all.lower(key(1), 200);
        assert_eq!(all.total(), 100);
        all.lower(key(1), 30);
        assert_eq!((all.total(), all.rate(&key(1))), (30, 30));
        all.lower(key(1), 0);
        assert_eq!((all.total(), all.held.len(), all.by_class[&0].order.len()), (0, 0, 0));
    }

    #[test]
    fn when_the_capacity_falls_the_lowest_priority_loses() {
        let mut all = Reservations::default();
        for (n, priority) in [(1, 5), (2, 1), (3, 9)] {
            all.ask(key(n), demand(30, priority), 100);
        }
        assert!(all.shrink(0, 90).is_empty());
        assert_eq!(all.shrink(0, 50), [key(2), key(1)]);
        assert_eq!(all.total(), 30);
        assert!(all.shrink(7, 0).is_empty());
    }

    #[test]
    fn a_judgement_counts_what_would_be_given_back() {
        let mut all = Reservations::default();
        all.ask(key(1), demand(60, 5), 100);
        all.ask(key(2), demand(40, 1), 100);
        let judge = |n, demand, freed: Option<u32>| all.judge(&key(n), demand, 100, freed.map(key).as_ref());
        assert_eq!(judge(3, demand(40, 1), None), Verdict::Refused);
        assert_eq!(judge(3, demand(40, 1), Some(2)), Verdict::Fits);
        assert_eq!(judge(3, demand(40, 2), None), Verdict::Preempts);
        assert_eq!(judge(3, demand(41, 2), None), Verdict::Refused);
        assert_eq!(judge(3, demand(41, 2), Some(2)), Verdict::Refused, "what is freed is not preempted too");
        assert_eq!(judge(1, demand(60, 5), None), Verdict::Fits);
        assert_eq!(judge(1, demand(61, 5), Some(1)), Verdict::Preempts);
    }

    proptest! {
        #[test]
        fn the_limit_holds_and_no_higher_priority_is_preempted(
            asks in proptest::collection::vec((0u32..12, 1u64..60, 0u8..4), 1..60),
        ) {
            let mut all = Reservations::default();
            let mut priorities = BTreeMap::new();
            for (n, rate, priority) in asks {
                if let Some(preempted) = all.ask(key(n), demand(rate, priority), 100) {
                    for other in preempted {
                        prop_assert!(priorities.get(&other).is_some_and(|p| *p < priority));
                        prop_assert_eq!(all.rate(&other), 0);
                    }
                    priorities.insert(key(n), priority);
                }
                prop_assert!(all.total() <= 100);
                prop_assert_eq!(all.held.values().map(|held| held.demand.rate).sum::<u64>(), all.total());
            }
        }
    }
}
