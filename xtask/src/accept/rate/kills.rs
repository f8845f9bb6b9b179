//! `kill -9` of the flow router and of the agents, in the middle of streams, while rates change every round
//! trip.

use crate::accept::list::{List, Outcome, Setup};
use lab::kills;

/// Number of kills, and the variable that sets another.
const COUNT: usize = 200;
const VARIABLE: &str = "BENTPIPE_KILLS";

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let count = match std::env::var(VARIABLE) {
        Ok(text) => text.parse().map_err(|_| format!("{VARIABLE}={text}: no number"))?,
        Err(_) => COUNT,
    };
    let tally = kills::run(setup.bentpipe()?, count, 1);
    let what = "kill -9 of router, sender's and receiver's agent: whole or reset, both ends within 2 s";
    list.judge(format!("{count} x {what}"), tally, |tally| {
        let faults: Vec<String> = tally.faults.iter().take(3).map(|fault| format!("; {fault}")).collect();
        (tally.text() + &faults.concat(), tally.is_fine())
    });
    Ok(())
}
