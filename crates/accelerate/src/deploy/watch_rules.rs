//! nftables rules for observing the traffic ([`super::watch`]).

use super::divert::names;
use bentpipe_scenario::gateway_file::Deploy;
use core::fmt::Write as _;

/// Maximum number of remote endpoints and peers recorded.
const WATCHED: u32 = 1024;
/// Priority behind all other rules for forwarded packets.
const BEHIND: i32 = 1000;

/// A section of the path through the gateway, for all packets or only for those that open connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathSection {
    from: String,
    to: String,
    /// Matches the section's packets where they enter, and behind all other rules.
    matches: [String; 2],
    /// Priority of the hook: for packets from a TUN interface before all other rules, otherwise behind the
    /// gateway's marking.
    priority: i32,
    is_out: bool,
    opens: bool,
}

impl core::fmt::Display for PathSection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let opens = if self.opens { " that open connections" } else { "" };
        write!(f, "from {} over {}{opens}", self.from, self.to)
    }
}

impl PathSection {
    pub(super) fn all(deploy: &Deploy) -> Vec<Self> {
        let Deploy { satellite, tun_lan, tun_satellite, mark, .. } = deploy;
        let (lan, lans) = (deploy.lan.join(", "), names(&deploy.lan));
        let one =
            |from: &str, to: &str, matches: [String; 2], priority: i32, (is_out, opens): (bool, bool)| Self {
                from: from.to_owned(),
                to: to.to_owned(),
                matches,
                priority,
                is_out,
                opens,
            };
        let from_tun = |tun: &str| [format!("iifname \"{tun}\""), format!("iifname \"{tun}\"")];
        let to_tun = |mark: u32, from: &str, tun: &str| {
            [format!("meta mark {mark:#x} iifname {from}"), format!("iifname {from} oifname \"{tun}\"")]
        };
        let mut all = Vec::new();
        for opens in [false, true] {
            all.push(one(&lan, tun_lan, to_tun(*mark, &lans, tun_lan), -89, (true, opens)));
            all.push(one(tun_satellite, satellite, from_tun(tun_satellite), -450, (true, opens)));
        }
        let back = to_tun(mark + 1, &format!("\"{satellite}\""), tun_satellite);
        all.push(one(satellite, tun_satellite, back, -89, (false, false)));
        all.push(one(tun_lan, &lan, from_tun(tun_lan), -450, (false, false)));
        all
    }

    /// Conditions that the remote endpoint was recorded before the start, for IPv4 and IPv6.
    fn known(&self) -> [String; 2] {
        let (field, port) = if self.is_out { ("daddr", "dport") } else { ("saddr", "sport") };
        let (set, flags) = match (self.is_out, self.opens) {
            (true, true) => ("opened", "tcp flags & (syn | ack) == syn "),
            (true, false) => ("reached", ""),
            (false, _) => ("heard", ""),
        };
        [("ip", 4), ("ip6", 6)]
            .map(|(family, v)| format!("{flags}{family} {field} . meta l4proto . th {port} @{set}{v}"))
    }
}

/// Rules that record forwarded endpoints and answering peers before the gateway's start.
pub(super) fn observation_rules(deploy: &Deploy) -> String {
    let Deploy { nft_table: table, satellite, .. } = deploy;
    let lans = names(&deploy.lan);
    let mut out = format!("add table inet {table}\n");
    let mut line = |words: String| {
        let _ = writeln!(out, "add {words}");
    };
    for v in [4, 6] {
        let dynamic = |time: &str| format!("flags dynamic,timeout; size {WATCHED}; timeout {time};");
        for set in ["reached", "opened", "heard"] {
            line(format!(
                "set inet {table} {set}{v} {{ type ipv{v}_addr . inet_proto . inet_service; {} }}",
                dynamic("15m")
            ));
        }
        for (set, time) in [("answered", "10s"), ("asks", "15m"), ("answers", "15m")] {
            line(format!("set inet {table} {set}{v} {{ type ipv{v}_addr; {} }}", dynamic(time)));
        }
    }
    line(format!(
        "chain inet {table} watch_behind {{ type filter hook forward priority {BEHIND}; policy accept; }}"
    ));
    let (out_way, back) = (
        format!("iifname {lans} oifname \"{satellite}\""),
        format!("iifname \"{satellite}\" oifname {lans}"),
    );
    for (ip, v) in [("ip", 4), ("ip6", 6)] {
        for (way, kind, set, field, port) in [
            (&out_way, "meta l4proto { tcp, udp }", "reached", "daddr", "dport"),
            (&out_way, "tcp flags & (syn | ack) == syn", "opened", "daddr", "dport"),
            (&back, "meta l4proto { tcp, udp }", "heard", "saddr", "sport"),
        ] {
            line(format!(
                "rule inet {table} watch_behind {way} {kind} update @{set}{v} {{ {ip} {field} . meta l4proto . th {port} }}"
            ));
        }
        line(format!("rule inet {table} watch_behind {back} update @answered{v} {{ {ip} saddr }}"));
    }
    out
}

