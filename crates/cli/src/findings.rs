//! Findings about this machine, as text.

use bentpipe_service::{Finding, Standing};
use core::fmt::Write as _;

/// Returns a line for each finding, and one for each command that fixes it.
pub(crate) fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for finding in findings {
        let mark = match finding.standing {
            Standing::Good => "ok",
            Standing::Lack => "--",
            Standing::Bad => "NO",
        };
        let _ = writeln!(out, "{mark}  {:width$}  {}", finding.name, finding.found);
        for mend in &finding.mends {
            let _ = writeln!(out, "    {:width$}  mend: {mend}", "");
        }
    }
    out
}
