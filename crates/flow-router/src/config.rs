//! The configuration of a flow router.

use crate::encodings::Encodings;
use crate::policy::Policy;
use bentpipe_base::{Duration, Rate, Size};
use core::fmt;

/// A class of flows: equal rates within it, weights between classes.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConfig {
    /// Unique name.
    pub name: String,
    /// Its part of the capacity relative to the other classes that have flows.
    pub weight: f64,
    /// Share of the usable rate that its flows may reserve as guaranteed or maximum rate, 0 to 1.
    pub reservable: f64,
}

impl Default for ClassConfig {
    /// Half may be reserved: flows with an available rate keep the other half.
    fn default() -> Self {
        Self { name: "default".into(), weight: 1.0, reservable: 0.5 }
    }
}

/// The configuration of a flow router. [`RouterConfig::new`] has defaults for all but the rate.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterConfig {
    /// Rate of the direction that it feeds, counting IP packets.
    pub rate: Rate,
    /// By how much the router whose direction this is lowers the TTL or hop limit of a packet: 0 for that of
    /// a host (Quick-Start).
    pub hops: u8,
    /// Share of the rate that it gives: below 1, so that the queue stays short and other traffic keeps some.
    pub utilisation: f64,
    /// Classes; a flow without a rule belongs to the first.
    pub classes: Vec<ClassConfig>,
    /// What sources may ask for.
    pub policy: Policy,
    /// Time without data after which a flow with an available rate, or without signalling, is forgotten.
    pub idle: Duration,
    /// The same for a flow with a maximum rate. A guaranteed rate is held until it is given back.
    pub idle_maximum: Duration,
    /// Most flows whose request has had no response yet. When as many wait, they get no share of the capacity
    /// before their responses pass, and each new one takes the place of the oldest.
    pub half_open: u32,
    /// How long to wait for a response, or for data of the flow.
    pub half_open_time: Duration,
    /// Most flows with state; at most half of them without signalling.
    pub flows: u32,
    /// The encodings in which it tells rates. Flows that use another one are flows without signalling.
    pub encodings: Encodings,
    /// Its packets are real: it asks no flow that may never have asked (CD 4).
    pub is_live: bool,
    /// Largest packet of the direction: a structure is inserted only if it fits.
    pub mtu: Size,
}

