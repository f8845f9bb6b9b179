use super::{GatewayInterfaces, Verdict, iptables, nft, read};
use bentpipe_os::namespace;
use std::process::{Command, Stdio};

fn site(lan: &[String]) -> GatewayInterfaces<'_> {
    GatewayInterfaces { lan, satellite: "eth0", tun_lan: "bentlan", tun_satellite: "bentsat", tcp_only: true }
}

fn judge(text: &str) -> Verdict {
    let all = if text.contains("-A ") || text.contains("*filter") {
        iptables::read("iptables-legacy", text)
    } else {
        nft::read(text)
    };
    site(&["eth1".to_owned()]).judge(&all[0])
}

fn forward(policy: &str, rules: &str) -> String {
    format!(
        "table inet f {{ # handle 1\n\tchain forward {{ # handle 1\n\t\ttype filter hook forward priority filter; policy {policy};\n{rules}\n\t}}\n}}\n"
    )
}

#[test]
fn only_what_passes_today_and_would_not_is_a_fault() {
    let breaks = |a: &str, b: &str| Verdict::Breaks(a.to_owned(), b.to_owned());
    for (policy, rules, wanted) in [
        ("accept", "", Verdict::Fine),
        ("drop", "", Verdict::Closed),
        (
            "drop",
            "iifname \"eth1\" oifname \"eth0\" accept # handle 2\nct state established,related accept # handle 3",
            breaks("eth1", "bentlan"),
        ),
        (
            "drop",
            "iifname \"eth1\" accept # handle 2\nct state established accept # handle 3",
            breaks("bentsat", "eth0"),
        ),
        // no rule names an interface: the same result as today
        (
            "drop",
            "ip saddr 10.0.0.0/8 accept # handle 2\nip daddr 10.0.0.0/8 accept # handle 3",
            Verdict::Fine,
        ),
        ("accept", "tcp dport 25 drop # handle 2", Verdict::Fine),
        ("accept", "ct state invalid drop # handle 2", Verdict::Fine),
        (
            "accept",
            "ct state { established } accept # handle 2\nct state != new drop # handle 3",
            breaks("eth1", "bentlan"),
        ),
        (
            "accept",
            "ct state vmap { invalid : drop, untracked : drop, established : accept } # handle 2",
            breaks("eth1", "bentlan"),
        ),
        // UDP does not go through the gateway
        ("drop", "iifname \"eth1\" udp dport 53 accept # handle 2", Verdict::Closed),
        (
            "drop",
            "iifname \"eth1\" tcp dport { 80, 443 } counter packets 1 bytes 2 accept # handle 2",
            breaks("bentsat", "eth0"),
        ),
        (
            "accept",
            "iifname != \"eth1\" oifname \"eth0\" reject with icmp port-unreachable # handle 2",
            breaks("bentsat", "eth0"),
        ),
        ("drop", "iifname { \"bent*\", \"eth*\" } accept # handle 2", Verdict::Fine),
    ] {
        assert_eq!(judge(&forward(policy, rules)), wanted, "{policy}: {rules}");
    }
}

#[test]
fn chains_are_followed() {
    let inner =
        "\tchain zone { # handle 9\n\t\tiifname \"eth1\" accept # handle 4\n\t\treturn # handle 5\n\t}\n";
    let with = |rules: &str| {
        forward("drop", rules).replacen("\tchain forward", &format!("{inner}\tchain forward"), 1)
    };
    let wanted = Verdict::Breaks("bentsat".to_owned(), "eth0".to_owned());
    assert_eq!(judge(&with("ip saddr 10.0.0.0/8 jump zone # handle 2")), wanted);
    assert_eq!(
        judge(&with("ip saddr 10.0.0.0/8 jump zone # handle 2\niifname \"bentsat\" accept # handle 3")),
        Verdict::Fine
    );
    let saved = "*filter\n:FORWARD DROP [0:0]\n:zone - [0:0]\n-A FORWARD -s 10.0.0.0/8 -j zone\n-A zone -i eth1 -j ACCEPT\n";
    assert_eq!(judge(saved), wanted);
    assert_eq!(judge(&saved.replace("-i eth1", "! -i eth9")), Verdict::Fine);
    // a chain that jumps to itself decides nothing
    assert_eq!(
        judge("*filter\n:FORWARD ACCEPT [0:0]\n:a - [0:0]\n-A FORWARD -j a\n-A a -j a\n"),
        Verdict::Fine
    );
}

