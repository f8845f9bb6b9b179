//! The one place that calls the simulator.

use crate::Failure;
use bentpipe_scenario::Scenario;

/// Runs a scenario; returns the report as text, or as JSON.
pub(crate) fn run(_scenario: &Scenario, _json: bool) -> Result<String, Failure> {
    Err(Failure::Run("error: this build has no simulator; `bentpipe check` works".to_owned()))
}
