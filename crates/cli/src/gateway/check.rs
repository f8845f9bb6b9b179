//! What `bentpipe gateway check` prints.

use crate::doctor::findings_text;
use crate::outcome::{Failure, to_json};
use bentpipe_accelerate::deploy::Check;
use core::fmt::Write as _;
use serde_json::json;

pub(super) fn text(file: &str, check: &Check, json: bool) -> Result<String, Failure> {
    let steps = check.steps();
    if json {
        return to_json(&json!({
            "file": file,
            "starts": check.is_good(),
            "intercepts": check.intercepted,
            "steps": steps,
            "findings": check.findings,
        }));
    }
    let mut out = String::from("would go through the gateway:\n");
    for line in &check.intercepted {
        let _ = writeln!(out, "  {line}");
    }
    out += "\nwould be changed, and reverted at the end:\n";
    for line in steps.iter().flat_map(|step| step.lines()) {
        let _ = writeln!(out, "  {line}");
    }
    out += "\nthis machine:\n";
    out += &findings_text(&check.findings);
    out += if check.is_good() { "\nthe gateway would start\n" } else { "\nthe gateway would not start\n" };
    Ok(out)
}