/// Text that is not a ruleset, or only part of one, is parsed without a panic.
#[test]
fn any_text_can_be_read() {
    let texts = [
        forward("drop", "iifname vmap { \"eth1\" : jump x, } # handle"),
        "}}}{{{ \"\n table \n chain".to_owned(),
        "*\n:\n-A \n-A x -j\n-A x ! -i\n:FORWARD".to_owned(),
    ];
    for text in &texts {
        for cut in 0..text.len() {
            let part: String = text.chars().take(cut).collect();
            for rules in nft::read(&part).iter().chain(&iptables::read("iptables", &part)) {
                site(&["eth1".to_owned()]).judge(rules);
            }
        }
    }
}

const NFT: &str = "nft -f - <<'END'
table inet f {
    set ours { type ipv4_addr; elements = { 10.0.0.1, 10.0.0.2 } }
    chain zone { tcp dport { 80, 443 } accept; }
    chain forward {
        type filter hook forward priority 0; policy drop;
        ct state vmap { established : accept, related : accept, invalid : drop }
        iifname != { \"eth1\", \"eth2\" } oifname \"eth0\" counter drop
        iifname vmap { \"eth1\" : jump zone, \"eth2\" : accept }
        iif lo accept
        iifname { \"eth1\", \"eth2\" } oifname \"eth0\" ip saddr @ours log prefix \"out \" accept
        iifname \"eth0\" oifname \"eth1\" tcp dport 22 accept comment \"let me in\"
    }
}
END";

const IPTABLES: &str = "
IPT -P FORWARD DROP; IPT -N zone; IPT -A zone -p tcp -m multiport --dports 80,443 -j ACCEPT
IPT -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -m comment --comment 'what is open' -j ACCEPT
IPT -A FORWARD -i eth1 -o eth0 -j zone; IPT -A FORWARD -i eth2 -o eth0 -j ACCEPT
IPT -A FORWARD -i eth0 -o eth1 -p tcp --dport 22 -j ACCEPT; IPT -t mangle -A FORWARD -o eth0 -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu";

fn shell(script: &str) -> Result<(), String> {
    let out =
        Command::new("sh").args(["-ec", script]).stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if out.status.success() {
        Ok(())
    } else {
        Err(format!("{script}: {}", String::from_utf8_lossy(&out.stderr)))
    }
}

/// The programs accept the suggested commands, and afterwards nothing that is accepted today would be
/// dropped.
#[test]
fn the_rules_that_are_named_mend_it() {
    let name = "the_rules_that_are_named_mend_it";
    let lan = ["eth1".to_owned(), "eth2".to_owned()];
    let act = || {
        for (tool, script) in [
            ("nft", NFT.to_owned()),
            ("iptables-nft", IPTABLES.replace("IPT ", "iptables-nft ")),
            ("iptables-legacy", IPTABLES.replace("IPT ", "iptables-legacy ")),
            ("ip6tables-legacy", IPTABLES.replace("IPT ", "ip6tables-legacy ")),
            ("ip6tables-nft", IPTABLES.replace("IPT ", "ip6tables-nft ")),
        ] {
            if namespace::new_network().is_err() || shell(&format!("command -v {tool}")).is_err() {
                println!("SKIPPED {name}: it needs root and {tool}");
                return;
            }
            shell(&script).unwrap();
            let (faults, all) = read();
            assert_eq!(faults, []);
            let broken: Vec<_> =
                all.iter().filter(|r| matches!(site(&lan).judge(r), Verdict::Breaks(..))).collect();
            assert_eq!(broken.len(), 1, "{tool}: {all:#?}");
            let commands = super::fix::commands(&site(&lan), broken[0]);
            let program = tool.trim_end_matches("-nft");
            assert!(
                commands.iter().all(|c| c.starts_with(&format!("sudo {program}"))),
                "{tool}: {commands:#?}"
            );
            for command in &commands {
                shell(command.strip_prefix("sudo ").unwrap()).unwrap();
            }
            for rules in &read().1 {
                assert!(
                    !matches!(site(&lan).judge(rules), Verdict::Breaks(..)),
                    "{tool}: {commands:#?}\n{rules:#?}"
                );
            }
        }
    };
    std::thread::scope(|scope| scope.spawn(act).join()).unwrap();
}
