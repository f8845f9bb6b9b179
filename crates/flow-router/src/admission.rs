//! Admission of guaranteed and maximum rates, and preemption.
//!
//! Sources: Roberts, explicit-rate TCP; ITU-T Y.2121. A class may reserve a part of the usable rate. A
//! request that fits is admitted. If it does not fit, flows of the class with a lower preemption priority
//! lose their reservations, the lowest priority first and the newest first within one, until it fits; if that
//! is not enough, the request is refused and nobody loses anything.
//! Readings: a refusal is GR = 0 with M = 1 (the source names no code for it); a flow that asks for more than
//! fits keeps what it has. A preempted flow is told in its next packet.

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

/// A reservation with its number in the order of admission.
#[derive(Clone, Copy, Debug)]
struct Held {
    demand: Demand,
    number: u64,
}

/// All reservations.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    held: BTreeMap<FlowKey, Held>,
    /// In the order in which they are preempted.
    order: BTreeSet<(u8, Reverse<u64>, FlowKey)>,
    by_class: BTreeMap<usize, u64>,
    admitted: u64,
}

impl Reservations {
    /// Admits a demand in place of what the flow holds, and returns the flows that lost their reservations
    /// for it; `None` if it is refused. `reservable` is the limit of the class in bit/s.
    pub(crate) fn ask(&mut self, key: FlowKey, demand: Demand, reservable: u64) -> Option<Vec<FlowKey>> {
        let before = self.take(&key);
        let mut missing = self.in_class(demand.class).saturating_add(demand.rate).saturating_sub(reservable);
        let mut preempted = Vec::new();
        for (priority, _, other) in &self.order {
            if missing == 0 || *priority >= demand.priority {
                break;
            }
            if let Some(held) = self.held.get(other).filter(|held| held.demand.class == demand.class) {
                missing = missing.saturating_sub(held.demand.rate);
                preempted.push(*other);
            }
        }
        if missing > 0 {
            if let Some(before) = before {
                self.put(key, before);
            }
            return None;
        }
        for other in &preempted {
            self.take(other);
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
        while self.in_class(class) > reservable {
            let is_of_class =
                |key: &FlowKey| self.held.get(key).is_some_and(|held| held.demand.class == class);
            let Some(key) = self.order.iter().map(|(.., key)| *key).find(is_of_class) else { break };
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
        self.by_class.values().fold(0, |sum, rate| sum.saturating_add(*rate))
    }

    fn in_class(&self, class: usize) -> u64 {
        self.by_class.get(&class).copied().unwrap_or(0)
    }

    fn put(&mut self, key: FlowKey, held: Held) {
        self.held.insert(key, held);
        self.order.insert((held.demand.priority, Reverse(held.number), key));
        *self.by_class.entry(held.demand.class).or_default() += held.demand.rate;
    }

    fn take(&mut self, key: &FlowKey) -> Option<Held> {
        let held = self.held.remove(key)?;
        self.order.remove(&(held.demand.priority, Reverse(held.number), *key));
        if let Some(sum) = self.by_class.get_mut(&held.demand.class) {
            *sum -= held.demand.rate;
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
        assert_eq!((all.total(), all.held.len(), all.order.len()), (0, 0, 0));
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
