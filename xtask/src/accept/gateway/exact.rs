//! Checks every byte and every connection end, over IPv4 and IPv6 with all options.

use crate::accept::list::{List, Outcome, Setup, Tests, run_cargo};
use crate::item::Item;

const CONVERSATIONS: u32 = 200;
/// Named tests of typical errors of splitting proxies: least number with kernel TCP over a data path, and
/// those of the gateway as a process.
const PEPS: usize = 6;
const ALIVE: [&str; 2] =
    ["few_descriptors_are_enough_for_many_connections", "when_it_is_killed_the_kernel_forwards_by_itself"];
/// Groups of hosts: with and without timestamps and SACK.
const GROUPS: usize = 4;

pub(super) fn check(_: &Setup, list: &mut List) -> Outcome {
    let name = "random_conversations_arrive_byte_for_byte";
    let test = ["test", "--package", "bentpipe-accelerate", "--test", "exact", "--", "--show-output", name];
    let (text, ok) = run_cargo(&test, &[("BENTPIPE_CONVERSATIONS", &CONVERSATIONS.to_string())]);
    list.item(&conversations(&text, ok));
    let groups = groups(&text);
    for group in &groups {
        list.line("exact in both families", *group, ok);
    }
    if groups.len() != GROUPS {
        let figure = format!("{} of {GROUPS} groups of hosts", groups.len());
        list.miss("with and without timestamps and SACK", &figure);
    }
    let chosen = "--package bentpipe-accelerate --package bentpipe-cli --test exact --test gateway";
    let mut run = Tests::of(chosen, &[])?;
    run.all.retain(|t| t.name.starts_with("peps::") || ALIVE.contains(&t.name.as_str()));
    list.all_tests("what splitting proxies get wrong, tests by name", &run, PEPS + ALIVE.len());
    Ok(())
}

/// Output lines about a group of hosts.
fn groups(text: &str) -> Vec<&str> {
    text.lines().filter_map(|l| l.strip_prefix("exact, ")).collect()
}

fn conversations(text: &str, ok: bool) -> Item {
    let found = text.lines().find_map(|l| l.strip_prefix("exact: "));
    let skipped = text.lines().find(|l| l.starts_with("SKIPPED "));
    let all = found.is_some_and(|f| f.starts_with(&format!("{CONVERSATIONS} conversations, ")));
    let figure = skipped.or(found).unwrap_or("they did not finish");
    let what = format!("{CONVERSATIONS} conversations, loss, copies, overtaking, 3 s outages");
    Item::new(what, figure, ok && all && skipped.is_none())
}

#[cfg(test)]
mod unit {
    use super::*;
    use crate::item::Verdict;

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
