//! Which flows of a host ask for a rate.

use bentpipe_advice::negotiation::AskConfig;
use bentpipe_base::Prefix;
use core::net::IpAddr;

/// A range of ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

impl Ports {
    /// Every port.
    pub const ALL: Self = Self { first: 0, last: u16::MAX };

    /// True if the port is in the range.
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

/// A rule: flows to which it applies, and what their end asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Addresses of the host.
    pub hosts: Prefix,
    /// Addresses of the peer.
    pub peers: Prefix,
    /// The port to which the connection was opened: of the peer if the host opens, else of the host.
    pub ports: Ports,
    /// What the host's end asks for and takes; `None`: these flows are left alone.
    pub ask: Option<AskConfig>,
}

/// The two addresses of a flow, and the port to which it was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) host: Option<IpAddr>,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) port: u16,
}

impl Rule {
    fn applies(&self, call: Call) -> bool {
        let within = |prefix: Prefix, address: Option<IpAddr>| address.is_some_and(|a| prefix.contains(a));
        within(self.hosts, call.host) && within(self.peers, call.peer) && self.ports.contains(call.port)
    }
}

/// What the first rule that applies says; `None` without one.
pub(crate) fn asked(rules: &[Rule], call: Call) -> Option<&AskConfig> {
    rules.iter().find(|rule| rule.applies(call))?.ask.as_ref()
}

/// True if a rule could apply to a flow of which only the addresses are known.
pub(crate) fn covers(rules: &[Rule], host: Option<IpAddr>, peer: Option<IpAddr>) -> bool {
    let may = |rule: &&Rule| rule.applies(Call { host, peer, port: rule.ports.first });
    rules.iter().filter(may).any(|rule| rule.ask.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    fn prefix(address: [u8; 4], length: u8) -> Prefix {
        Prefix::new(Ipv4Addr::from(address).into(), length).unwrap()
    }

    fn rule(peers: Prefix, ports: Ports, ask: Option<AskConfig>) -> Rule {
        Rule { hosts: prefix([10, 0, 0, 0], 8), peers, ports, ask }
    }

    fn call(peer: [u8; 4], port: u16) -> Call {
        Call { host: Some(IpAddr::from([10, 0, 0, 1])), peer: Some(IpAddr::from(peer)), port }
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        let web = Ports { first: 80, last: 443 };
        let rules = [
            rule(prefix([192, 0, 2, 7], 32), Ports::ALL, None),
            rule(prefix([192, 0, 2, 0], 24), web, Some(AskConfig::default())),
        ];
        assert!(asked(&rules, call([192, 0, 2, 7], 80)).is_none());
        assert!(asked(&rules, call([192, 0, 2, 8], 80)).is_some());
        assert!(asked(&rules, call([192, 0, 2, 8], 443)).is_some());
        assert!(asked(&rules, call([192, 0, 2, 8], 444)).is_none());
        assert!(asked(&rules, call([192, 0, 3, 8], 80)).is_none());
        let other = Call { host: Some(Ipv6Addr::LOCALHOST.into()), ..call([192, 0, 2, 8], 80) };
        assert!(asked(&rules, other).is_none());
        assert!(asked(&rules, Call { peer: None, ..call([192, 0, 2, 8], 80) }).is_none());
    }

    #[test]
    fn addresses_alone_tell_if_a_rule_could_apply() {
        let web = Ports { first: 80, last: 443 };
        let rules = [
            rule(prefix([192, 0, 2, 0], 24), web, Some(AskConfig::default())),
            rule(prefix([192, 0, 3, 0], 24), web, None),
        ];
        let host = call([0; 4], 0).host;
        assert!(covers(&rules, host, call([192, 0, 2, 9], 0).peer));
        assert!(!covers(&rules, host, call([192, 0, 3, 9], 0).peer));
        assert!(!covers(&rules, None, call([192, 0, 2, 9], 0).peer));
    }
}
