//! Commands that add the missing firewall rules.
//!
//! Packets from the LAN into the gateway and from the gateway to the LAN are accepted: the firewall filters
//! them on the satellite side, where connection tracking sees them. There each rule that names a LAN
//! interface gets a copy behind it that names the TUN interface instead, so the firewall continues to drop
//! the packets that it drops today.

use super::{FirewallAction, GatewayInterfaces, InterfaceMatch, Rule, Ruleset, Tool, Verdict, iptables, nft};

/// Returns the commands in the order of execution.
pub(super) fn commands(site: &GatewayInterfaces<'_>, rules: &Ruleset) -> Vec<String> {
    let (mut out, mut mended) = (Vec::new(), rules.clone());
    for (name, chain) in &rules.chains {
        let mut last = 0;
        // from last to first, so that the numbers of earlier rules stay valid
        for rule in chain.rules.iter().rev() {
            // all entries of a map belong to one rule
            if rule.place != last {
                out.extend(mirror(site, &rules.tool, name, rule));
            }
            last = rule.place;
            add_mirrored(site, &mut mended, name, rule);
        }
    }
    for (name, ..) in rules.bases() {
        let to_tun = site.lan.iter().map(|lan| (lan.as_str(), site.tun_lan));
        for (from, to) in to_tun.clone().chain(to_tun.map(|(lan, tun)| (tun, lan))) {
            out.push(open(&rules.tool, name, from, to));
            insert(&mut mended, name, from, to);
        }
    }
    if site.judge(&mended) != Verdict::Fine {
        out.push("# these rules accept everything that goes through the gateway; narrow them to what this firewall should allow".to_owned());
        for (name, ..) in rules.bases() {
            for (from, to) in [(site.tun_satellite, site.satellite), (site.satellite, site.tun_satellite)] {
                out.push(open(&rules.tool, name, from, to));
            }
        }
    }
    out
}

/// The copy of a LAN rule for the TUN interface, as commands.
fn mirror(site: &GatewayInterfaces<'_>, tool: &Tool, chain: &str, rule: &Rule) -> Vec<String> {
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
            // reversed, since each is inserted directly behind the original rule
            all.rev().map(command).collect()
        }
        Tool::Iptables { program, table } => {
            let text = iptables::mirrored(&rule.text, site.lan, site.tun_satellite);
            let command = |text| format!("sudo {program} -t {table} -I {chain} {} {text}", rule.place + 1);
            text.map(command).into_iter().collect()
        }
    }
}

/// Returns the command that inserts, at the beginning of the chain, a rule that accepts packets from one
/// interface to another.
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

/// Inserts the same rule into the model, to check whether it suffices.
fn insert(rules: &mut Ruleset, chain: &str, from: &str, to: &str) {
    let at = [from, to].map(|name| vec![InterfaceMatch::one(name)]);
    let rule = Rule { at, act: FirewallAction::Accept, ..Rule::default() };
    if let Some(chain) = rules.chains.get_mut(chain) {
        chain.rules.insert(0, rule);
    }
}

fn add_mirrored(site: &GatewayInterfaces<'_>, rules: &mut Ruleset, chain: &str, rule: &Rule) {
    let is_lan = |name: &String| site.lan.contains(name);
    let names_lan = rule.at.iter().flatten().any(|n| n.names.iter().any(is_lan));
    let Some(chain) = rules.chains.get_mut(chain).filter(|_| names_lan) else { return };
    let Some(at) = chain.rules.iter().position(|r| r == rule) else { return };
    let is_negated = |n: &InterfaceMatch| n.is_not && n.names.iter().any(is_lan);
    if rule.at.iter().flatten().any(is_negated) {
        // only nft can negate several interfaces
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
