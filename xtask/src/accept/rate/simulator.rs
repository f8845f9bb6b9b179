//! Runs of the scenarios of explicit rate, and what their reports say.

use crate::accept::list::Outcome;
use crate::{bench, metadata};
use lab::once::output;
use lab::stats::median;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The release build of bentpipe.
pub(super) struct Simulator(PathBuf);

impl Simulator {
    pub(super) fn build() -> Outcome<Self> {
        bench::build("bentpipe").map(Self)
    }

    /// The program.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Runs a scenario with these parameters; returns its report.
    pub(super) fn run(&self, scenario: &str, sets: &[(&str, &str)], seed: u64) -> Outcome<Value> {
        let name = format!("sim {scenario}, seed {seed}");
        let mut command = Command::new(&self.0);
        command.current_dir(metadata::root()).arg("sim").arg(format!("scenarios/{scenario}.toml"));
        command.args(["--json", "--seed"]).arg(seed.to_string());
        command.args(sets.iter().map(|(key, value)| format!("--set={key}={value}")));
        let text = output(&name, &mut command)?;
        serde_json::from_str(&text).map_err(|e| format!("{name}: {e}"))
    }

    /// Median time of the transfer of `rate-transfer`, s, over the first seeds.
    pub(super) fn median_time(&self, sets: &[(&str, &str)], seeds: u64) -> Outcome<f64> {
        let time = |seed: u64| {
            let report = self.run("rate-transfer", sets, seed)?;
            let finished = &report["flows"][0]["finished_s"];
            finished.as_f64().ok_or_else(|| format!("seed {seed}: the transfer did not finish"))
        };
        let times: Vec<f64> = (1..=seeds).map(time).collect::<Outcome<_>>()?;
        Ok(median(&times))
    }
}

/// The rate that was granted to the only flow.
pub(super) fn granted_bps(report: &Value) -> Outcome<u64> {
    let rate = &report["flows"][0]["rate"];
    rate["granted_bps"].as_u64().ok_or_else(|| format!("no rate was granted: {rate}"))
}

pub(super) fn goodput_bps(report: &Value, flow: &str) -> Outcome<f64> {
    let goodput = &named(report, "flows", flow)?["goodput_bps"];
    goodput.as_f64().ok_or_else(|| format!("no goodput of {flow}"))
}

/// The object of this name in a list of the report.
pub(super) fn named<'a>(report: &'a Value, list: &str, name: &str) -> Outcome<&'a Value> {
    let found = report[list].as_array().and_then(|all| all.iter().find(|one| one["name"] == name));
    found.ok_or_else(|| format!("no {name} among the {list}"))
}

/// Drops of a link, of all causes.
pub(super) fn drops(link: &Value) -> Outcome<f64> {
    let causes = link["drops"].as_object().ok_or("no drops in the report")?;
    Ok(causes.values().filter_map(Value::as_f64).sum())
}

#[cfg(test)]
mod unit {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_found_by_their_names() {
        let report = json!({
            "flows": [{"name": "far", "goodput_bps": 2.0, "rate": {"granted_bps": 7}}, {"name": "near"}],
            "links": [{"name": "a", "drops": {}}, {"name": "b", "drops": {"queue_full": 2, "outage": 1}}],
        });
        assert_eq!((granted_bps(&report), goodput_bps(&report, "far")), (Ok(7), Ok(2.0)));
        assert!(goodput_bps(&report, "near").is_err() && goodput_bps(&report, "x").is_err());
        assert_eq!(drops(named(&report, "links", "a").unwrap()), Ok(0.0));
        assert_eq!(drops(named(&report, "links", "b").unwrap()), Ok(3.0));
        assert!(named(&report, "links", "c").is_err() && drops(&json!({"name": "d"})).is_err());
    }

    #[test]
    fn a_flow_without_a_rate_is_an_error_that_shows_what_there_is() {
        let report = json!({"flows": [{"rate": {"granted_bps": null, "state": "plain"}}]});
        assert!(granted_bps(&report).unwrap_err().contains("plain"));
        assert!(granted_bps(&json!({})).is_err());
    }
}
