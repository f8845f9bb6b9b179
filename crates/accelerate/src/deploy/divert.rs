//! nftables rules that select the packets diverted to a routed gateway.
//!
//! If the hop has a rate, all traffic to the satellite must pass the gateway's pacer, so everything is
//! diverted. A flow router counts all flows of the direction that it manages, so the same holds for that.
//! Otherwise only TCP is diverted, and only connections that the policy could accelerate. The kernel forwards
//! the others as if there were no gateway, at no extra cost.
//!
//! The policy is defined on the SYN, but the kernel sees any packet of a connection, in both directions. So
//! each packet is matched against the rules twice: as part of a connection opened from the LAN side, and as
//! part of one opened from the satellite side. It is diverted if either could be accelerated. Only the DSCP
//! of the SYN counts and other packets do not show it, so rules with a DSCP exclude nothing here. Hence no
//! packet of an accelerated connection is missed, both directions of a connection take the same path, and the
//! gateway makes the final decision. The cost: if all but a few ports are accelerated, packets to these ports
//! are diverted too, since they might be replies in a connection opened from such a port.
//!
//! ```text
//! outward (packet from the LAN) -> by_lan: addresses and ports as in the rules     -> divert
//!                               -> by_satellite: source and destination exchanged -> divert
//! ```

use bentpipe_os::sysctl;
use bentpipe_scenario::gateway_file::{Action, Deploy, GatewayFile, Policy, PortRange, Prefix, Rule, Side};
use core::fmt::Write as _;

/// Which packets are diverted to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Everything in both directions.
    Both,
    /// Everything to the satellite, and TCP from it.
    All,
    /// All TCP.
    Tcp,
    /// TCP connections that the policy could accelerate.
    Policy,
    /// Nothing: the policy accelerates no connection.
    Nothing,
}

impl Scope {
    pub(super) fn of(file: &GatewayFile) -> Self {
        let speaks = |action| file.policy.rules.iter().any(|rule| rule.action == action);
        if file.rate.as_ref().is_some_and(|rate| rate.inward.is_some()) {
            Self::Both
        } else if file.config.rate.is_some() || file.rate.is_some() {
            Self::All
        } else if file.policy.otherwise == Action::Accelerate && !file.policy.rules.iter().any(excludes) {
            Self::Tcp
        } else if file.policy.otherwise == Action::Accelerate || speaks(Action::Accelerate) {
            Self::Policy
        } else {
            Self::Nothing
        }
    }

    /// True if it brings other protocols than TCP.
    pub(super) const fn has_all(self) -> bool {
        matches!(self, Self::Both | Self::All)
    }

    /// The scope after a reload to a file that needs `new`; `same`: the rules are unchanged. Never narrower
    /// than before. If two different policies would have to be combined, all TCP is diverted.
    pub(super) const fn after_reload(self, new: Self, same: bool) -> Self {
        match (self, new) {
            (Self::Both, _) | (_, Self::Both) => Self::Both,
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::Policy, Self::Policy) if same => self,
            (Self::Nothing, Self::Nothing) => self,
            _ => Self::Tcp,
        }
    }
}

/// True for a rule that certainly excludes some connections.
fn excludes(rule: &Rule) -> bool {
    rule.action == Action::Pass && rule.dscp.is_empty()
}

/// Matches a SYN.
const OPENS: &str = "tcp flags & (fin | syn | rst | ack) == syn";
/// Above this rate of SYNs the kernel forwards further connections past the gateway: a SYN flood must not
/// fill the interface queue that other connections need. Not used with [`Scope::All`], where all traffic to
/// the satellite must be paced.
const MOST: &str = "20000/second";
const MOST_AT_ONCE: u32 = 20_000;

/// Setting that lets connection tracking accept out-of-window data; it exists only if tracking is loaded.
pub(super) const LIBERAL: &str = "net/netfilter/nf_conntrack_tcp_be_liberal";

/// True if this machine tracks connections.
pub(super) fn is_tracked() -> bool {
    sysctl::read(LIBERAL).is_ok()
}

