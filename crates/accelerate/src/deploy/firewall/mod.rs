//! Checks whether the machine's firewalls will accept on the TUN interfaces the packets that they accept
//! today between LAN and satellite.
//!
//! Without the gateway a packet passes the forward chains once. With the gateway it passes them twice: from
//! the LAN to a TUN interface, untracked by connection tracking, and from the other TUN interface to the
//! satellite. Rules that match interfaces or connection states may decide differently there. So each ruleset
//! is evaluated three times; it is an error if a packet is accepted today and would be dropped later.
//!
//! Conditions other than interfaces and states (addresses, ports, marks) are not interpreted but compared as
//! text: rules with the same text match the same packets. The packets tried are one that matches no such
//! condition, and for each condition one that matches it, including the conditions of the rules that lead to
//! its chain.

mod fix;
mod iptables;
mod nft;
#[cfg(test)]
mod tests;

use bentpipe_os::{filters, nft as program};
use bentpipe_scenario::gateway_file::{Deploy, Firewall};
use bentpipe_service::{CheckStatus, Finding};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum depth of jumps between chains; the kernel allows 16.
const DEEPEST: usize = 16;

/// What a rule does with a matching packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum FirewallAction {
    Accept,
    Drop,
    Return,
    /// Enters another chain; true if evaluation returns afterwards (jump, not goto).
    Enter(String, bool),
    /// Continues with the next rule.
    #[default]
    Next,
}

/// Interface names in a condition; `is_not`: the condition is negated.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InterfaceMatch {
    names: Vec<String>,
    is_not: bool,
}

impl InterfaceMatch {
    /// A condition that is not negated.
    fn one(name: &str) -> Self {
        Self { names: vec![name.to_owned()], is_not: false }
    }

    fn hold(&self, name: &str) -> bool {
        let is_like = |pattern: &String| match pattern.strip_suffix(['*', '+']) {
            Some(begin) => name.starts_with(begin),
            None => pattern == name,
        };
        self.names.iter().any(is_like) != self.is_not
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    /// Conditions on input and output interface.
    at: [Vec<InterfaceMatch>; 2],
    /// States of connection tracking; true if negated.
    states: Vec<(Vec<String>, bool)>,
    /// True if it never matches TCP.
    is_of_others: bool,
    /// All other conditions as text.
    words: String,
    act: FirewallAction,
    /// The whole rule as text.
    text: String,
    /// Handle (nft) or number from 1 (iptables).
    place: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Chain {
    /// For chains on the forward hook: true if the policy is drop.
    drops: Option<bool>,
    rules: Vec<Rule>,
}

/// Origin of a ruleset.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tool {
    /// `nft` with family and table.
    Nft { family: String, table: String },
    /// An `iptables` program with its table.
    Iptables { program: String, table: String },
}

/// The chains of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ruleset {
    tool: Tool,
    chains: BTreeMap<String, Chain>,
}

/// A packet that is tried.
#[derive(Clone, Copy, Debug)]
struct Packet<'a> {
    from: &'a str,
    to: &'a str,
    state: &'a str,
    /// The other conditions that it matches.
    words: &'a BTreeSet<&'a str>,
    is_tcp: bool,
}

impl Rule {
    /// Adds a condition that is kept as text.
    fn add_word(&mut self, word: &str) {
        if !self.words.is_empty() {
            self.words.push(' ');
        }
        self.words += word;
    }

    fn holds(&self, packet: &Packet<'_>) -> bool {
        let named =
            [packet.from, packet.to].iter().zip(&self.at).all(|(name, all)| all.iter().all(|n| n.hold(name)));
        let stands = |(states, is_not): &(Vec<String>, bool)| {
            states.iter().any(|s| s.eq_ignore_ascii_case(packet.state)) != *is_not
        };
        named
            && self.states.iter().all(stands)
            && !(packet.is_tcp && self.is_of_others)
            && (self.words.is_empty() || packet.words.contains(&*self.words))
    }
}

