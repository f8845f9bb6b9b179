//! Gateway starts behind firewalls, or with closing connections: `crates/cli/tests/gateway/firewall.rs`.

use crate::Outcome;
use crate::accept::list::{List, Proof};
use crate::accept::setup::Setup;
use crate::accept::tests::Tests;
use crate::item::Verdict;

/// Starts of each kind: four kinds with harmless traffic are 100 in all.
const STARTS: (&str, &str) = ("5", "25");
/// Requirements, and the tests that check them.
const TESTS: [Proof; 3] = [
    (
        "nft, iptables-nft, iptables-legacy that forward nothing by default: refused by name, and the rules that are printed mend it",
        &["a_firewall_that_would_drop_the_sites_traffic_is_named_and_its_rules_mend_it"],
    ),
    (
        "starts behind each of them, and behind one that no check sees: all taken back within 5 s, exit status 3, connections alive",
        &["a_start_that_stops_traffic_is_taken_back"],
    ),
    (
        "starts beside silent, ending, one-way and lossy (20 %) traffic: none taken back",
        &["a_start_beside_traffic_that_merely_ends_is_left_alone"],
    ),
];

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let starts = setup.pick(STARTS.1, STARTS.0);
    let chosen = ["--package", "bentpipe-cli", "--test", "gateway", "firewall::"];
    let run = Tests::of(&chosen, &[("BENTPIPE_STARTS", starts)])?;
    let slowest = run.said.iter().filter_map(|(_, line)| seconds(line)).fold(0.0, f64::max);
    for (what, tests) in TESTS {
        let mut item = run.proved(what, tests);
        if !run.skipped.is_empty() {
            (item.figure, item.verdict) = (format!("skipped: {}", run.skipped.join(", ")), Verdict::Miss);
        } else if item.verdict == Verdict::Pass {
            item.figure = format!("{starts} of each, the slowest taken back after {slowest:.1} s");
        }
        list.item(&item);
    }
    Ok(())
}

/// Time after which a start was undone, from the test's output.
fn seconds(line: &str) -> Option<f64> {
    line.split_once(": taken back ")?.1.split(' ').next()?.parse().ok()
}
