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

/// Which end opens a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// The host.
    Host,
    /// Its peer.
    Peer,
    /// Any of the two.
    Any,
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
    /// The port from which it was opened.
    pub from_ports: Ports,
    /// Who opens it.
    pub opener: Opener,
    /// What the host's end asks for and takes; `None`: these flows are left alone.
    pub ask: Option<AskConfig>,
}

/// The two addresses of a flow, the ports from which and to which it was opened, and whether the host did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) host: Option<IpAddr>,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) ports: [u16; 2],
    pub(crate) is_ours: bool,
}

impl Rule {
    fn joins(&self, host: Option<IpAddr>, peer: Option<IpAddr>) -> bool {
        let within = |prefix: Prefix, address: Option<IpAddr>| address.is_some_and(|a| prefix.contains(a));
        within(self.hosts, host) && within(self.peers, peer)
    }

    fn applies(&self, call: Call) -> bool {
        let [from, to] = call.ports;
        self.opener != (if call.is_ours { Opener::Peer } else { Opener::Host })
            && self.joins(call.host, call.peer)
            && self.from_ports.contains(from)
            && self.ports.contains(to)
    }
}

/// What the first rule that applies says; `None` without one.
pub(crate) fn asked(rules: &[Rule], call: Call) -> Option<&AskConfig> {
    rules.iter().find(|rule| rule.applies(call))?.ask.as_ref()
}

/// True if a rule could apply to a flow of which only the addresses are known.
pub(crate) fn covers(rules: &[Rule], host: Option<IpAddr>, peer: Option<IpAddr>) -> bool {
    rules.iter().any(|rule| rule.ask.is_some() && rule.joins(host, peer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    fn prefix(address: [u8; 4], length: u8) -> Prefix {
        Prefix::new(Ipv4Addr::from(address).into(), length).unwrap()
    }

    fn rule(peers: Prefix, ports: Ports, ask: Option<AskConfig>) -> Rule {
        let (hosts, opener) = (prefix([10, 0, 0, 0], 8), Opener::Any);
        Rule { hosts, peers, ports, from_ports: Ports::ALL, opener, ask }
    }

    fn call(peer: [u8; 4], port: u16) -> Call {
        let (host, peer) = (Some(IpAddr::from([10, 0, 0, 1])), Some(IpAddr::from(peer)));
        Call { host, peer, ports: [4000, port], is_ours: true }
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
    fn a_rule_may_name_who_opens_and_from_which_port() {
        let ask = Some(AskConfig::default());
        let any = rule(prefix([192, 0, 2, 0], 24), Ports::ALL, ask);
        let peers = [Rule { opener: Opener::Peer, ..any.clone() }];
        let own = [Rule { opener: Opener::Host, from_ports: Ports { first: 1, last: 4000 }, ..any }];
        let ours = call([192, 0, 2, 8], 80);
        let theirs = Call { is_ours: false, ..ours };
        let all = |call| [&peers, &own].map(|rules| asked(rules, call).is_some());
        assert_eq!((all(ours), all(theirs)), ([false, true], [true, false]));
        assert_eq!(all(Call { ports: [4001, 80], ..ours }), [false, false]);
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
