//! `tidy`: limits that keep the source easy to hold in one's head, and the layering of the crates.
//!
//! Every rule is a pure function over source text or manifest data, tested on a small sample that breaks it.

mod layers;
mod machine;
mod source;

use crate::Outcome;
use crate::metadata;
use source::{Place, Role};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines a source file may have, tests inside included.
pub(crate) const FILE_LINES: usize = 500;
/// Lines a function outside tests may have, from `fn` to its closing brace.
pub(crate) const FUNCTION_LINES: usize = 70;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// File relative to the workspace, or a crate's name.
    pub place: String,
    /// Line, 1 for whole-file findings.
    pub line: usize,
    /// What is wrong and what to do.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.place, self.line, self.text)
    }
}

/// The extreme of a length: how long, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Longest {
    /// Lines.
    pub lines: usize,
    /// What has them.
    pub what: String,
}

/// What a run over the whole workspace found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Broken rules, by place.
    pub findings: Vec<Finding>,
    /// The longest file that is not generated.
    pub file: Longest,
    /// The longest function outside tests.
    pub function: Longest,
    /// Files looked at.
    pub files: usize,
}

/// Runs every rule; prints findings and the two extremes.
pub(crate) fn command(_args: &[String]) -> Outcome {
    let report = run(&metadata::root())?;
    for finding in &report.findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", report.files, report.findings.len());
    println!("tidy: longest file {} lines ({})", report.file.lines, report.file.what);
    println!("tidy: longest function {} lines ({})", report.function.lines, report.function.what);
    if report.findings.is_empty() { Ok(()) } else { Err("tidy: failed".to_owned()) }
}

/// Runs every rule over the workspace at `root`.
///
/// # Errors
/// When a file or cargo's metadata cannot be read.
pub(crate) fn run(root: &Path) -> Result<Report, String> {
    let mut report = Report { findings: layers::check(&metadata::packages()?), ..Report::default() };
    let mut paths = Vec::new();
    for top in ["crates", "xtask"] {
        collect(&root.join(top), &mut paths)?;
    }
    report.findings.extend(machine::check(root)?);
    let mut texts = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
        texts.push((relative, text));
    }
    let test_only: BTreeSet<PathBuf> = texts.iter().flat_map(|(p, t)| source::test_modules(p, t)).collect();
    for (path, text) in &texts {
        look_at(&mut report, path, text, &test_only);
    }
    report.findings.sort_by(|a, b| (&a.place, a.line).cmp(&(&b.place, b.line)));
    Ok(report)
}

/// Adds one file to the report.
fn look_at(report: &mut Report, path: &Path, text: &str, test_only: &BTreeSet<PathBuf>) {
    let name = path.display().to_string();
    let place =
        Place { name: &name, role: role(path, test_only), unsafe_allowed: path.starts_with("crates/os") };
    let checked = source::check(&place, text);
    report.files += 1;
    report.findings.extend(checked.findings);
    report.function = report.function.clone().max(checked.function);
    if !source::is_generated(text) {
        report.file = report.file.clone().max(Longest { lines: text.lines().count(), what: name });
    }
}

/// What the rules may ask of a file.
fn role(path: &Path, test_only: &BTreeSet<PathBuf>) -> Role {
    let mut parts = path.iter().filter_map(|p| p.to_str());
    let (top, name, folder) = (parts.next(), parts.next(), parts.next());
    if top == Some("crates") && matches!(folder, Some("tests" | "benches" | "examples")) {
        return Role::Test;
    }
    if path.ancestors().any(|a| test_only.contains(a)) || test_only.contains(&path.with_extension("")) {
        return Role::Test;
    }
    match name {
        Some(name) if top == Some("crates") && layers::is_below_the_drivers(name) => Role::Engine,
        _ => Role::Driver,
    }
}

/// All Rust files below `dir`, in a fixed order.
pub(crate) fn collect(dir: &Path, into: &mut Vec<PathBuf>) -> Result<(), String> {
    let fault = |e| format!("{}: {e}", dir.display());
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(dir).map_err(fault)? {
        entries.push(entry.map_err(fault)?.path());
    }
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(&path, into)?;
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_the_path() {
        let tests = BTreeSet::from([PathBuf::from("crates/tcp/src/dialogue")]);
        let role = |p: &str| role(Path::new(p), &tests);
        assert_eq!(role("crates/tcp/src/lib.rs"), Role::Engine);
        assert_eq!(role("crates/sim/src/report.rs"), Role::Engine);
        assert_eq!(role("crates/cli/src/main.rs"), Role::Driver);
        assert_eq!(role("xtask/src/main.rs"), Role::Driver);
        assert_eq!(role("crates/tcp/tests/dialogue.rs"), Role::Test);
        assert_eq!(role("crates/wire/examples/fuzz.rs"), Role::Test);
        assert_eq!(role("crates/tcp/src/dialogue.rs"), Role::Test);
        assert_eq!(role("crates/tcp/src/dialogue/sack.rs"), Role::Test);
    }

    #[test]
    fn lengths_are_reported_and_limited() {
        let mut report = Report::default();
        let long = "//\n".repeat(FILE_LINES + 1);
        look_at(&mut report, Path::new("crates/cli/src/main.rs"), &long, &BTreeSet::new());
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
        assert_eq!(report.file.lines, FILE_LINES + 1);
        let generated = format!("// @generated\n{long}");
        look_at(&mut report, Path::new("crates/cli/src/table.rs"), &generated, &BTreeSet::new());
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    }
}
