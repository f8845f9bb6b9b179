//! Parses the output of `nft -a list ruleset` (nft(8)).

use super::{Chain, FirewallAction, InterfaceMatch, Rule, Ruleset, Tool, words};
use std::collections::BTreeMap;

/// Returns all tables. Unknown parts of a rule are kept as text.
pub(super) fn read(text: &str) -> Vec<Ruleset> {
    let mut all: Vec<Ruleset> = Vec::new();
    let mut chain: Option<String> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim().to_owned();
        if let Some(rest) = line.strip_prefix("table ") {
            let mut words = rest.split_whitespace();
            let (family, table) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let tool = Tool::Nft { family: family.to_owned(), table: table.to_owned() };
            all.push(Ruleset { tool, chains: BTreeMap::new() });
            continue;
        }
        let Some(rules) = all.last_mut() else { continue };
        if let Some(rest) = line.strip_prefix("chain ") {
            let name = rest.split_whitespace().next().unwrap_or_default().to_owned();
            rules.chains.insert(name.clone(), Chain::default());
            chain = Some(name);
            continue;
        }
        if line == "}" {
            chain = None;
        }
        let Some(chain) = chain.as_ref().and_then(|name| rules.chains.get_mut(name)) else { continue };
        // a long set spans several lines
        while line.matches('{').count() > line.matches('}').count() {
            let Some(more) = lines.next() else { break };
            line += " ";
            line += more.trim();
        }
        if line.starts_with("type ") {
            let is_forward = line.starts_with("type filter ") && line.contains(" hook forward ");
            chain.drops = is_forward.then(|| line.contains("policy drop"));
        } else {
            chain.rules.extend(rule(&line));
        }
    }
    all
}

