//! Runs the simulator.

use crate::expect::{Expect, judge_all};
use crate::outcome::{Failure, print_message};
use bentpipe_scenario::Scenario;
use std::path::Path;

/// Runs a scenario; returns the report as text or JSON, and true if every expectation is met. With `out`, all
/// other output goes into that folder.
pub(crate) fn run(
    scenario: &Scenario,
    json: bool,
    out: Option<&Path>,
    expects: &[Expect],
) -> Result<(String, bool), Failure> {
    expects.iter().try_for_each(|expect| expect.check("--expect", scenario))?;
    let report = match out {
        None => bentpipe_sim::run(scenario),
        Some(folder) => {
            let (report, files) = bentpipe_results::run(folder, scenario).map_err(Failure::run)?;
            print_message(&format!("{} files in {}", files.len(), folder.display()));
            report
        }
    };
    let all_met = judge_all(expects, &report, "");
    let text = if json { report.to_json() + "\n" } else { report.to_text() };
    Ok((text, all_met))
}