impl Ruleset {
    /// Chains on the forward hook.
    fn bases(&self) -> impl Iterator<Item = (&str, &Chain, bool)> {
        self.chains.iter().filter_map(|(name, chain)| Some((&**name, chain, chain.drops?)))
    }

    /// True if all base chains accept a packet.
    fn passes(&self, packet: &Packet<'_>) -> bool {
        self.bases().all(|(_, chain, drops)| self.walk(chain, packet, 0).unwrap_or(!drops))
    }

    /// The decision of a chain, if it makes one: true if it accepts the packet.
    fn walk(&self, chain: &Chain, packet: &Packet<'_>, depth: usize) -> Option<bool> {
        if depth > DEEPEST {
            return None;
        }
        for rule in chain.rules.iter().filter(|rule| rule.holds(packet)) {
            match &rule.act {
                FirewallAction::Accept => return Some(true),
                FirewallAction::Drop => return Some(false),
                FirewallAction::Return => return None,
                FirewallAction::Next => {}
                FirewallAction::Enter(name, and_back) => {
                    let inner = self.chains.get(name).and_then(|c| self.walk(c, packet, depth + 1));
                    if inner.is_some() || !and_back {
                        return inner;
                    }
                }
            }
        }
        None
    }

    /// Sets of conditions to try: none, and for each rule its own with those of the rules that lead to its
    /// chain (one path for each chain).
    fn trials(&self) -> Vec<BTreeSet<&str>> {
        let mut leads: BTreeMap<&str, BTreeSet<&str>> =
            self.bases().map(|(name, ..)| (name, BTreeSet::new())).collect();
        let mut names: Vec<&str> = leads.keys().copied().collect();
        let mut all = vec![BTreeSet::new()];
        while let Some(name) = names.pop() {
            let lead = leads.get(name).cloned().unwrap_or_default();
            for rule in self.chains.get(name).into_iter().flat_map(|chain| &chain.rules) {
                let mut words = lead.clone();
                if !rule.words.is_empty() {
                    words.insert(&rule.words);
                    all.push(words.clone());
                }
                if let FirewallAction::Enter(next, _) = &rule.act
                    && !leads.contains_key(&**next)
                {
                    leads.insert(next, words);
                    names.push(next);
                }
            }
        }
        all
    }
}

/// Interfaces of the gateway.
#[derive(Clone, Copy, Debug)]
struct GatewayInterfaces<'a> {
    lan: &'a [String],
    satellite: &'a str,
    tun_lan: &'a str,
    tun_satellite: &'a str,
    tcp_only: bool,
}

/// The result of checking a ruleset.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// Everything accepted today will be accepted.
    Fine,
    /// It accepts nothing between LAN and satellite today.
    Closed,
    /// The first packet accepted today that would be dropped: its input and output interface.
    Breaks(String, String),
}

impl GatewayInterfaces<'_> {
    fn judge(&self, rules: &Ruleset) -> Verdict {
        let (mut is_open, trials) = (false, rules.trials());
        for lan in self.lan {
            let (out, back) = ((&**lan, self.satellite), (self.satellite, &**lan));
            for ((from, to), state) in
                [out, back].into_iter().flat_map(|way| [(way, "new"), (way, "established")])
            {
                // the interfaces and the state on both parts of the way through the gateway
                let ways = if to == self.satellite {
                    [(from, self.tun_lan, "untracked"), (self.tun_satellite, to, state)]
                } else {
                    [(from, self.tun_satellite, state), (self.tun_lan, to, "untracked")]
                };
                for words in &trials {
                    let passes = |from: &str, to: &str, state: &str| {
                        rules.passes(&Packet { from, to, state, words, is_tcp: self.tcp_only })
                    };
                    if !passes(from, to, state) {
                        continue;
                    }
                    is_open = true;
                    if let Some((from, to, _)) = ways.into_iter().find(|way| !passes(way.0, way.1, way.2)) {
                        return Verdict::Breaks(from.to_owned(), to.to_owned());
                    }
                }
            }
        }
        if is_open { Verdict::Fine } else { Verdict::Closed }
    }
}