/// A set of interfaces in nftables syntax.
pub(super) fn names(all: &[String]) -> String {
    format!("{{ {} }}", all.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "))
}

/// The nftables table of a gateway with `scope`. Priorities: -300 is before connection tracking (-200), -90
/// is after destination NAT, which also reverses source NAT (-100).
pub(super) fn script(file: &GatewayFile, scope: Scope, tracked: bool) -> String {
    let Deploy { nft_table: table, satellite, tun_lan, mark, .. } = &file.deploy;
    let lan = names(&file.deploy.lan);
    let (from_lan, from_satellite) = (format!("{mark:#x}"), format!("{:#x}", mark + 1));
    let to_satellite = format!("fib daddr oifname \"{satellite}\" meta mark set {from_lan}");
    let to_lan = format!("fib daddr oifname {lan} meta mark set {from_satellite}");
    let mut out = format!(
        "add table inet {table}
add chain inet {table} outward {{ type filter hook prerouting priority -300; policy accept; }}
add chain inet {table} inward {{ type filter hook prerouting priority -90; policy accept; }}
"
    );
    let mut rule = |chain: &str, words: &str| {
        let _ = writeln!(out, "add rule inet {table} {chain} {words}");
    };
    let divert = match scope {
        Scope::Nothing => return out,
        Scope::Both | Scope::All => to_satellite.clone(),
        Scope::Tcp => format!("meta l4proto tcp {to_satellite}"),
        Scope::Policy => "meta l4proto tcp jump outward_policy".to_owned(),
    };
    if !scope.has_all() {
        let flood = format!("{OPENS} limit rate over {MOST} burst {MOST_AT_ONCE} packets counter accept");
        rule("outward", &format!("iifname {lan} {flood}"));
        rule("inward", &format!("iifname \"{satellite}\" {flood}"));
    }
    rule("outward", &format!("iifname {lan} {divert}"));
    if tracked {
        rule("outward", &format!("meta mark {from_lan} fib daddr . mark oifname \"{tun_lan}\" notrack"));
        rule("outward", &format!("iifname \"{tun_lan}\" notrack"));
    }
    if scope != Scope::Policy {
        let protocol = if scope == Scope::Both { "" } else { "meta l4proto tcp " };
        rule("inward", &format!("iifname \"{satellite}\" {protocol}{to_lan}"));
        return out;
    }
    rule("inward", &format!("iifname \"{satellite}\" meta l4proto tcp jump inward_policy"));
    let mut chains = Chains { table, protocol: "tcp", policy: &file.policy, text: String::new() };
    chains.side("outward", Side::Lan, &to_satellite, &from_lan);
    chains.side("inward", Side::Satellite, &to_lan, &from_satellite);
    // a chain must exist before a rule refers to it
    let at = out.find("add rule").unwrap_or(out.len());
    out.insert_str(at, &chains.text);
    out
}

/// The nftables table of a service on the host itself, for the connections that the policy could accelerate.
/// What the host sends for them over the interface to the network gets a mark. What arrives for them there is
/// dropped for the host's own TCP; packet sockets have seen it before. The same for the datagrams of a policy
/// of their own. Fragments, of which only the first has ports, take the usual way; so the priority of this
/// chain is before their reassembly for connection tracking (-400), as packet sockets see them.
pub(super) fn host_script(file: &GatewayFile, datagrams: Option<&Policy>) -> String {
    let Deploy { nft_table: table, satellite, mark, .. } = &file.deploy;
    let (from_host, from_network) = (format!("{mark:#x}"), format!("{:#x}", mark + 1));
    let divert = format!("meta mark set {from_host}");
    let mut chains = Chains { table, protocol: "tcp", policy: &file.policy, text: String::new() };
    chains.side("outward", Side::Lan, &divert, &from_host);
    chains.side("inward", Side::Satellite, "drop", &from_network);
    let mut arrivals = vec![("tcp", "inward_policy")];
    if let Some(policy) = datagrams {
        (chains.protocol, chains.policy) = ("udp", policy);
        chains.side("outward_udp", Side::Lan, &divert, &from_host);
        chains.side("inward_udp", Side::Satellite, "drop", &from_network);
        chains.line(format_args!(
            "rule inet {table} outward oifname \"{satellite}\" meta l4proto udp jump outward_udp_policy"
        ));
        arrivals.push(("udp", "inward_udp_policy"));
    }
    for (protocol, chain) in arrivals {
        for whole in ["ip frag-off & 0x3fff == 0", "meta nfproto ipv6 exthdr frag missing"] {
            chains.line(format_args!(
                "rule inet {table} inward iifname \"{satellite}\" {whole} meta l4proto {protocol} fib daddr type local jump {chain}"
            ));
        }
    }
    format!(
        "add table inet {table}
add chain inet {table} outward {{ type route hook output priority -150; policy accept; }}
add chain inet {table} inward {{ type filter hook prerouting priority -450; policy accept; }}
{}add rule inet {table} outward oifname \"{satellite}\" meta l4proto tcp jump outward_policy
",
        chains.text
    )
}

/// The chains that match packets against the policy.
struct Chains<'a> {
    table: &'a str,
    protocol: &'static str,
    policy: &'a Policy,
    text: String,
}

