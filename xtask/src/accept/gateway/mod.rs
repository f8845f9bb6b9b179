//! The gateway live, with kernel TCP at both ends.

mod cost;
mod death;
mod exact;
mod flood;
mod hops;
mod loss;
mod panics;
mod readers;
mod routed;
mod runs;
mod stops;
mod transfer;
mod window;

use super::Part;
use super::list::{List, Outcome, Setup, Tests, fuzz, style};
use crate::item::Verdict;

pub(super) const PARTS: [Part; 12] = [
    ("window", window::check),
    ("loss", loss::check),
    ("readers", readers::check),
    ("exact", exact::check),
    ("death", death::check),
    ("panics", panics::check),
    ("cost", cost::check),
    ("flood", flood::check),
    ("hostile", hostile),
    ("firewall", firewall),
    ("tests", tests),
    ("style", style),
];

/// Starts of each kind, in short and in full: the four kinds with harmless traffic make 100 in full.
const STARTS: (&str, &str) = ("5", "25");
const FIREWALL: [(&str, &str); 3] = [
    (
        "nft, iptables-nft, iptables-legacy that forward nothing by default: refused by name, and the rules that are printed fix it",
        "a_firewall_that_would_drop_the_sites_traffic_is_named_and_its_rules_mend_it",
    ),
    (
        "starts behind each of them, and behind one that no check sees: all undone within 5 s, exit status 3, connections alive",
        "a_start_that_stops_traffic_is_undone",
    ),
    (
        "starts beside silent, ending, one-way and lossy (20 %) traffic: none undone",
        "a_start_beside_traffic_that_merely_ends_is_left_alone",
    ),
];

/// Fuzzing, and tests of refused input: gateway files and rules, and the program's messages on a router.
fn hostile(_: &Setup, list: &mut List) -> Outcome {
    fuzz(list, "fuzz-headers", "random packets against the header code")?;
    fuzz(list, "fuzz-gateway", "random conversations through the gateway")?;
    let chosen = "--package bentpipe-scenario --package bentpipe-cli \
                  --test deployed --test scenarios --test robust --test gateway";
    let what = "bad input, missing parts and running twice are refused, tests";
    list.all_tests(what, &Tests::of(chosen, &[])?, 1);
    Ok(())
}

fn tests(setup: &Setup, list: &mut List) -> Outcome {
    let run = setup.tests()?;
    let node = run.count(|t| matches!(t.program.as_str(), "flow" | "table" | "table_memory"));
    list.tests("the flow and the flow table, tests", node, 20);
    list.all_tests("all tests", run, 1);
    Ok(())
}

/// The gateway starts behind firewalls, or with closing connections: `crates/cli/tests/gateway/firewall.rs`.
fn firewall(setup: &Setup, list: &mut List) -> Outcome {
    let starts = setup.pick(STARTS.1, STARTS.0);
    let chosen = "--package bentpipe-cli --test gateway firewall::";
    let run = Tests::of(chosen, &[("BENTPIPE_STARTS", starts)])?;
    let slowest = run.output.iter().filter_map(|(_, line)| seconds(line)).fold(0.0, f64::max);
    for (what, test) in FIREWALL {
        let mut item = run.check_proof(what, &[test]);
        if !run.skipped.is_empty() {
            (item.figure, item.verdict) = (format!("skipped: {}", run.skipped.join(", ")), Verdict::Miss);
        } else if item.verdict == Verdict::Pass {
            item.figure = format!("{starts} of each, the slowest undone after {slowest:.1} s");
        }
        list.item(&item);
    }
    Ok(())
}

/// Time after which a start was undone, from the test's output.
fn seconds(line: &str) -> Option<f64> {
    line.split_once(": undone ")?.1.split(' ').next()?.parse().ok()
}
