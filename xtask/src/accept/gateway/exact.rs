//! Every byte, and every end (4), in both families and with all options (8).

use crate::accept::List;
use crate::accept::place::Place;
use crate::accept::spine::{cargo_with, tests_item};
use crate::accept::tests::Tests;
use crate::item::{Item, Verdict};

/// Conversations that the issue asks for.
const CONVERSATIONS: u32 = 200;
/// Named tests for what splitting proxies get wrong, without a gateway as a process of its own.
const PEPS: usize = 6;
/// Groups of hosts: with and without timestamps and SACK.
const GROUPS: usize = 4;

pub(super) fn check(_: &Place, list: &mut List) {
    let name = "random_conversations_arrive_byte_for_byte";
    let test = ["test", "--package", "bentpipe-accelerate", "--test", "exact", "--", "--show-output", name];
    let (text, ok) = cargo_with(&test, &[("BENTPIPE_CONVERSATIONS", &CONVERSATIONS.to_string())]);
    list.line(4, &conversations(&text, ok));
    for group in groups(&text) {
        list.line(8, &Item::new("exact in both families", group, Verdict::of(ok)));
    }
    if groups(&text).len() != GROUPS {
        let figure = format!("{} of {GROUPS} groups of hosts", groups(&text).len());
        list.line(8, &Item::new("with and without timestamps and SACK", figure, Verdict::Miss));
    }
    list.line(4, &peps());
}

/// Lines that tell of a group of hosts.
fn groups(text: &str) -> Vec<&str> {
    text.lines().filter_map(|l| l.strip_prefix("exact, ")).collect()
}

fn conversations(text: &str, ok: bool) -> Item {
    let found = text.lines().find_map(|l| l.strip_prefix("exact: "));
    let skipped = text.lines().find(|l| l.starts_with("SKIPPED "));
    let all = found.is_some_and(|f| f.starts_with(&format!("{CONVERSATIONS} conversations, ")));
    let figure = skipped.or(found).unwrap_or("they did not come to their end");
    let what = format!("{CONVERSATIONS} conversations, loss, copies, overtaking, 3 s outages");
    Item::new(what, figure, Verdict::of(ok && all && skipped.is_none()))
}

/// The cases in which PEPsal fails: those of kernel TCP over a data path, and the two of the gateway as a process.
fn peps() -> Item {
    let chosen = [
        "--package",
        "bentpipe-accelerate",
        "--package",
        "bentpipe-cli",
        "--test",
        "exact",
        "--test",
        "gateway",
    ];
    let what = "what splitting proxies get wrong, tests by name";
    let run = match Tests::of(&chosen) {
        Ok(run) => run,
        Err(why) => return Item::new(what, why.lines().next().unwrap_or_default(), Verdict::Miss),
    };
    let alive = [
        "few_descriptors_are_enough_for_many_connections",
        "when_it_is_killed_the_kernel_forwards_by_itself",
    ];
    let is_one = |name: &str| name.starts_with("peps::") || alive.contains(&name);
    let mut item = tests_item(what, run.count(|t| is_one(&t.name)), PEPS + alive.len());
    if !run.skipped.is_empty() {
        item.figure = format!("{}, {} skipped", item.figure, run.skipped.len());
        item.verdict = Verdict::Miss;
    }
    item
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn only_all_conversations_will_do() {
        let text = "x\nexact, IPv4 25\nexact: 200 conversations, 5 bytes intact\n";
        assert_eq!(conversations(text, true).verdict, Verdict::Pass);
        assert_eq!(conversations(text, false).verdict, Verdict::Miss);
        assert_eq!(conversations(&text.replace("200", "150"), true).verdict, Verdict::Miss);
        assert_eq!(conversations(&format!("{text}SKIPPED t: no"), true).verdict, Verdict::Miss);
        assert_eq!(conversations("", true).verdict, Verdict::Miss);
        assert_eq!(groups(text), ["IPv4 25"]);
    }
}