impl RouterConfig {
    /// Defaults for a direction with this rate.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            hops: 1,
            utilisation: 0.95,
            classes: vec![ClassConfig::default()],
            policy: Policy::default(),
            idle: Duration::from_secs(10),
            idle_maximum: Duration::from_secs(2),
            half_open: 1024,
            // two hops over geostationary satellites, and a repetition
            half_open_time: Duration::from_secs(3),
            flows: 65_536,
            encodings: Encodings::all(),
            is_live: false,
            mtu: Size(1500),
        }
    }

    /// The part of a link's rate that packets of this MTU have; the rest is `framing`, beside each packet.
    pub fn of_packets(&self, rate: Rate, framing: Size) -> Rate {
        let bps = u128::from(rate.bps()) * u128::from(self.mtu.0) / u128::from(self.mtu.0 + framing.0).max(1);
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)).unwrap_or(rate)
    }

    /// Checks all values.
    ///
    /// # Errors
    /// The first value with which a router cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let is_share = |share: f64| share > 0.0 && share <= 1.0;
        if !is_share(self.utilisation) {
            return Err(ConfigError::Utilisation(self.utilisation));
        }
        self.check_classes()?;
        if let Some(rule) = self.policy.rules.iter().position(|rule| rule.class >= self.classes.len()) {
            return Err(ConfigError::UnknownClass { rule });
        }
        if let Some(rule) = self.policy.rules.iter().position(|rule| rule.preemption.max(rule.delay) > 63) {
            return Err(ConfigError::Priority { rule });
        }
        let positive = [
            ("idle", self.idle.0),
            ("idle_maximum", self.idle_maximum.0),
            ("half_open", u64::from(self.half_open)),
            ("half_open_time", self.half_open_time.0),
            ("flows", u64::from(self.flows)),
            ("mtu", self.mtu.0),
        ];
        match positive.into_iter().find(|(_, value)| *value == 0) {
            Some((key, _)) => Err(ConfigError::Zero(key)),
            None => Ok(()),
        }
    }

    fn check_classes(&self) -> Result<(), ConfigError> {
        if self.classes.is_empty() {
            return Err(ConfigError::NoClass);
        }
        let mut reservable = 0.0;
        for (i, class) in self.classes.iter().enumerate() {
            let name = || class.name.clone();
            if self.classes.iter().take(i).any(|other| other.name == class.name) {
                return Err(ConfigError::NameTwice(name()));
            }
            if !(class.weight > 0.0 && class.weight.is_finite()) {
                return Err(ConfigError::Weight(name()));
            }
            if !(0.0..=1.0).contains(&class.reservable) {
                return Err(ConfigError::Reservable(name()));
            }
            reservable += class.reservable;
        }
        // a sum of decimal shares may miss 1 by a rounding error
        if reservable > 1.0 + 1e-9 { Err(ConfigError::AllReservable(reservable)) } else { Ok(()) }
    }
}

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigError {
    /// The utilisation is not above 0 and at most 1.
    Utilisation(f64),
    /// There is no class.
    NoClass,
    /// Two classes have this name.
    NameTwice(String),
    /// The weight of this class is not a positive number.
    Weight(String),
    /// The reservable share of this class is not within 0 to 1.
    Reservable(String),
    /// The reservable shares of all classes sum up to more than 1.
    AllReservable(f64),
    /// A rule names a class that does not exist.
    UnknownClass {
        /// Index of the rule.
        rule: usize,
    },
    /// A rule has a priority above 63.
    Priority {
        /// Index of the rule.
        rule: usize,
    },
    /// This value must not be zero.
    Zero(&'static str),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utilisation(given) => write!(f, "the utilisation is {given}, not above 0 and at most 1"),
            Self::NoClass => write!(f, "there is no class"),
            Self::NameTwice(name) => write!(f, "two classes are named \"{name}\""),
            Self::Weight(name) => write!(f, "the weight of class \"{name}\" is not a positive number"),
            Self::Reservable(name) => {
                write!(f, "the reservable share of class \"{name}\" is not within 0 to 1")
            }
            Self::AllReservable(sum) => write!(f, "the reservable shares of the classes sum up to {sum}"),
            Self::UnknownClass { rule } => write!(f, "rule {} names a class that does not exist", rule + 1),
            Self::Priority { rule } => write!(f, "rule {} has a priority above 63", rule + 1),
            Self::Zero(key) => write!(f, "`{key}` must not be zero"),
        }
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Rule;
    use bentpipe_base::Prefix;
    use core::net::Ipv4Addr;

    fn config() -> RouterConfig {
        RouterConfig::new(Rate::from_bps(1_000_000).unwrap())
    }

    fn class(name: &str, weight: f64, reservable: f64) -> ClassConfig {
        ClassConfig { name: name.into(), weight, reservable }
    }

    #[test]
    fn the_defaults_are_accepted() {
        assert_eq!(config().check(), Ok(()));
        let classes = vec![class("a", 1.0, 0.7), class("b", 2.5, 0.3)];
        assert_eq!(RouterConfig { classes, ..config() }.check(), Ok(()));
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        for utilisation in [0.0, -1.0, 1.01, f64::NAN] {
            let refused = RouterConfig { utilisation, ..config() }.check();
            assert!(matches!(refused, Err(ConfigError::Utilisation(_))), "{utilisation}");
        }
        let with = |classes: Vec<ClassConfig>| RouterConfig { classes, ..config() }.check();
        assert_eq!(with(Vec::new()), Err(ConfigError::NoClass));
        let twice = vec![class("a", 1.0, 0.0), class("a", 1.0, 0.0)];
        assert_eq!(with(twice), Err(ConfigError::NameTwice("a".into())));
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(with(vec![class("a", weight, 0.0)]), Err(ConfigError::Weight("a".into())));
        }
        assert_eq!(with(vec![class("a", 1.0, 1.5)]), Err(ConfigError::Reservable("a".into())));
        let both = with(vec![class("a", 1.0, 0.75), class("b", 1.0, 0.5)]);
        assert_eq!(both, Err(ConfigError::AllReservable(1.25)));
        assert_eq!(RouterConfig { flows: 0, ..config() }.check(), Err(ConfigError::Zero("flows")));
    }

    #[test]
    fn a_rule_needs_an_existing_class_and_a_legal_priority() {
        let all = Prefix::new(Ipv4Addr::UNSPECIFIED.into(), 0).unwrap();
        let with = |rule: Rule| {
            let policy = Policy { rules: vec![Rule::new(all), rule] };
            RouterConfig { policy, ..config() }.check()
        };
        assert_eq!(with(Rule::new(all)), Ok(()));
        let refused = with(Rule { class: 1, ..Rule::new(all) });
        assert_eq!(refused, Err(ConfigError::UnknownClass { rule: 1 }));
        assert_eq!(refused.unwrap_err().to_string(), "rule 2 names a class that does not exist");
        assert_eq!(with(Rule { delay: 64, ..Rule::new(all) }), Err(ConfigError::Priority { rule: 1 }));
    }
}
