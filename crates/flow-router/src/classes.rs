//! Classes of flows, and the level of each.
//!
//! Source: Roberts, explicit-rate TCP, section "TCP problem areas": rates as fair as possible within each
//! payment class. The pool is what the reservations leave of the capacity. It is divided among the classes by
//! weight; a class that needs less than its part leaves the rest to the others. Within a class all members
//! have equal weight. With n flows that ask and p flows without
//! signalling, one class, and no limits, each of the former gets pool / (n + p).
//! The levels are computed again when they are read after a change, so many changes at once cost one
//! computation. A member has no number of its own: its share is min(limit, level of its class).

use crate::config::ClassConfig;
use crate::share::{Limits, Member, shares};

/// One class.
#[derive(Debug)]
struct Class {
    weight: f64,
    limits: Limits,
    level: u64,
}

/// All classes.
#[derive(Debug)]
pub(crate) struct Classes {
    list: Vec<Class>,
    pool: u64,
    is_stale: bool,
}

impl Classes {
    pub(crate) fn new(configs: &[ClassConfig], pool: u64) -> Self {
        let class = |config: &ClassConfig| Class {
            weight: config.weight,
            limits: Limits::default(),
            level: u64::MAX,
        };
        Self { list: configs.iter().map(class).collect(), pool, is_stale: false }
    }

    /// Sets what is divided, bit/s.
    pub(crate) fn set_pool(&mut self, pool: u64) {
        self.is_stale |= pool != self.pool;
        self.pool = pool;
    }

    /// Adds a member.
    pub(crate) fn add(&mut self, class: usize, limit: u64) {
        self.add_many(class, limit, 1);
    }

    /// Removes a member that was added with this limit.
    pub(crate) fn remove(&mut self, class: usize, limit: u64) {
        self.remove_many(class, limit, 1);
    }

    /// Adds several members with the same limit.
    pub(crate) fn add_many(&mut self, class: usize, limit: u64, many: u64) {
        if let Some(class) = self.list.get_mut(class).filter(|_| many > 0) {
            class.limits.add(limit, many);
            self.is_stale = true;
        }
    }

    /// Removes several members that were added with this limit.
    pub(crate) fn remove_many(&mut self, class: usize, limit: u64, many: u64) {
        if let Some(class) = self.list.get_mut(class).filter(|_| many > 0) {
            class.limits.remove(limit, many);
            self.is_stale = true;
        }
    }

    pub(crate) fn has_members(&self) -> bool {
        self.list.iter().any(|class| class.limits.demand() > 0)
    }

    /// The level of a class, bit/s; `u64::MAX` if all its members get their limits.
    pub(crate) fn level(&mut self, class: usize) -> u64 {
        if self.is_stale {
            self.compute();
        }
        self.list.get(class).map_or(0, |class| class.level)
    }

    /// What a flow would get with this limit. `counted` is the limit with which it is a member at present.
    pub(crate) fn share_with(&mut self, class: usize, limit: u64, counted: Option<u64>) -> u64 {
        if counted == Some(limit) {
            return limit.min(self.level(class));
        }
        if let Some(counted) = counted {
            self.remove(class, counted);
        }
        self.add(class, limit);
        let share = limit.min(self.level(class));
        self.remove(class, limit);
        if let Some(counted) = counted {
            self.add(class, counted);
        }
        share
    }

    fn compute(&mut self) {
        self.is_stale = false;
        let member = |class: &Class| Member { weight: class.weight, limit: class.limits.demand() };
        let members: Vec<Member> = self.list.iter().map(member).collect();
        for (class, part) in self.list.iter_mut().zip(shares(self.pool, &members)) {
            class.level = class.limits.level(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(weights: &[f64]) -> Classes {
        let config = |weight: &f64| ClassConfig { weight: *weight, ..ClassConfig::default() };
        let configs: Vec<ClassConfig> = weights.iter().map(config).collect();
        Classes::new(&configs, 900)
    }

    #[test]
    fn a_class_without_members_leaves_its_part_to_the_others() {
        let mut classes = classes(&[1.0, 2.0]);
        classes.add(0, u64::MAX);
        assert_eq!(classes.level(0), 900);
        classes.add(1, u64::MAX);
        assert_eq!((classes.level(0), classes.level(1)), (300, 600));
        classes.add(1, u64::MAX);
        assert_eq!((classes.level(0), classes.level(1)), (300, 300));
        // one that needs little leaves what it does not need
        classes.remove(0, u64::MAX);
        classes.add(0, 100);
        assert_eq!((classes.level(0), classes.level(1)), (u64::MAX, 400));
        classes.set_pool(0);
        assert_eq!((classes.level(0), classes.level(1)), (0, 0));
    }

    #[test]
    fn a_share_that_is_only_asked_for_changes_nothing() {
        let mut classes = classes(&[1.0]);
        classes.add(0, u64::MAX);
        assert_eq!(classes.share_with(0, u64::MAX, None), 450);
        assert_eq!(classes.share_with(0, 100, None), 100);
        assert_eq!(classes.share_with(0, 1000, Some(u64::MAX)), 900);
        assert_eq!(classes.share_with(0, u64::MAX, Some(u64::MAX)), 900);
        assert_eq!(classes.level(0), 900);
    }

    #[test]
    fn a_class_that_does_not_exist_gets_nothing() {
        let mut classes = classes(&[1.0]);
        classes.add(7, 5);
        assert_eq!((classes.level(7), classes.share_with(7, 5, None)), (0, 0));
    }
}
