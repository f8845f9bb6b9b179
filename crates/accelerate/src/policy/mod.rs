//! Which connections are accelerated: the rules of a gateway file, asked once for the packet that opens a connection.
//!
//! The answer is a function of that packet and the rules alone, so a repeated SYN gets the same one. Whether a connection belongs to the sample that is left alone is
//! drawn by the gateway itself, among those that the rules would accelerate.

use bentpipe_scenario::gateway_file::{Action, GatewayFile, Prefix, Rule, Side};
use core::net::IpAddr;

/// What is known of the packet that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Who opens.
    pub from: IpAddr,
    /// To whom.
    pub to: IpAddr,
    /// Port of who opens.
    pub from_port: u16,
    /// Port that is opened.
    pub port: u16,
    /// DSCP of the packet.
    pub dscp: u8,
    /// The side it came from.
    pub side: Side,
}

/// The rules of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    rules: Vec<Rule>,
    otherwise: Action,
    subscriber: (u8, u8),
}

impl Policy {
    /// As the file says.
    pub fn new(file: &GatewayFile) -> Self {
        Self { rules: file.rules.clone(), otherwise: file.otherwise, subscriber: file.subscriber_prefix }
    }

    /// What becomes of a connection: what the first rule says that matches.
    pub fn decide(&self, opening: &Opening) -> Action {
        self.rules.iter().find(|rule| matches(rule, opening)).map_or(self.otherwise, |rule| rule.action)
    }

    /// The subscriber to whom an address on the LAN belongs.
    pub fn subscriber(&self, address: IpAddr) -> Option<Prefix> {
        let length = if address.is_ipv4() { self.subscriber.0 } else { self.subscriber.1 };
        Prefix::new(address, length)
    }
}

fn matches(rule: &Rule, opening: &Opening) -> bool {
    let holds =
        |prefixes: &[Prefix], address| prefixes.is_empty() || prefixes.iter().any(|p| p.contains(address));
    rule.opened_from.is_none_or(|side| side == opening.side)
        && (rule.ports.is_empty() || rule.ports.iter().any(|r| (r.first..=r.last).contains(&opening.port)))
        && (rule.from_ports.is_empty()
            || rule.from_ports.iter().any(|r| (r.first..=r.last).contains(&opening.from_port)))
        && (rule.dscp.is_empty() || rule.dscp.contains(&opening.dscp))
        && holds(&rule.from, opening.from)
        && holds(&rule.to, opening.to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_scenario::Source;
    use bentpipe_scenario::gateway_file::load;

    const HEAD: &str =
        "schema = 1\n[satellite]\n[deploy]\nkind = \"routed\"\nlan = \"a\"\nsatellite = \"b\"\n";

    fn policy(rules: &str) -> Policy {
        Policy::new(&load(&Source::new("t", format!("{HEAD}{rules}"))).unwrap())
    }

    fn opening(from: &str, to: &str, port: u16) -> Opening {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        Opening { from, to, from_port: 40_000, port, dscp: 0, side: Side::Lan }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = policy(
            "[[rules]]\naction = \"pass\"\nport = [22, \"8000-8100\"]\n[[rules]]\naction = \"accelerate\"\nfrom = [\"10.0.0.0/8\", \"2001:db8::/32\"]\n[policy]\notherwise = \"pass\"\n",
        );
        for (from, to, port, wanted) in [
            ("10.1.2.3", "192.0.2.1", 80, Action::Accelerate),
            ("10.1.2.3", "192.0.2.1", 22, Action::Pass),
            ("10.1.2.3", "192.0.2.1", 8100, Action::Pass),
            ("10.1.2.3", "192.0.2.1", 8101, Action::Accelerate),
            ("11.1.2.3", "10.0.2.1", 80, Action::Pass),
            ("2001:db8:1::1", "2001:db9::1", 443, Action::Accelerate),
            ("2001:db9::1", "2001:db8::1", 443, Action::Pass),
        ] {
            assert_eq!(policy.decide(&opening(from, to, port)), wanted, "{from} -> {to}:{port}");
        }
    }

    #[test]
    fn every_condition_must_hold() {
        let policy = policy(
            "[[rules]]\naction = \"pass\"\nto = \"192.0.2.1\"\nfrom_port = 40000\ndscp = [\"ef\", 8]\nopened_from = \"satellite\"\n",
        );
        let all = Opening { dscp: 46, side: Side::Satellite, ..opening("10.0.0.1", "192.0.2.1", 1) };
        assert_eq!(policy.decide(&all), Action::Pass);
        for other in [
            Opening { dscp: 9, ..all },
            Opening { side: Side::Lan, ..all },
            Opening { from_port: 40_001, ..all },
            Opening { to: "192.0.2.2".parse().unwrap(), ..all },
        ] {
            assert_eq!(policy.decide(&other), Action::Accelerate, "{other:?}");
        }
    }

    #[test]
    fn subscribers_are_prefixes() {
        let policy = policy("[policy]\nsubscriber_prefix = { v4 = 24, v6 = 48 }\n");
        let of = |text: &str| policy.subscriber(text.parse().unwrap()).unwrap().to_string();
        assert_eq!(of("10.1.2.3"), "10.1.2.0/24");
        assert_eq!(of("2001:db8:1:2::3"), "2001:db8:1::/48");
    }
}