/// The elements of a set, or a single value.
pub(super) fn items(word: &str) -> Vec<&str> {
    let inner = word.strip_prefix('{').and_then(|w| w.strip_suffix('}')).unwrap_or(word);
    inner.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn act(words: &[&str]) -> Option<FirewallAction> {
    Some(match words {
        // a user-space program usually accepts the packet
        ["accept" | "queue", ..] => FirewallAction::Accept,
        ["drop" | "reject", ..] => FirewallAction::Drop,
        ["return", ..] => FirewallAction::Return,
        ["jump", name, ..] => FirewallAction::Enter((*name).to_owned(), true),
        ["goto", name, ..] => FirewallAction::Enter((*name).to_owned(), false),
        _ => return None,
    })
}

/// Parses a rule; returns several if it contains a verdict map.
fn rule(line: &str) -> Vec<Rule> {
    let (text, handle) = line.rsplit_once(" # handle ").unwrap_or((line, ""));
    let all = words(text, true);
    let place = handle.trim().parse().unwrap_or_default();
    let mut rule = Rule { text: text.to_owned(), place, ..Rule::default() };
    let mut maps: Vec<Rule> = Vec::new();
    let mut i = 0;
    while let Some(word) = all.get(i) {
        let is_state = *word == "ct" && all.get(i + 1) == Some(&"state");
        let key = i + usize::from(is_state);
        let is_not = all.get(key + 1) == Some(&"!=");
        let at = key + 1 + usize::from(is_not);
        let value = all.get(at).copied().unwrap_or_default();
        let side = ["iif", "iifname", "oif", "oifname"].iter().position(|name| name == word).map(|n| n / 2);
        let side = side.filter(|_| !value.starts_with('@'));
        let add = |rule: &mut Rule, names: Vec<String>, is_not: bool| match side {
            Some(side) => rule.at[side].push(InterfaceMatch { names, is_not }),
            None => rule.states.push((names, is_not)),
        };
        if (is_state || side.is_some()) && value == "vmap" {
            let set = all.get(at + 1).copied().unwrap_or_default();
            maps = map(&rule, set, |rule, key| add(rule, vec![plain(key)], false));
            i = at + 2;
        } else if is_state || side.is_some() {
            add(&mut rule, items(value).into_iter().map(plain).collect(), is_not);
            i = at + 1;
        } else if let Some(end) = act(&all[i..]) {
            rule.act = end;
            break;
        } else {
            i += skip(&all[i..], &mut rule);
        }
    }
    if maps.is_empty() {
        return vec![rule];
    }
    // conditions beside the map apply to each of its entries
    for end in &mut maps {
        end.words.clone_from(&rule.words);
        end.is_of_others = rule.is_of_others;
    }
    maps
}

/// Records a word that is no condition on interfaces or states; returns the number of words consumed.
fn skip(words: &[&str], rule: &mut Rule) -> usize {
    match words {
        // statements without a condition
        ["counter", "packets", _, "bytes", _, ..] => 5,
        ["counter" | "notrack", ..] | [] => 1,
        ["comment", _, ..] => 2,
        ["log", rest @ ..] => {
            let of = ["prefix", "level", "group", "snaplen", "queue-threshold", "flags"];
            1 + 2 * rest.chunks(2).take_while(|pair| of.contains(&pair[0])).count()
        }
        ["meta" | "ct", "mark", "set", ..] => words.len().min(4),
        [word, ..] => {
            let others = ["udp", "icmp", "icmpv6", "sctp", "dccp", "esp", "ah"];
            // `meta l4proto udp` and `ip protocol udp` end in the protocol name
            rule.is_of_others |= others.contains(word);
            rule.add_word(word);
            1
        }
    }
}

/// The entries of a verdict map, each as a rule.
fn map(rule: &Rule, set: &str, add: impl Fn(&mut Rule, &str)) -> Vec<Rule> {
    let ends = items(set).into_iter().filter_map(|item| {
        let (key, end) = item.split_once(':')?;
        let words: Vec<&str> = end.split_whitespace().collect();
        let mut one = Rule { act: act(&words)?, ..rule.clone() };
        add(&mut one, key.trim());
        Some(one)
    });
    ends.collect()
}

fn plain(name: &str) -> String {
    name.trim_matches('"').to_owned()
}

/// The copy of a LAN rule for the TUN interface.
#[derive(Debug)]
pub(super) struct Mirrored {
    pub(super) text: String,
    /// True if it replaces the original, which excludes a LAN interface; the new rule excludes both.
    pub(super) replaces: bool,
}

/// The rule's text with the interfaces `lan` replaced by `tun`. Empty if it names none of them; several if a
/// verdict map has an entry for each.
pub(super) fn mirrored(text: &str, lan: &[String], tun: &str) -> Vec<Mirrored> {
    let all = words(text, true);
    let (mut out, mut is_changed, mut replaces) = (Vec::new(), false, false);
    let mut i = 0;
    while let Some(word) = all.get(i) {
        if !["iif", "iifname", "oif", "oifname"].contains(word) {
            out.push((*word).to_owned());
            i += 1;
            continue;
        }
        let is_not = all.get(i + 1) == Some(&"!=");
        let at = i + 1 + usize::from(is_not);
        let is_map = all.get(at) == Some(&"vmap");
        let next = at + usize::from(is_map) + 1;
        let Some(value) = all.get(next - 1) else { break };
        let name = |item: &str| plain(item.split(':').next().unwrap_or_default().trim());
        let (ours, others): (Vec<&str>, Vec<&str>) =
            items(value).into_iter().partition(|item| lan.contains(&name(item)));
        if ours.is_empty() {
            out.extend(all[i..next].iter().map(|word| (*word).to_owned()));
            i = next;
            continue;
        }
        i = next;
        (is_changed, replaces) = (true, replaces || is_not);
        // iif and oif need an interface index, which a TUN interface does not have yet
        out.push(if word.starts_with('i') { "iifname" } else { "oifname" }.to_owned());
        if is_map {
            let before = out.join(" ");
            let end = |item: &&str| item.split_once(':').map(|(_, end)| format!("{before} \"{tun}\"{end}"));
            return ours.iter().filter_map(end).map(|text| Mirrored { text, replaces }).collect();
        }
        if is_not {
            let mut set: Vec<String> = ours.iter().chain(&others).map(|item| (*item).to_owned()).collect();
            set.push(format!("\"{tun}\""));
            out.push(format!("!= {{ {} }}", set.join(", ")));
        } else {
            // the original rule covers the other interfaces
            out.push(format!("\"{tun}\""));
        }
    }
    if is_changed { vec![Mirrored { text: out.join(" "), replaces }] } else { Vec::new() }
}
