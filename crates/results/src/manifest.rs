//! `manifest.json`: what is needed to repeat the run. Independent of machine and clock if simulated.

use crate::Outcome;
use serde_json::json;

pub(crate) fn json(outcome: &Outcome<'_>, files: &[String]) -> String {
    let report = outcome.report;
    let captures: Vec<_> = (outcome.captures.iter())
        .map(|c| {
            let mut entry = json!({
                "link": c.link,
                "point": c.point,
                "file": c.path.file_name().map(|n| n.to_string_lossy().into_owned()),
                "packets": c.packets,
                "missing": c.missing,
            });
            if c.lost > 0 {
                entry["lost"] = c.lost.into();
            }
            entry
        })
        .collect();
    let mut manifest = json!({
        "schema": 1,
        "program": "bentpipe",
        "version": report.version,
        "scenario": report.scenario,
        "seed": report.seed,
        "simulated_s": report.simulated_s,
        "parameters": report.parameters,
        "interval_s": outcome.record.every.as_secs_f64(),
        "files": files,
        "captures": captures,
        "resolved_scenario": bentpipe_scenario::to_toml(outcome.scenario),
    });
    if let Some(live) = &report.live {
        manifest["live"] = json!({ "kernel": live.kernel, "trusted": live.trusted });
    }
    format!("{manifest:#}\n")
}
