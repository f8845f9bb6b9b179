//! The one place that calls the simulator.

use crate::Failure;
use bentpipe_scenario::Scenario;

/// Runs a scenario; returns the report as text, or as JSON.
#[expect(clippy::unnecessary_wraps, reason = "later outputs can fail: a directory for results")]
pub(crate) fn run(scenario: &Scenario, json: bool) -> Result<String, Failure> {
    let report = bentpipe_sim::run(scenario);
    Ok(if json { report.to_json() + "\n" } else { report.to_text() })
}
