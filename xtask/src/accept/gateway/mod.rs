//! The gateway live, with kernel TCP at both ends.

mod cost;
mod death;
mod exact;
mod firewall;
mod flood;
mod hops;
mod lag;
mod loss;
mod programs;
mod readers;
mod routed;
mod runs;
mod stops;
mod transfer;
mod window;

use super::Part;
use super::list::{List, fuzz, style};
use super::setup::Setup;
use super::tests::Tests;
use crate::Outcome;

pub(super) const PARTS: [Part; 11] = [
    ("window", window::check),
    ("loss", loss::check),
    ("readers", readers::check),
    ("exact", exact::check),
    ("death", death::check),
    ("cost", cost::check),
    ("flood", flood::check),
    ("hostile", hostile),
    ("firewall", firewall::check),
    ("tests", tests),
    ("style", style),
];

/// Fuzzing, and tests of refused input: gateway files and rules, and the program's messages on a router.
fn hostile(_: &Setup, list: &mut List) -> Outcome {
    fuzz(list, "fuzz-headers", "random packets against the header code")?;
    fuzz(list, "fuzz-gateway", "random conversations through the gateway")?;
    let programs = ["gateway_file", "gateways", "robust", "gateway"];
    let mut chosen = vec!["--package", "bentpipe-scenario", "--package", "bentpipe-cli"];
    chosen.extend(programs.iter().flat_map(|program| ["--test", program]));
    let what = "bad input, missing parts and running twice are refused, tests";
    list.all_tests(what, &Tests::of(&chosen, &[])?, 1);
    Ok(())
}

fn tests(setup: &Setup, list: &mut List) -> Outcome {
    let run = setup.tests()?;
    let node = run.count(|t| t.program.starts_with("flow_") || t.program.starts_with("table_"));
    list.tests("the flow and the flow table, tests", node, 20);
    list.all_tests("all tests", run, 1);
    Ok(())
}
