//! `tidy`: limits that keep the source easy to understand, and the layering of the crates.
//!
//! Every rule is a pure function over source text or manifest data, tested on a sample that breaks it.

mod duplicates;
mod layers;
mod source;
pub(crate) mod tree;
mod words;

use crate::metadata;
pub(crate) use layers::is_below_the_drivers;
use source::Role;
use std::fmt;
use std::path::Path;
use tree::File;

/// Most lines of a source file, including its tests.
pub(crate) const FILE_LINES: usize = 500;
/// Most lines of a function outside tests, from `fn` to its closing brace.
pub(crate) const FUNCTION_LINES: usize = 70;
/// Most columns of a comment line, with its indentation.
const COMMENT_COLUMNS: usize = 110;

/// A violation of a rule.
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

/// A maximum length, and where it occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Longest {
    pub lines: usize,
    pub what: String,
}

/// Result of a run over the whole workspace.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub findings: Vec<Finding>,
    /// The longest file.
    pub file: Longest,
    pub function: Longest,
    pub files: usize,
}

/// Runs all rules; prints findings, maximum lengths and line counts. `--lines` only counts lines, of this
/// tree or of another.
pub(crate) fn command(args: &[String]) -> Result<(), String> {
    let root = metadata::root();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => all_rules(&root),
        ["--lines"] => tree::read(&root).map(|files| print_lines(&files)),
        ["--lines", other] => tree::read(Path::new(other)).map(|files| print_lines(&files)),
        _ => Err("usage: cargo xtask tidy [--lines [FOLDER]]".to_owned()),
    }
}

fn all_rules(root: &Path) -> Result<(), String> {
    let files = tree::read(root)?;
    let report = check(&files)?;
    for finding in &report.findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", report.files, report.findings.len());
    println!("tidy: longest file {} lines ({})", report.file.lines, report.file.what);
    println!("tidy: longest function {} lines ({})", report.function.lines, report.function.what);
    print_lines(&files);
    if report.findings.is_empty() { Ok(()) } else { Err("tidy: failed".to_owned()) }
}

fn print_lines(files: &[File]) {
    let (product, all) = tree::count_lines(files);
    println!("tidy: {product} product and tool lines of Rust, {all} with tests");
}

/// Runs every rule over the workspace at `root`.
pub(crate) fn run(root: &Path) -> Result<Report, String> {
    check(&tree::read(root)?)
}

fn check(files: &[File]) -> Result<Report, String> {
    let mut report = Report { findings: layers::check(&metadata::packages()?), ..Report::default() };
    report.findings.extend(words::check(files));
    for file in files.iter().filter(|f| f.syntax.is_some()) {
        check_file(&mut report, file);
    }
    report.findings.extend(duplicates::find(files));
    report.findings.sort_by(|a, b| (&a.place, a.line).cmp(&(&b.place, b.line)));
    Ok(report)
}

fn check_file(report: &mut Report, file: &File) {
    let checked = source::check(file, role(file));
    report.files += 1;
    report.findings.extend(checked.findings);
    report.function = report.function.clone().max(checked.function);
    let longest = Longest { lines: file.text.lines().count(), what: file.name() };
    report.file = report.file.clone().max(longest);
}

/// The role of a file, which selects its rules.
fn role(file: &File) -> Role {
    let mut parts = file.path.iter().filter_map(|p| p.to_str());
    match (parts.next(), parts.next()) {
        _ if file.is_test => Role::Test,
        (Some("crates"), Some(name)) if layers::is_below_the_drivers(name) => Role::Engine,
        _ => Role::Driver,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File::new(path.into(), text.to_owned())
    }

    #[test]
    fn roles_follow_the_path() {
        let role = |p: &str| role(&file(p, ""));
        assert_eq!(role("crates/tcp/src/lib.rs"), Role::Engine);
        assert_eq!(role("crates/sim/src/report.rs"), Role::Engine);
        assert_eq!(role("crates/cli/src/main.rs"), Role::Driver);
        assert_eq!(role("xtask/src/main.rs"), Role::Driver);
        assert_eq!(role("crates/tcp/tests/dialogue.rs"), Role::Test);
        assert_eq!(role("fuzz/src/headers.rs"), Role::Test);
    }

    #[test]
    fn lengths_are_reported_and_limited() {
        let mut report = Report::default();
        let long = "//\n".repeat(FILE_LINES + 1);
        check_file(&mut report, &file("crates/cli/src/main.rs", &long));
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
        assert_eq!(report.file.lines, FILE_LINES + 1);
    }
}
