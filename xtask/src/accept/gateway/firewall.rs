//! Starts behind firewalls, and beside traffic that merely ends (5): the tests of `crates/cli/tests/gateway/firewall.rs`, as often as the list asks for.

use crate::accept::List;
use crate::accept::place::Place;
use crate::accept::tests::Tests;
use crate::item::{Item, Verdict};

/// Starts of each kind: four kinds beside harmless traffic are 100 in all.
const STARTS: (&str, &str) = ("5", "25");
/// Each test, and what it holds.
const TESTS: [(&str, &str); 3] = [
    (
        "a_firewall_that_would_drop_the_sites_traffic_is_named_and_its_rules_mend_it",
        "nft, iptables-nft, iptables-legacy that forward nothing by default: refused by name, and the rules that are printed mend it",
    ),
    (
        "a_start_that_stops_traffic_is_taken_back",
        "starts behind each of them, and behind one that no check sees: all taken back within 5 s, exit status 3, connections alive",
    ),
    (
        "a_start_beside_traffic_that_merely_ends_is_left_alone",
        "starts beside silent, ending, one-way and lossy (20 %) traffic: none taken back",
    ),
];

pub(super) fn check(place: &Place, list: &mut List) -> Result<(), String> {
    let starts = if place.long { STARTS.1 } else { STARTS.0 };
    let chosen = ["--package", "bentpipe-cli", "--test", "gateway", "firewall::"];
    let run = Tests::with(&chosen, &[("BENTPIPE_STARTS", starts)])?;
    for (name, what) in TESTS {
        let found = run.all.iter().find(|test| test.function() == name);
        let is_skipped =
            run.skipped.iter().any(|skipped| run.all.len() < TESTS.len() || name.contains(&**skipped));
        let slowest = run.said.iter().filter_map(|(_, line)| seconds(line)).fold(0.0, f64::max);
        let figure = match found {
            None => "it did not run".to_owned(),
            Some(_) if is_skipped => "skipped".to_owned(),
            Some(test) if !test.passed => "failed".to_owned(),
            Some(_) if name.contains("taken_back") => {
                format!("{starts} of each, the slowest after {slowest:.1} s")
            }
            Some(_) => format!("{starts} of each"),
        };
        let met = found.is_some_and(|test| test.passed) && !is_skipped;
        list.line(5, &Item::new(what, figure, Verdict::of(met)));
    }
    Ok(())
}

/// How long a start took to be taken back, from what its test says.
fn seconds(line: &str) -> Option<f64> {
    line.split_once(": taken back ")?.1.split(' ').next()?.parse().ok()
}
