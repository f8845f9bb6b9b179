//! `bentpipe doctor`: what this machine can do.

use crate::Failure;
use bentpipe_emulate::doctor::{Finding, State, examine};
use bentpipe_emulate::leftovers;
use bentpipe_emulate::registry::Registry;
use core::fmt::Write as _;

/// Looks at the machine, or cleans up; gives what to print, and whether links can be emulated here.
pub(crate) fn run(json: bool, clean: bool) -> Result<(String, bool), Failure> {
    if clean {
        return Ok((clean_up()?, true));
    }
    let findings = examine();
    let works = findings.iter().all(|f| f.state != State::Bad);
    if json {
        let text = serde_json::to_string_pretty(&findings).unwrap_or_default();
        return Ok((text + "\n", works));
    }
    Ok((text(&findings, works), works))
}

fn text(findings: &[Finding], works: bool) -> String {
    let width = findings.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for finding in findings {
        let mark = match finding.state {
            State::Good => "ok",
            State::Lack => "--",
            State::Bad => "NO",
        };
        let _ = writeln!(out, "{mark}  {:width$}  {}", finding.name, finding.found);
        for mend in &finding.mends {
            let _ = writeln!(out, "    {:width$}  mend: {mend}", "");
        }
    }
    out += if works { "\nlinks can be emulated here\n" } else { "\nlinks cannot be emulated here\n" };
    out
}

/// Removes what killed sessions have left behind.
fn clean_up() -> Result<String, Failure> {
    let registry = Registry::open()?;
    let _lock = registry.lock()?;
    let mut out = String::new();
    leftovers::clean(&registry, &mut |line| {
        let _ = writeln!(out, "{line}");
    });
    if out.is_empty() {
        out.push_str("nothing to clean up\n");
    }
    Ok(out)
}