impl Chains<'_> {
    fn line(&mut self, words: core::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "add {words}");
    }

    /// Adds the chains for packets from `side`; `bring` is the nftables statement that diverts a packet.
    fn side(&mut self, hook: &str, side: Side, bring: &str, mark: &str) {
        let table = self.table;
        for chain in ["way", "by_lan", "by_satellite", "policy"] {
            self.line(format_args!("chain inet {table} {hook}_{chain}"));
        }
        self.line(format_args!("rule inet {table} {hook}_way {bring}"));
        for (opener, chain) in [(Side::Lan, "by_lan"), (Side::Satellite, "by_satellite")] {
            self.policy((hook, chain), opener, opener == side);
        }
        self.line(format_args!("rule inet {table} {hook}_policy jump {hook}_by_lan"));
        self.line(format_args!(
            "rule inet {table} {hook}_policy meta mark != {mark} jump {hook}_by_satellite"
        ));
    }

    /// Adds the policy for connections opened by `opener`. `as_opened`: for packets in the direction of the
    /// SYN.
    fn policy(&mut self, (hook, chain): (&str, &str), opener: Side, as_opened: bool) {
        let Self { table, protocol, policy, .. } = *self;
        let verdict = |action| match action {
            Action::Accelerate => format!("goto {hook}_way"),
            Action::Pass => "return".to_owned(),
        };
        for rule in policy.rules.iter().filter(|rule| rule.opened_from.is_none_or(|side| side == opener)) {
            if rule.action == Action::Accelerate || excludes(rule) {
                for condition in conditions(rule, protocol, as_opened) {
                    let end = verdict(rule.action);
                    self.line(format_args!("rule inet {table} {hook}_{chain} {condition}{end}"));
                }
            }
        }
        self.line(format_args!("rule inet {table} {hook}_{chain} {}", verdict(policy.otherwise)));
    }
}

/// A rule's conditions in nftables syntax, one string per alternative; each ends in a space.
fn conditions(rule: &Rule, protocol: &str, as_opened: bool) -> Vec<String> {
    let (from, to) = if as_opened { ("saddr", "daddr") } else { ("daddr", "saddr") };
    let (from_port, to_port) = if as_opened { ("sport", "dport") } else { ("dport", "sport") };
    let ports = |field, ranges| ports(protocol, field, ranges);
    let ports = format!("{}{}", ports(from_port, &rule.from_ports), ports(to_port, &rule.ports));
    if rule.from.is_empty() && rule.to.is_empty() {
        return vec![ports];
    }
    let family = |is_v4: bool| {
        let from = addresses(from, &rule.from, is_v4)?;
        let to = addresses(to, &rule.to, is_v4)?;
        let which = if is_v4 { "ipv4" } else { "ipv6" };
        Some(format!("meta nfproto {which} {from}{to}{ports}"))
    };
    [family(true), family(false)].into_iter().flatten().collect()
}

/// The condition on an address of one family; `None` if no address of the family can match.
fn addresses(field: &str, prefixes: &[Prefix], is_v4: bool) -> Option<String> {
    let own: Vec<Prefix> = prefixes.iter().copied().filter(|p| p.address().is_ipv4() == is_v4).collect();
    if prefixes.is_empty() || own.iter().any(|p| p.length() == 0) {
        return Some(String::new());
    }
    // nftables rejects sets with overlapping prefixes
    let within = |p: &Prefix, i: usize| {
        own.iter().enumerate().any(|(j, other)| {
            other.contains(p.address()) && (other.length() < p.length() || other == p && j < i)
        })
    };
    let apart: Vec<String> =
        own.iter().enumerate().filter(|(i, p)| !within(p, *i)).map(|(_, p)| p.to_string()).collect();
    let family = if is_v4 { "ip" } else { "ip6" };
    (!apart.is_empty()).then(|| format!("{family} {field} {{ {} }} ", apart.join(", ")))
}

