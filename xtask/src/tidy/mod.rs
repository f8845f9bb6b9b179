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
use source::{Origin, Role};
use std::cmp::Ordering;
use std::fmt;
use std::path::Path;
use tree::File;

/// Most lines of a source file, including its tests.
pub(crate) const FILE_LINES: usize = 500;
/// Most lines of a function outside tests, from `fn` to its closing brace.
pub(crate) const FUNCTION_LINES: usize = 70;
/// Most columns of a comment line, with its indentation.
const COMMENT_COLUMNS: usize = 110;
/// Number of duplicates that remain to be fixed. It may only fall; at 0 each is a finding.
const DUPLICATES: usize = 0;

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
    /// The longest file that is not generated.
    pub file: Longest,
    pub function: Longest,
    pub files: usize,
    /// Lines that occur in several product files.
    duplicates: Vec<Finding>,
}

/// Runs all rules; prints findings, maximum lengths and line counts. `--all` also prints the places that
/// remain to be fixed; `--lines` only counts lines, of this tree or of another.
pub(crate) fn command(args: &[String]) -> Result<(), String> {
    let root = metadata::root();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => all_rules(&root, false),
        ["--all"] => all_rules(&root, true),
        ["--lines"] => tree::read(&root).map(|files| print_lines(&files)),
        ["--lines", other] => tree::read(Path::new(other)).map(|files| print_lines(&files)),
        _ => Err("usage: cargo xtask tidy [--all | --lines [FOLDER]]".to_owned()),
    }
}

fn all_rules(root: &Path, with_all: bool) -> Result<(), String> {
    let files = tree::read(root)?;
    let report = check(&files)?;
    for finding in &report.findings {
        println!("{finding}");
    }
    if with_all {
        report.duplicates.iter().for_each(|f| println!("{f}"));
    }
    println!("tidy: {} files, {} findings", report.files, report.findings.len());
    println!("tidy: longest file {} lines ({})", report.file.lines, report.file.what);
    println!("tidy: longest function {} lines ({})", report.function.lines, report.function.what);
    println!("tidy: still to be mended (--all): {} duplicates", report.duplicates.len());
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
    for places in duplicates::find(files) {
        let list: Vec<_> = places.iter().map(|(file, from, to)| format!("{file}:{from}-{to}")).collect();
        let (place, line, _) = places[0].clone();
        report.duplicates.push(Finding { place, line, text: format!("the same lines: {}", list.join("  ")) });
    }
    limit(&mut report.findings, "DUPLICATES", &report.duplicates, DUPLICATES);
    report.findings.sort_by(|a, b| (&a.place, a.line).cmp(&(&b.place, b.line)));
    Ok(report)
}

/// Checks a number that may only fall: if fewer places are found, the limit must be lowered.
fn limit(findings: &mut Vec<Finding>, name: &str, found: &[Finding], at_most: usize) {
    let place = "xtask/src/tidy/mod.rs".to_owned();
    let n = found.len();
    match n.cmp(&at_most) {
        Ordering::Equal => {}
        Ordering::Less => findings.push(Finding { place, line: 1, text: format!("{name}: lower it to {n}") }),
        Ordering::Greater if at_most == 0 => findings.extend_from_slice(found),
        Ordering::Greater => {
            let text = format!("{name}: {n} of at most {at_most}; `cargo xtask tidy --all` lists them");
            findings.push(Finding { place, line: 1, text });
        }
    }
}

fn check_file(report: &mut Report, file: &File) {
    let name = file.name();
    let place = Origin { name: &name, role: role(file), unsafe_allowed: file.path.starts_with("crates/os") };
    let checked = source::check(&place, file);
    report.files += 1;
    report.findings.extend(checked.findings);
    report.function = report.function.clone().max(checked.function);
    if !source::is_generated(&file.text) {
        report.file = report.file.clone().max(Longest { lines: file.text.lines().count(), what: name });
    }
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
        check_file(&mut report, &file("crates/cli/src/table.rs", &format!("// @generated\n{long}")));
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    }

    #[test]
    fn numbers_may_only_fall() {
        let one = Finding { place: "a.rs".to_owned(), line: 3, text: "wide".to_owned() };
        let findings = |found: &[Finding], at_most| {
            let mut findings = Vec::new();
            limit(&mut findings, "N", found, at_most);
            findings.into_iter().map(|f| f.text).collect::<Vec<_>>()
        };
        let two = [one.clone(), one.clone()];
        assert_eq!(findings(&two, 2), Vec::<String>::new());
        assert_eq!(findings(&two, 0), ["wide", "wide"]);
        assert_eq!(findings(&two[..1], 2), ["N: lower it to 1"]);
        assert_eq!(findings(&two, 1), ["N: 2 of at most 1; `cargo xtask tidy --all` lists them"]);
    }
}
