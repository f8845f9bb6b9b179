//! A flow router and two agents are killed in the middle of streams. The acceptance list of explicit rate
//! does the same 200 times.

use lab::kills;
use lab::rig::is_root;
use std::path::Path;

/// The number of kills, if another is wanted.
const COUNT: &str = "BENTPIPE_KILLS";

#[test]
fn a_stream_is_whole_or_reset_when_a_router_or_an_agent_is_killed() {
    if !is_root() {
        println!("SKIPPED a_stream_is_whole_or_reset_when_a_router_or_an_agent_is_killed: it takes root");
        return;
    }
    let count = std::env::var(COUNT).map_or(6, |text| text.parse().expect("a number of kills"));
    let tally = kills::run(Path::new(env!("CARGO_BIN_EXE_bentpipe")), count, 1).expect("a bed");
    println!("{}", tally.text());
    assert_eq!(tally.faults, Vec::<String>::new());
    assert!(tally.kills.iter().sum::<usize>() == count && tally.is_fine(), "{tally:?}");
}