/// Checks all firewalls of this machine. `tcp_only`: only TCP goes through the gateway.
pub(super) fn findings(deploy: &Deploy, tcp_only: bool) -> Vec<Finding> {
    let site = GatewayInterfaces {
        lan: &deploy.lan,
        satellite: &deploy.satellite,
        tun_lan: &deploy.tun_lan,
        tun_satellite: &deploy.tun_satellite,
        tcp_only,
    };
    let (mut all, rulesets) = read();
    let mut fine = 0;
    for rules in rulesets.iter().filter(|rules| rules.bases().next().is_some()) {
        let name = format!("firewall {}", rules.tool);
        match site.judge(rules) {
            Verdict::Fine => fine += 1,
            Verdict::Closed => {
                let found = "drops everything between LAN and satellite, with the gateway and without";
                all.push(Finding::warning(name, found));
            }
            Verdict::Breaks(from, to) => {
                let found = format!(
                    "would drop traffic that it accepts today: with the gateway it goes from {from} to {to}"
                );
                let is_refused = deploy.firewall == Firewall::Check;
                let standing = if is_refused { CheckStatus::Bad } else { CheckStatus::Lack };
                let mut finding = Finding::new(name, standing, found);
                finding.mends = fix::commands(&site, rules);
                if is_refused {
                    finding = finding.with_help("or set firewall = \"ignore\" in [deploy] to start anyway");
                }
                all.push(finding);
            }
        }
    }
    if fine > 0 {
        let found = format!("{fine} accept over the TUN interfaces what they accept today");
        all.push(Finding::good("firewalls", found));
    }
    all
}

/// Reads all rulesets; also returns findings about those that cannot be read.
fn read() -> (Vec<Finding>, Vec<Ruleset>) {
    let (mut faults, mut all) = (Vec::new(), Vec::new());
    let mut fault = |what: &str, why: String| {
        let found = format!("cannot be read: {why}; what it drops is only known once the gateway runs");
        faults.push(Finding::warning(what, found));
    };
    match program::list() {
        Ok(text) => all.extend(nft::read(&text)),
        Err(why) => fault("firewall nft", why),
    }
    for v6 in [false, true] {
        let family = if v6 { "ip6" } else { "ip" };
        // tables that `iptables` created in nftables: only `iptables` knows the names of all their matches,
        // and their owner uses its commands
        let is_its = |rules: &Ruleset| {
            matches!(&rules.tool, Tool::Nft { family: f, .. } if f == family)
                && rules.chains.get("FORWARD").is_some_and(|c| c.drops.is_some())
        };
        if all.iter().any(is_its)
            && let Some(Ok((program, text))) = filters::saved(v6, filters::Kind::Nft)
        {
            all.retain(|rules| !is_its(rules));
            all.extend(iptables::read(&program, &text));
        }
        if filters::is_loaded(v6) {
            let name = if v6 { "ip6tables-legacy" } else { "iptables-legacy" };
            match filters::saved(v6, filters::Kind::Legacy) {
                Some(Ok((program, text))) => all.extend(iptables::read(&program, &text)),
                Some(Err(why)) => fault(name, why),
                None => fault(name, "the program is not installed".to_owned()),
            }
        }
    }
    (faults, all)
}

/// Splits a rule into words; a quoted string is one word, and with `sets` a set in braces too.
fn words(text: &str, sets: bool) -> Vec<&str> {
    let (mut depth, mut is_quoted) = (0, false);
    let is_end = |c: char| {
        match c {
            '"' => is_quoted = !is_quoted,
            '{' if sets && !is_quoted => depth += 1,
            '}' if sets && !is_quoted => depth -= 1,
            _ => {}
        }
        c.is_whitespace() && depth == 0 && !is_quoted
    };
    text.split(is_end).filter(|word| !word.is_empty()).collect()
}

impl core::fmt::Display for Tool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Nft { family, table } => write!(f, "nft {family} {table}"),
            Self::Iptables { program, table } => write!(f, "{program} {table}"),
        }
    }
}
