//! What a source may ask for.
//!
//! Source: Roberts, explicit-rate TCP, section "Flow based signaling", point 3: the network verifies that a
//! user has paid for the rate and the priorities that it asks for. The source does not state how. Here: rules
//! by prefix of the sender's address, of which the first that matches applies. What is beyond a rule is
//! marked down, and M is set; nothing is dropped. Without a rule a flow gets an available rate and neither a
//! guaranteed one nor a priority.

use bentpipe_advice::tia1039::{RateType, Structure};
use bentpipe_base::{Prefix, Rate};
use core::net::IpAddr;

/// What sources with a prefix may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Prefix of the sender's address.
    pub from: Prefix,
    /// Index of the class of its flows.
    pub class: usize,
    /// Largest available rate of a flow; `None` for no limit.
    pub available: Option<Rate>,
    /// Largest guaranteed or maximum rate of a flow; `None` for none at all.
    pub guaranteed: Option<Rate>,
    /// Highest preemption priority, 0 to 63.
    pub preemption: u8,
    /// Highest delay priority, 0 to 63.
    pub delay: u8,
}

impl Rule {
    /// A rule that allows what a source without a rule may have.
    pub const fn new(from: Prefix) -> Self {
        Self { from, class: 0, available: None, guaranteed: None, preemption: 0, delay: 0 }
    }
}

/// The rules. The first one that matches applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The rules, in order.
    pub rules: Vec<Rule>,
}

/// What one source may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Index of the rule that applies.
    pub(crate) rule: Option<usize>,
    /// Index of its class.
    pub(crate) class: usize,
    available: Option<Rate>,
    guaranteed: Option<Rate>,
    preemption: u8,
    delay: u8,
}

impl Policy {
    /// What a source may have. No rule applies to an address that is unknown.
    pub(crate) fn allowance(&self, source: Option<IpAddr>) -> Allowance {
        let applies = |rule: &Rule| source.is_some_and(|address| rule.from.contains(address));
        let found = self.rules.iter().enumerate().find(|(_, rule)| applies(rule));
        found.map_or_else(Allowance::default, |(index, rule)| Allowance {
            rule: Some(index),
            class: rule.class,
            available: rule.available,
            guaranteed: rule.guaranteed,
            preemption: rule.preemption,
            delay: rule.delay,
        })
    }
}

impl Allowance {
    /// The most that a flow may have, bit/s.
    pub(crate) fn most(&self) -> u64 {
        self.available.map_or(u64::MAX, Rate::bps)
    }

    /// Marks a request down to what is allowed, and to the rates that its type has: no guaranteed rate with
    /// an available one, and no available rate with a maximum or a guaranteed one.
    pub(crate) fn apply(&self, request: &mut Structure) {
        let has_available = uses_available(request);
        let has_guaranteed = request.rate_type() != Some(RateType::Available);
        let asked = request.available();
        let allowed = asked.map(|rate| self.available.map_or(rate, |most| rate.min(most)));
        let allowed = allowed.filter(|_| has_available);
        if allowed != asked {
            request.set_available(allowed);
        }
        let asked = request.guaranteed();
        let allowed = asked.and_then(|rate| self.guaranteed.map(|most| rate.min(most)));
        let allowed = allowed.filter(|_| has_guaranteed);
        if allowed != asked {
            request.set_guaranteed(allowed);
        }
        request.set_preemption_priority(request.preemption_priority().min(self.preemption));
        request.set_delay_priority(request.delay_priority().min(self.delay));
    }
}

/// True for a type of rate that shares what reservations leave.
pub(crate) fn uses_available(request: &Structure) -> bool {
    matches!(request.rate_type(), Some(RateType::Available | RateType::Composite))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_advice::rounded;
    use core::net::Ipv4Addr;

    fn kbps(kbps: u64) -> Rate {
        Rate::from_bps(kbps * 1000).unwrap()
    }

    fn prefix(a: u8, b: u8, length: u8) -> Prefix {
        Prefix::new(Ipv4Addr::new(a, b, 77, 7).into(), length).unwrap()
    }

    fn request(rate_type: RateType) -> Structure {
        let mut request = Structure::request(kbps(800));
        request.set_rate_type(rate_type);
        request.set_guaranteed(Some(kbps(64)));
        request.set_preemption_priority(9);
        request.set_delay_priority(8);
        request
    }

    #[test]
    fn without_a_rule_there_is_an_available_rate_alone() {
        let allowance = Policy::default().allowance(Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(allowance, Policy::default().allowance(None));
        let mut composite = request(RateType::Composite);
        allowance.apply(&mut composite);
        assert_eq!((composite.available(), composite.guaranteed()), (rounded(kbps(800)), None));
        assert_eq!((composite.preemption_priority(), composite.delay_priority()), (0, 0));
        assert_eq!(composite.rate_type(), Some(RateType::Composite));
    }

    #[test]
    fn the_first_rule_that_matches_marks_down() {
        let near = Rule {
            class: 1,
            available: Some(kbps(512)),
            guaranteed: Some(kbps(32)),
            preemption: 5,
            delay: 63,
            ..Rule::new(prefix(10, 1, 16))
        };
        let policy = Policy { rules: vec![near, Rule::new(prefix(10, 0, 8))] };
        let allowance = policy.allowance(Some(Ipv4Addr::new(10, 1, 0, 9).into()));
        assert_eq!(allowance.class, 1);
        let mut composite = request(RateType::Composite);
        allowance.apply(&mut composite);
        assert_eq!((composite.available(), composite.guaranteed()), (Some(kbps(512)), Some(kbps(32))));
        assert_eq!((composite.preemption_priority(), composite.delay_priority()), (5, 8));
        let far = policy.allowance(Some(Ipv4Addr::new(10, 2, 0, 9).into()));
        assert_eq!((far.class, far.guaranteed, far.rule), (0, None, Some(1)));
    }

    #[test]
    fn each_type_keeps_the_rates_it_has() {
        let all = Rule { guaranteed: Some(kbps(10_000)), preemption: 63, ..Rule::new(prefix(0, 0, 0)) };
        let allowance = Policy { rules: vec![all] }.allowance(Some(Ipv4Addr::LOCALHOST.into()));
        for (rate_type, available, guaranteed) in [
            (RateType::Available, true, false),
            (RateType::Composite, true, true),
            (RateType::Maximum, false, true),
            (RateType::Guaranteed, false, true),
        ] {
            let mut request = request(rate_type);
            allowance.apply(&mut request);
            let has = (request.available().is_some(), request.guaranteed().is_some());
            assert_eq!(has, (available, guaranteed), "{rate_type:?}");
        }
        let mut fitting = Structure::request(kbps(800));
        allowance.apply(&mut fitting);
        assert_eq!(fitting, Structure::request(kbps(800)));
    }
}
