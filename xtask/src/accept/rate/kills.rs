//! `kill -9` of the flow router and of the agents, in the middle of streams and while they open, while rates
//! change every round trip.

use crate::accept::list::{List, Outcome, Setup, lacks_for_bpf};
use lab::agents::Method;
use lab::kills::{self, MIDWAY, OPENING, Plan};
use std::path::Path;

/// Number of kills, also while streams open, and the variable that sets another.
const COUNT: usize = 200;
const VARIABLE: &str = "BENTPIPE_KILLS";

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let count = match std::env::var(VARIABLE) {
        Ok(text) => text.parse().map_err(|_| format!("{VARIABLE}={text}: no number"))?,
        Err(_) => COUNT,
    };
    let plan = |method, within| Plan { count, seed: 1, method, within };
    let what = "kill -9 of router, sender's and receiver's agent: whole or reset, both ends within 2 s";
    for (within, when) in [(MIDWAY, ""), (OPENING, ", while they open")] {
        line(list, &format!("{count} x {what}{when}"), setup.bentpipe(), &plan(Method::Split, within));
    }
    let what = "the same with the method kernel: whole or reset, nine in ten whole, silent for at most TCP's timeouts";
    for (within, when) in [(MIDWAY, ""), (OPENING, ", while they open")] {
        let what = format!("{count} x {what}{when}");
        match lacks_for_bpf() {
            Some(why) => list.skip(&what, &why),
            None => line(list, &what, setup.with_bpf(), &plan(Method::Kernel, within)),
        }
    }
    Ok(())
}

fn line(list: &mut List, what: &str, program: Outcome<&Path>, plan: &Plan) {
    let tally = program.and_then(|program| kills::run(program, plan));
    list.judge(what, tally, |tally| {
        let faults: Vec<String> = tally.faults.iter().take(3).map(|fault| format!("; {fault}")).collect();
        (tally.text() + &faults.concat(), tally.is_fine(plan))
    });
}
