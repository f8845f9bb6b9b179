//! The configuration of a tagger.

use crate::rules::Rule;
use bentpipe_base::{Duration, Size};
use core::fmt;

/// What is wrong with a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The largest packet is smaller than every host must accept.
    Mtu(Size),
    /// The first port of a rule is above its last.
    Ports {
        /// Index of the rule.
        rule: usize,
    },
    /// The prefixes of a rule have different IP versions.
    Versions {
        /// Index of the rule.
        rule: usize,
    },
    /// This value must not be zero.
    Zero(&'static str),
}

/// The configuration of a tagger. [`TaggerConfig::new`] has defaults for all but the rules.
#[derive(Clone, Debug, PartialEq)]
pub struct TaggerConfig {
    /// Which flows ask; the first rule that applies decides, and a flow without one is left alone.
    pub rules: Vec<Rule>,
    /// Largest packet of the path: a structure is added only if the packet still fits.
    pub mtu: Size,
    /// Most flows with state.
    pub flows: u32,
    /// Most of them whose handshake is not complete. A new one takes the place of the oldest.
    pub half_open: u32,
    /// How long a handshake may take.
    pub half_open_time: Duration,
    /// Time without a packet after which a flow is forgotten. Its packets then look like those of a host that
    /// does not signal, so it is long.
    pub idle: Duration,
    /// Most peers that are remembered as not capable.
    pub incapable: u32,
    /// How long a peer is remembered as not capable.
    pub incapable_time: Duration,
}

impl TaggerConfig {
    /// Defaults with these rules.
    pub const fn new(rules: Vec<Rule>) -> Self {
        Self {
            rules,
            mtu: Size(1500),
            flows: 65_536,
            half_open: 4096,
            // a host sends its SYN again for about two minutes; the structure is in the first only
            half_open_time: Duration::from_secs(130),
            // longer than the keep-alive interval of common systems, which is two hours
            idle: Duration::from_secs(3 * 3600),
            incapable: 4096,
            incapable_time: Duration::from_secs(4 * 3600),
        }
    }

    /// Checks all values.
    ///
    /// # Errors
    /// The first value with which a tagger cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        // a SYN/ACK with two structures and all its options
        if self.mtu < Size(576) {
            return Err(ConfigError::Mtu(self.mtu));
        }
        let turned = |rule: &Rule| [rule.ports, rule.from_ports].iter().any(|ports| ports.first > ports.last);
        if let Some(rule) = self.rules.iter().position(turned) {
            return Err(ConfigError::Ports { rule });
        }
        let mixed = |rule: &Rule| rule.hosts.address().is_ipv4() != rule.peers.address().is_ipv4();
        if let Some(rule) = self.rules.iter().position(mixed) {
            return Err(ConfigError::Versions { rule });
        }
        let counts = [("flows", self.flows), ("half_open", self.half_open), ("incapable", self.incapable)];
        let times = [
            ("half_open_time", self.half_open_time),
            ("idle", self.idle),
            ("incapable_time", self.incapable_time),
        ];
        let none = counts.into_iter().find(|(_, n)| *n == 0).map(|(key, _)| key);
        let none = none.or_else(|| times.into_iter().find(|(_, time)| time.is_zero()).map(|(key, _)| key));
        none.map_or(Ok(()), |key| Err(ConfigError::Zero(key)))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mtu(mtu) => write!(f, "`mtu` is {} bytes; give 576 or more", mtu.0),
            Self::Ports { rule } => {
                write!(f, "rule {}: the first port is above the last; exchange them", rule + 1)
            }
            Self::Versions { rule } => {
                write!(f, "rule {}: host and peer have different IP versions; write two rules", rule + 1)
            }
            Self::Zero(key) => write!(f, "`{key}` must not be zero"),
        }
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Opener, Ports};
    use bentpipe_base::Prefix;
    use core::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn what_cannot_work_is_refused_with_a_hint() {
        let v4 = Prefix::new(Ipv4Addr::UNSPECIFIED.into(), 0).unwrap();
        let v6 = Prefix::new(Ipv6Addr::UNSPECIFIED.into(), 0).unwrap();
        let (ports, from_ports, opener) = (Ports::ALL, Ports::ALL, Opener::Any);
        let rule = Rule { hosts: v4, peers: v4, ports, from_ports, opener, ask: None };
        let good = TaggerConfig::new(vec![rule.clone()]);
        assert_eq!(good.check(), Ok(()));
        let refused = |config: TaggerConfig| config.check().unwrap_err().to_string();
        let mixed = vec![rule.clone(), Rule { peers: v6, ..rule.clone() }];
        assert!(refused(TaggerConfig::new(mixed)).starts_with("rule 2: host and peer"));
        let swapped = vec![Rule { ports: Ports { first: 2, last: 1 }, ..rule }];
        assert!(refused(TaggerConfig::new(swapped)).starts_with("rule 1: the first port"));
        assert_eq!(refused(TaggerConfig { flows: 0, ..good.clone() }), "`flows` must not be zero");
        assert!(refused(TaggerConfig { mtu: Size(500), ..good }).contains("576"));
    }
}