fn ports(protocol: &str, field: &str, ranges: &[PortRange]) -> String {
    let mut sorted = ranges.to_vec();
    sorted.sort_by_key(|range| range.first);
    let mut apart: Vec<PortRange> = Vec::new();
    for range in sorted {
        match apart.last_mut() {
            Some(last) if range.first <= last.last.saturating_add(1) => last.last = last.last.max(range.last),
            _ => apart.push(range),
        }
    }
    let words: Vec<String> = apart.iter().map(ToString::to_string).collect();
    if words.is_empty() { String::new() } else { format!("{protocol} {field} {{ {} }} ", words.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_os::{namespace, nft};
    use bentpipe_scenario::Source;
    use bentpipe_scenario::gateway_file::load;

    fn file(rate: &str, policy: &str) -> GatewayFile {
        let text = format!(
            "schema = 1\n[satellite]\n{rate}\n[deploy]\nkind = \"routed\"\nlan = [\"eth1\", \"eth2\"]\nsatellite = \"eth0\"\n{policy}"
        );
        load(&Source::new("t", text)).unwrap()
    }

    fn chain(script: &str, name: &str) -> Vec<String> {
        let head = format!("add rule inet bentpipe_gateway {name} ");
        script.lines().filter_map(|line| line.strip_prefix(&head)).map(str::to_owned).collect()
    }

    const MIXED: &str = "[[rules]]\naction = \"pass\"\nport = [22, \"8000-8100\", \"8050-8200\", 8201]\n\
        [[rules]]\naction = \"pass\"\ndscp = \"ef\"\nto = \"192.0.2.0/24\"\n\
        [[rules]]\naction = \"accelerate\"\nfrom = [\"10.0.0.0/8\", \"10.1.0.0/16\", \"10.0.0.0/8\", \"2001:db8::/32\"]\nfrom_port = 20\nopened_from = \"lan\"\n\
        [policy]\notherwise = \"pass\"\n";

    #[test]
    fn a_rate_brings_everything_to_the_pacer() {
        let of = |rate, policy| Scope::of(&file(rate, policy));
        let rate = "rate = \"1 Mbit/s\"";
        assert_eq!(
            (of(rate, ""), of(rate, MIXED), of("", ""), of("", MIXED)),
            (Scope::All, Scope::All, Scope::Tcp, Scope::Policy)
        );
        let paced = script(&file(rate, MIXED), Scope::All, true);
        assert_eq!(
            chain(&paced, "outward"),
            [
                "iifname { \"eth1\", \"eth2\" } fib daddr oifname \"eth0\" meta mark set 0x6270",
                "meta mark 0x6270 fib daddr . mark oifname \"bentlan\" notrack",
                "iifname \"bentlan\" notrack"
            ]
        );
        assert_eq!(
            chain(&paced, "inward"),
            [
                "iifname \"eth0\" meta l4proto tcp fib daddr oifname { \"eth1\", \"eth2\" } meta mark set 0x6271"
            ]
        );
        let plain = script(&file("", ""), Scope::Tcp, false);
        assert!(!plain.contains("notrack"));
        assert_eq!(
            chain(&plain, "outward")[1],
            "iifname { \"eth1\", \"eth2\" } meta l4proto tcp fib daddr oifname \"eth0\" meta mark set 0x6270"
        );
    }

    #[test]
    fn a_flow_router_sees_all_of_the_directions_that_it_manages() {
        let rate = "[rate]\nencodings = [\"scone\"]\nrate = \"1 Mbit/s\"\n";
        let nothing_else = "[policy]\notherwise = \"pass\"\n";
        let one = file("", &format!("{rate}{nothing_else}"));
        let both = file("", &format!("{rate}return_rate = \"2 Mbit/s\"\n{nothing_else}"));
        assert_eq!((Scope::of(&one), Scope::of(&both)), (Scope::All, Scope::Both));
        assert_eq!(
            chain(&script(&both, Scope::Both, false), "inward"),
            ["iifname \"eth0\" fib daddr oifname { \"eth1\", \"eth2\" } meta mark set 0x6271"]
        );
        let off = file("", &format!("[rate]\n{nothing_else}"));
        assert_eq!(Scope::of(&off), Scope::Nothing);
    }

    #[test]
    fn what_the_policy_leaves_alone_stays_with_the_kernel() {
        let script = script(&file("", MIXED), Scope::Policy, false);
        // connections opened from the LAN, with the rules as written; the rule with a DSCP excludes nothing
        assert_eq!(
            chain(&script, "outward_by_lan"),
            [
                "tcp dport { 22, 8000-8201 } return",
                "meta nfproto ipv4 ip saddr { 10.0.0.0/8 } tcp sport { 20 } goto outward_way",
                "meta nfproto ipv6 ip6 saddr { 2001:db8::/32 } tcp sport { 20 } goto outward_way",
                "return"
            ]
        );
        // replies from the LAN: the opened port is the source port
        assert_eq!(chain(&script, "outward_by_satellite"), ["tcp sport { 22, 8000-8201 } return", "return"]);
        // the same connections seen from the satellite side
        assert_eq!(
            chain(&script, "inward_by_lan"),
            [
                "tcp sport { 22, 8000-8201 } return",
                "meta nfproto ipv4 ip daddr { 10.0.0.0/8 } tcp dport { 20 } goto inward_way",
                "meta nfproto ipv6 ip6 daddr { 2001:db8::/32 } tcp dport { 20 } goto inward_way",
                "return"
            ]
        );
        assert_eq!(chain(&script, "inward_by_satellite"), ["tcp dport { 22, 8000-8201 } return", "return"]);
        assert_eq!(
            chain(&script, "inward_way"),
            ["fib daddr oifname { \"eth1\", \"eth2\" } meta mark set 0x6271"]
        );
        let nothing = file("", "[policy]\notherwise = \"pass\"\n");
        assert_eq!(Scope::of(&nothing), Scope::Nothing);
        assert!(!super::script(&nothing, Scope::Nothing, true).contains("mark set"));
        // a rule that matches only by DSCP excludes nothing
        let marked = "[[rules]]\naction = \"pass\"\ndscp = \"ef\"\n";
        assert_eq!(Scope::of(&file("", marked)), Scope::Tcp);
    }

    #[test]
    fn connections_that_are_accelerated_still_come_under_new_rules() {
        use Scope::{All, Both, Nothing, Policy, Tcp};
        for (old, new, same, wanted) in [
            (Policy, Policy, true, Policy),
            (Policy, Policy, false, Tcp),
            (Policy, Nothing, false, Tcp),
            (Nothing, Policy, false, Tcp),
            (Nothing, Nothing, false, Nothing),
            (Tcp, Nothing, false, Tcp),
            (Tcp, All, true, All),
            (All, Tcp, true, All),
            (All, Both, true, Both),
            (Both, Policy, false, Both),
        ] {
            assert_eq!(old.after_reload(new, same), wanted, "{old:?} {new:?}");
        }
    }

    /// A packet socket sees fragments; behind their reassembly (-400) nothing shows that there were some.
    #[test]
    fn fragments_stay_with_the_kernel_of_a_host() {
        let file = file("", "");
        for datagrams in [None, Some(&file.policy)] {
            let script = host_script(&file, datagrams);
            assert!(script.contains("inward { type filter hook prerouting priority -450;"));
            let rules = chain(&script, "inward");
            assert_eq!(rules.len(), if datagrams.is_some() { 4 } else { 2 });
            for rule in rules {
                let (protocol, end) =
                    if rule.contains("udp") { ("udp", "inward_udp") } else { ("tcp", "inward") };
                let end = format!("meta l4proto {protocol} fib daddr type local jump {end}_policy");
                let whole = ["ip frag-off & 0x3fff == 0", "meta nfproto ipv6 exthdr frag missing"];
                let of = |whole| rule == format!("iifname \"eth0\" {whole} {end}");
                assert!(whole.into_iter().any(of), "{rule}");
            }
        }
    }

    #[test]
    fn the_kernel_takes_every_script() {
        let name = "the_kernel_takes_every_script";
        let all =
            [("", MIXED), ("", ""), ("rate = \"1 Mbit/s\"", ""), ("", "[policy]\notherwise = \"pass\"\n")];
        let act = || {
            if namespace::new_network().is_err() || nft::version() == Ok(None) {
                println!("SKIPPED {name}: it needs root and nft");
                return;
            }
            for (rate, policy) in all {
                let file = file(rate, policy);
                for again in ["", "delete table inet bentpipe_gateway\n"] {
                    let script = format!("{again}{}", script(&file, Scope::of(&file), true));
                    assert_eq!(nft::run(&script), Ok(()), "{script}");
                }
                nft::run("delete table inet bentpipe_gateway\n").unwrap();
                assert_eq!(nft::run(&host_script(&file, Some(&file.policy))), Ok(()));
                nft::run("delete table inet bentpipe_gateway\n").unwrap();
            }
        };
        // a thread enters a namespace; the namespace ends with the thread
        std::thread::scope(|scope| scope.spawn(act).join()).unwrap();
    }
}
