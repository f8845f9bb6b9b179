//! A flow router and two agents are killed in the middle of streams. The acceptance list of explicit rate
//! does the same 200 times.

use lab::agents::Method;
use lab::kills::{MIDWAY, Plan, run};
use lab::rig::is_root;
use std::path::Path;
use std::time::Duration;

/// The number of kills, if another is wanted.
const COUNT: &str = "BENTPIPE_KILLS";

/// Kills as often as wanted, or `usual` times; returns what was seen.
fn kill(test: &str, usual: usize, within: Duration) -> String {
    if !is_root() {
        return format!("SKIPPED {test}: it takes root");
    }
    let count = std::env::var(COUNT).map_or(usual, |text| text.parse().expect("a number of kills"));
    let plan = Plan { count, seed: 1, method: Method::Split, within };
    let tally = run(Path::new(env!("CARGO_BIN_EXE_bentpipe")), &plan).expect("a bed");
    assert_eq!(tally.faults, Vec::<String>::new());
    assert!(tally.kills.iter().sum::<usize>() == count && tally.is_fine(&plan), "{tally:?}");
    tally.text()
}

#[test]
fn a_stream_is_whole_or_reset_when_a_router_or_an_agent_is_killed() {
    println!("{}", kill("a_stream_is_whole_or_reset_when_a_router_or_an_agent_is_killed", 6, MIDWAY));
}

#[test]
fn a_stream_is_whole_or_reset_when_they_are_killed_while_it_opens() {
    // before the SYN/ACK, which takes a round trip of 100 ms
    let within = Duration::from_millis(80);
    println!("{}", kill("a_stream_is_whole_or_reset_when_they_are_killed_while_it_opens", 3, within));
}
