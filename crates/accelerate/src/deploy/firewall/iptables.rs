//! Parses the output of `iptables-save` (iptables-save(8), iptables-extensions(8)).

use super::{Chain, FirewallAction, InterfaceMatch, Rule, Ruleset, Tool, words};
use std::collections::BTreeMap;

/// Targets after which evaluation continues with the next rule.
const GOES_ON: &str =
    "LOG NFLOG ULOG MARK CONNMARK CONNSECMARK SECMARK TCPMSS TOS DSCP TTL HL TRACE CLASSIFY";

/// Returns all tables; `program` is the command that changes them.
pub(super) fn read(program: &str, text: &str) -> Vec<Ruleset> {
    let mut all: Vec<Ruleset> = Vec::new();
    for line in text.lines() {
        if let Some(table) = line.strip_prefix('*') {
            let tool = Tool::Iptables { program: program.to_owned(), table: table.trim().to_owned() };
            all.push(Ruleset { tool, chains: BTreeMap::new() });
            continue;
        }
        let Some(rules) = all.last_mut() else { continue };
        if let Some(rest) = line.strip_prefix(':') {
            let mut words = rest.split_whitespace();
            let (name, policy) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let drops = (name == "FORWARD").then_some(policy == "DROP");
            rules.chains.insert(name.to_owned(), Chain { drops, rules: Vec::new() });
        } else if let Some(rest) = line.strip_prefix("-A ") {
            let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
            let chain = rules.chains.entry(name.to_owned()).or_default();
            let place = chain.rules.len() as u64 + 1;
            chain.rules.push(rule(text, place));
        }
    }
    all
}

fn rule(text: &str, place: u64) -> Rule {
    let all = words(text, false);
    let mut rule = Rule { text: text.to_owned(), place, ..Rule::default() };
    let (mut i, mut is_not) = (0, false);
    while let Some(word) = all.get(i) {
        let value = all.get(i + 1).copied().unwrap_or_default();
        i += 2;
        match *word {
            "!" => {
                (is_not, i) = (true, i - 1);
                continue;
            }
            "-i" => rule.at[0].push(InterfaceMatch { names: vec![value.to_owned()], is_not }),
            "-o" => rule.at[1].push(InterfaceMatch { names: vec![value.to_owned()], is_not }),
            "--ctstate" | "--state" => {
                rule.states.push((value.split(',').map(str::to_owned).collect(), is_not));
            }
            "-m" if ["conntrack", "state", "comment"].contains(&value) => {}
            "--comment" => {}
            "-j" | "-g" => {
                rule.act = target(value, *word == "-j");
                break;
            }
            word => {
                if word == "-p" && !is_not {
                    rule.is_of_others |= !["tcp", "6", "all"].contains(&value);
                }
                if is_not {
                    rule.add_word("!");
                }
                rule.add_word(word);
                i -= 1;
            }
        }
        is_not = false;
    }
    rule
}

fn target(name: &str, and_back: bool) -> FirewallAction {
    match name {
        "DROP" | "REJECT" | "TARPIT" => FirewallAction::Drop,
        "RETURN" => FirewallAction::Return,
        // a user-space program usually accepts the packet
        "ACCEPT" | "NFQUEUE" | "QUEUE" => FirewallAction::Accept,
        name if GOES_ON.split(' ').any(|known| known == name) => FirewallAction::Next,
        name => FirewallAction::Enter(name.to_owned(), and_back),
    }
}

/// The rule's text with the interfaces `lan` replaced by `tun`; `None` if it names none of them or is negated
/// (`! -i`).
pub(super) fn mirrored(text: &str, lan: &[String], tun: &str) -> Option<String> {
    let mut all = words(text, false);
    let mut is_changed = false;
    for i in 1..all.len() {
        if ["-i", "-o"].contains(&all[i - 1]) && lan.iter().any(|name| name == all[i]) {
            if i > 1 && all[i - 2] == "!" {
                return None;
            }
            all[i] = tun;
            is_changed = true;
        }
    }
    is_changed.then(|| all.join(" "))
}
