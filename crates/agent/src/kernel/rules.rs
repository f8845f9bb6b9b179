//! The rules of an agent file for a tagger, which speaks of hosts and peers.

use bentpipe_base::{Prefix, Size};
use bentpipe_gateway::{Policy, PortRange, Rule as Condition, Side};
use bentpipe_scenario::agent_file::AgentFile;
use bentpipe_tagger::{ConfigError, Opener, Ports, Rule, TaggerConfig};
use bentpipe_tcp::Config;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Most rules of a tagger: a list in a rule of the file makes several.
const MOST: usize = 4096;

/// Why rules do not fit a tagger.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// There are too many.
    #[error(
        "the lists of the rules have more than {MOST} combinations of addresses and ports: write fewer, or wider ones"
    )]
    Many,
    /// It refuses the configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// The configuration of a tagger for `file`, on a path with packets of `mtu` bytes.
///
/// # Errors
/// Too many combinations of addresses and ports, or an MTU that is too small.
pub fn tagger_config(file: &AgentFile, mtu: u16) -> Result<TaggerConfig, Unfit> {
    let mut rules = Vec::new();
    for (condition, ask) in file.site.policy.rules.iter().zip(&file.asks) {
        for opener in openers(condition) {
            add(&mut rules, condition, opener, ask.as_ref())?;
        }
    }
    let flows = u32::try_from(file.limits.flows).unwrap_or(u32::MAX);
    let defaults = TaggerConfig::new(rules);
    let half_open = defaults.half_open.min(flows);
    let config = TaggerConfig { mtu: Size(u64::from(mtu)), flows, half_open, ..defaults };
    config.check()?;
    Ok(config)
}

/// Who may open the connections of a rule. The addresses that it names are the opener's and the other's.
fn openers(condition: &Condition) -> Vec<Opener> {
    match condition.opened_from {
        Some(Side::Lan) => vec![Opener::Host],
        Some(Side::Satellite) => vec![Opener::Peer],
        None => vec![Opener::Host, Opener::Peer],
    }
}

/// Any address of each family, if none are named.
fn prefixes(named: &[Prefix]) -> Vec<Prefix> {
    if !named.is_empty() {
        return named.to_vec();
    }
    let all = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    all.into_iter().filter_map(|any| Prefix::new(any, 0)).collect()
}

fn ranges(named: &[PortRange]) -> Vec<Ports> {
    if named.is_empty() {
        return vec![Ports::ALL];
    }
    named.iter().map(|range| Ports { first: range.first, last: range.last }).collect()
}

fn add(
    rules: &mut Vec<Rule>,
    condition: &Condition,
    opener: Opener,
    ask: Option<&Config>,
) -> Result<(), Unfit> {
    let (from, to) = (prefixes(&condition.from), prefixes(&condition.to));
    let (hosts, peers) = if opener == Opener::Host { (from, to) } else { (to, from) };
    let ask = ask.and_then(|ask| ask.signalling.as_ref()).map(|signalling| signalling.ask.clone());
    let pairs = hosts.iter().flat_map(|host| peers.iter().map(move |peer| (*host, *peer)));
    for (hosts, peers) in pairs.filter(|(a, b)| a.address().is_ipv4() == b.address().is_ipv4()) {
        for ports in ranges(&condition.ports) {
            for from_ports in ranges(&condition.from_ports) {
                if rules.len() == MOST {
                    return Err(Unfit::Many);
                }
                rules.push(Rule { hosts, peers, ports, from_ports, opener, ask: ask.clone() });
            }
        }
    }
    Ok(())
}

/// Addresses of the peers of all connections that the rules take, each once.
pub fn peers(policy: &Policy) -> Vec<Prefix> {
    use bentpipe_gateway::Action;
    let taken = policy.rules.iter().filter(|rule| rule.action == Action::Accelerate);
    let of = |rule: &Condition| {
        let by = |opener| if opener == Opener::Host { &rule.to } else { &rule.from };
        openers(rule).into_iter().flat_map(|opener| prefixes(by(opener))).collect::<Vec<_>>()
    };
    let mut all: Vec<Prefix> = taken.flat_map(of).collect();
    all.sort_by_key(|prefix| (prefix.length(), prefix.address()));
    // a wider one contains the narrower, and nftables refuses sets that overlap
    let mut apart: Vec<Prefix> = Vec::new();
    for prefix in all {
        if !apart.iter().any(|wide| wide.contains(prefix.address())) {
            apart.push(prefix);
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Rate;
    use bentpipe_scenario::Source;
    use bentpipe_scenario::agent_file::load;

    fn file(rules: &str) -> AgentFile {
        let head = "schema = 1\nmethod = \"kernel\"\n[deploy]\nkind = \"host\"\nnetwork = \"eth0\"\n";
        load(&Source::new("t", format!("{head}{rules}"))).unwrap()
    }

    #[test]
    fn what_a_rule_says_of_the_opener_is_said_of_host_and_peer() {
        let file = file(
            "[[rules]]\naction = \"pass\"\nport = 22\nopened_from = \"host\"\n\
             [[rules]]\nto = \"192.0.2.0/24\"\nport = [80, \"8000-8999\"]\nask = \"5 Mbit/s\"\n",
        );
        let rules = tagger_config(&file, 1500).unwrap().rules;
        // both families; two openers with two ranges, of which one family fits the prefix
        assert_eq!(rules.len(), 2 + 2 * 2);
        assert_eq!((rules[0].opener, rules[0].ask.is_none()), (Opener::Host, true));
        let prefixes = |rule: &Rule| [rule.hosts.to_string(), rule.peers.to_string()];
        assert_eq!(prefixes(&rules[2]), ["0.0.0.0/0", "192.0.2.0/24"]);
        assert_eq!((prefixes(&rules[4]), rules[4].opener), (prefixes_back(), Opener::Peer));
        assert_eq!(rules[3].ports, Ports { first: 8000, last: 8999 });
        assert_eq!(rules[5].ask.as_ref().and_then(|ask| ask.ask), Rate::from_bps(5_000_000));
        let named: Vec<String> = peers(&file.site.policy).iter().map(ToString::to_string).collect();
        assert_eq!(named, ["0.0.0.0/0", "::/0"], "a peer may open from anywhere");
    }

    fn prefixes_back() -> [String; 2] {
        ["192.0.2.0/24".to_owned(), "0.0.0.0/0".to_owned()]
    }

    #[test]
    fn peers_do_not_overlap_and_combinations_are_bounded() {
        let rules =
            "[[rules]]\nto = [\"192.0.2.0/24\", \"192.0.2.7\", \"2001:db8::/32\"]\nopened_from = \"host\"\n";
        let named: Vec<String> = peers(&file(rules).site.policy).iter().map(ToString::to_string).collect();
        assert_eq!(named, ["192.0.2.0/24", "2001:db8::/32"]);
        let ports: Vec<String> = (1..90).map(|n| (n * 2).to_string()).collect();
        let ports = ports.join(", ");
        let many = file(&format!("[[rules]]\nport = [{ports}]\nfrom_port = [{ports}]\n"));
        assert!(matches!(tagger_config(&many, 1500), Err(Unfit::Many)));
        assert!(matches!(tagger_config(&file(rules), 500), Err(Unfit::Config(_))));
    }
}
