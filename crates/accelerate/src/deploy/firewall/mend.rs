//! The rules that a firewall lacks, as commands for its own program.
//!
//! What goes from the LAN into the gateway and from the gateway to the LAN passes: the firewall decides about
//! it on the satellite's side, where connection tracking sees it. There each rule that names a LAN's
//! interface gets one that names the TUN interface instead, behind it. So what it drops today it goes on
//! dropping.

use super::{Act, Names, Rule, Ruleset, Site, Tool, Verdict, iptables, nft};

/// Commands, in the order in which they are to be given.
pub(super) fn commands(site: &Site<'_>, rules: &Ruleset) -> Vec<String> {
    let (mut out, mut mended) = (Vec::new(), rules.clone());
    for (name, chain) in &rules.chains {
        let mut last = 0;
        // from the last to the first: numbers of those before stay what they are
        for rule in chain.rules.iter().rev() {
            // the ends of a map are one rule
            if rule.place != last {
                out.extend(mirror(site, &rules.tool, name, rule));
            }
            last = rule.place;
            add_mirrored(site, &mut mended, name, rule);
        }
    }
    for (name, ..) in rules.bases() {
        let from_lan = |lan: &str| (lan.to_owned(), site.tun_lan.to_owned());
        let mut ways: Vec<(String, String)> = site.lan.iter().map(|lan| from_lan(lan)).collect();
        ways.extend(site.lan.iter().map(|lan| (site.tun_lan.to_owned(), lan.clone())));
        for (from, to) in &ways {
            out.push(open(&rules.tool, name, from, to));
            insert(&mut mended, name, from, to);
        }
    }
    if site.judge(&mended) != Verdict::Fine {
        out.push("# these let everything pass that goes through the gateway; say more narrowly what this firewall means".to_owned());
        for (name, ..) in rules.bases() {
            for (from, to) in [(site.tun_satellite, site.satellite), (site.satellite, site.tun_satellite)] {
                out.push(open(&rules.tool, name, from, to));
            }
        }
    }
    out
}

/// The rule for the TUN interface beside one for a LAN's.
fn mirror(site: &Site<'_>, tool: &Tool, chain: &str, rule: &Rule) -> Vec<String> {
    match tool {
        Tool::Nft { family, table } => {
            let all = nft::mirrored(&rule.text, site.lan, site.tun_satellite).into_iter();
            let verb = |replaces| if replaces { "replace" } else { "add" };
            let command = |m: nft::Mirrored| {
                format!(
                    "sudo nft '{} rule {family} {table} {chain} handle {} {}'",
                    verb(m.replaces),
                    rule.place,
                    m.text
                )
            };
            // each comes right behind the one it is for
            all.rev().map(command).collect()
        }
        Tool::Iptables { program, table } => {
            let text = iptables::mirrored(&rule.text, site.lan, site.tun_satellite);
            let command = |text| format!("sudo {program} -t {table} -I {chain} {} {text}", rule.place + 1);
            text.map(command).into_iter().collect()
        }
    }
}

/// A rule before all others that lets pass what goes from one interface to another.
fn open(tool: &Tool, chain: &str, from: &str, to: &str) -> String {
    match tool {
        Tool::Nft { family, table } => {
            format!(
                "sudo nft 'insert rule {family} {table} {chain} iifname \"{from}\" oifname \"{to}\" accept'"
            )
        }
        Tool::Iptables { program, table } => {
            format!("sudo {program} -t {table} -I {chain} 1 -i {from} -o {to} -j ACCEPT")
        }
    }
}

/// The same in the model, to know whether it is enough.
fn insert(rules: &mut Ruleset, chain: &str, from: &str, to: &str) {
    let name = |name: &str| vec![Names { names: vec![name.to_owned()], is_not: false }];
    let rule = Rule {
        at: [name(from), name(to)],
        states: Vec::new(),
        is_of_others: false,
        words: String::new(),
        act: Act::Accept,
        text: String::new(),
        place: 0,
    };
    if let Some(chain) = rules.chains.get_mut(chain) {
        chain.rules.insert(0, rule);
    }
}

fn add_mirrored(site: &Site<'_>, rules: &mut Ruleset, chain: &str, rule: &Rule) {
    let is_lan = |name: &String| site.lan.contains(name);
    let names_lan = rule.at.iter().flatten().any(|n| n.names.iter().any(is_lan));
    let Some(chain) = rules.chains.get_mut(chain).filter(|_| names_lan) else { return };
    let Some(at) = chain.rules.iter().position(|r| r == rule) else { return };
    let is_negated = |n: &Names| n.is_not && n.names.iter().any(is_lan);
    if rule.at.iter().flatten().any(is_negated) {
        // only nft can ask for all but several
        if matches!(rules.tool, Tool::Nft { .. }) {
            for names in chain.rules[at].at.iter_mut().flatten().filter(|n| n.is_not) {
                names.names.push(site.tun_satellite.to_owned());
            }
        }
        return;
    }
    let mut copy = rule.clone();
    for names in copy.at.iter_mut().flatten() {
        if names.names.iter().any(is_lan) {
            names.names = vec![site.tun_satellite.to_owned()];
        }
    }
    chain.rules.insert(at + 1, copy);
}
