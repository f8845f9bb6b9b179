//! `bentpipe doctor`: checks what this machine can do.

use crate::outcome::Failure;
use bentpipe_emulate::doctor::run_checks;
use bentpipe_emulate::{Error, leftovers, registry};
use bentpipe_service::{CheckStatus, Finding};
use core::fmt::Write as _;
use serde_json::json;

/// Checks the machine or cleans up; returns the text to print, and true if links can be emulated here.
pub(crate) fn run(json: bool, clean: bool) -> Result<(String, bool), Failure> {
    if clean {
        return Ok((clean_up()?, true));
    }
    let findings = run_checks();
    let works = findings.iter().all(|f| f.standing != CheckStatus::Bad);
    if json {
        let object =
            |f: &Finding| json!({ "name": f.name, "state": f.standing, "found": f.found, "mends": f.mends });
        let all: Vec<_> = findings.iter().map(object).collect();
        return Ok((format!("{:#}\n", json!(all)), works));
    }
    let end = if works { "links can be emulated here" } else { "links cannot be emulated here" };
    Ok((format!("{}\n{end}\n", findings_text(&findings)), works))
}

/// Returns a line for each finding, and one for each command that fixes it.
pub(crate) fn findings_text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for finding in findings {
        let mark = match finding.standing {
            CheckStatus::Good => "ok",
            CheckStatus::Lack => "--",
            CheckStatus::Bad => "NO",
        };
        let _ = writeln!(out, "{mark}  {:width$}  {}", finding.name, finding.found);
        for mend in &finding.mends {
            let _ = writeln!(out, "    {:width$}  fix: {mend}", "");
        }
    }
    out
}

fn clean_up() -> Result<String, Failure> {
    let registry = registry::open()?;
    let _lock = registry::lock(&registry).map_err(Error::from)?;
    let mut out = String::new();
    leftovers::clean(&registry, &mut |line| {
        let _ = writeln!(out, "{line}");
    });
    if out.is_empty() {
        out.push_str("nothing to clean up\n");
    }
    Ok(out)
}