/// Rules that count packets after the gateway's start.
pub(super) fn counting_rules(deploy: &Deploy) -> String {
    let Deploy { nft_table: table, satellite, tun_lan, mark, .. } = deploy;
    let mut out = format!("flush chain inet {table} watch_behind\n");
    let mut line = |words: String| {
        let _ = writeln!(out, "add {words}");
    };
    for (chain, priority) in [("watch_first", -450), ("watch_marked", -89)] {
        line(format!(
            "chain inet {table} {chain} {{ type filter hook prerouting priority {priority}; policy accept; }}"
        ));
    }
    for (i, section) in PathSection::all(deploy).iter().enumerate() {
        let chain = if section.priority == -450 { "watch_first" } else { "watch_marked" };
        line(format!("counter inet {table} came{i}"));
        line(format!("counter inet {table} went{i}"));
        let [comes, goes] = &section.matches;
        for (known, hops) in section.known().iter().zip(["ip ttl > 1", "ip6 hoplimit > 1"]) {
            line(format!("rule inet {table} {chain} {comes} {hops} {known} counter name came{i}"));
            line(format!("rule inet {table} watch_behind {goes} {known} counter name went{i}"));
        }
    }
    let lans = names(&deploy.lan);
    // packets that bypass the gateway say nothing about it
    let asks = format!("meta mark {mark:#x} iifname {lans}");
    let back = format!("iifname {{ \"{satellite}\", \"{tun_lan}\" }} oifname {lans}");
    for (ip, v, echo) in [("ip", 4, "icmp type echo-request"), ("ip6", 6, "icmpv6 type echo-request")] {
        // a pure acknowledgment or a RST calls for no answer
        for question in [
            "tcp flags & (fin | syn | psh) != 0",
            "meta length > 100 tcp flags & (fin | syn | psh | rst) == 0",
            "meta l4proto udp",
            echo,
        ] {
            line(format!(
                "rule inet {table} watch_marked {asks} {question} update @asks{v} {{ {ip} daddr counter }}"
            ));
        }
        line(format!("rule inet {table} watch_behind {back} update @answers{v} {{ {ip} saddr counter }}"));
    }
    out
}

pub(super) fn removal_rules(table: &str, sections: usize) -> String {
    let mut out = String::new();
    for chain in ["watch_first", "watch_marked", "watch_behind"] {
        let _ = writeln!(out, "flush chain inet {table} {chain}\ndelete chain inet {table} {chain}");
    }
    for set in ["reached", "opened", "heard", "answered", "asks", "answers"] {
        let _ = writeln!(out, "delete set inet {table} {set}4\ndelete set inet {table} {set}6");
    }
    for i in 0..sections {
        let _ = writeln!(out, "delete counter inet {table} came{i}\ndelete counter inet {table} went{i}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_os::{namespace, nft};

    #[test]
    fn the_kernel_takes_every_rule_and_gives_it_back() {
        let name = "the_kernel_takes_every_rule_and_gives_it_back";
        let act = || {
            if namespace::new_network().is_err() || nft::version() == Ok(None) {
                println!("SKIPPED {name}: it needs root and nft");
                return;
            }
            let deploy = super::super::watch::tests::deploy();
            for script in [observation_rules(&deploy), counting_rules(&deploy)] {
                assert_eq!(nft::run(&script), Ok(()), "{script}");
            }
            let table = &deploy.nft_table;
            let full = nft::list_table(table).unwrap();
            assert!(full.contains("counter came5"), "{full}");
            let script = removal_rules(table, PathSection::all(&deploy).len());
            assert_eq!(nft::run(&script), Ok(()), "{script}");
            let empty = nft::list_table(table).unwrap();
            assert_eq!(
                empty.split_whitespace().collect::<Vec<_>>().join(" "),
                format!("table inet {table} {{ }}")
            );
        };
        std::thread::scope(|scope| scope.spawn(act).join()).unwrap();
    }
}
