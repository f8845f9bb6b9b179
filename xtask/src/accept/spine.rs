//! The first issue: from command line to a validated result.

use super::List;
use super::tests::Tests;
use super::{properties, tests};
use crate::item::{Item, Verdict};
use crate::{bench, metadata, tidy};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// Mutations that `docs/mutations.md` must at least list for the list to mean something.
const LEAST_MUTATIONS: usize = 10;

/// Prints the whole list; true when every line was met.
pub(super) fn check() -> Result<bool, String> {
    let mut list = List::new();
    list.line(1, &validation());
    for item in bench::items()? {
        list.line(2, &item);
    }
    let run = tests::Tests::run()?;
    list.line(3, &whole_run(&run));
    list.line(3, &dialogues(&run));
    list.line(3, &mutations(&run));
    list.line(3, &properties(&run)?);
    list.line(4, &limits(&run));
    list.line(5, &fuzz());
    list.line(6, &bad_input(&run));
    for item in style()? {
        list.line(7, &item);
    }
    Ok(list.met)
}

/// Runs cargo; its standard output and whether it succeeded.
pub(super) fn cargo(args: &[&str]) -> (String, bool) {
    cargo_with(args, &[])
}

/// The same with variables of the environment.
pub(super) fn cargo_with(args: &[&str], variables: &[(&str, &str)]) -> (String, bool) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let variables = variables.iter().copied();
    match Command::new(cargo).args(args).envs(variables).current_dir(metadata::root()).output() {
        Ok(done) => (String::from_utf8_lossy(&done.stdout).into_owned(), done.status.success()),
        Err(e) => (e.to_string(), false),
    }
}

/// The last line with something on it: our tools end with their sum.
pub(super) fn last_line(text: &str) -> &str {
    text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no output").trim()
}

fn validation() -> Item {
    let (text, ok) = cargo(&["run", "--quiet", "--release", "--package", "bentpipe-validate"]);
    Item::new("results beside ns-2, ns-3 and closed forms", last_line(&text), Verdict::of(ok))
}

/// A line about a number of tests: none at all is a miss.
pub(super) fn tests_item(what: &str, (n, failed): (usize, usize), least: usize) -> Item {
    let figure = format!("{} passed, {failed} failed", n - failed);
    Item::new(what, figure, Verdict::of(failed == 0 && n >= least))
}

pub(super) fn whole_run(run: &Tests) -> Item {
    let mut item = tests_item("all tests", run.count(|_| true), 1);
    if !run.skipped.is_empty() {
        item.figure = format!("{}, {} skipped", item.figure, run.skipped.len());
        item.verdict = Verdict::Miss;
    }
    item
}

fn dialogues(run: &Tests) -> Item {
    tests_item("segment dialogues", run.count(|t| t.program == "dialogue"), 1)
}

/// Every row of the list of mutations must name a test that ran and passed.
fn mutations(run: &Tests) -> Item {
    let what = "mutations, each with the test that catches it";
    let path = metadata::root().join("docs/mutations.md");
    let Ok(text) = fs::read_to_string(&path) else {
        return Item::new(what, "docs/mutations.md is missing", Verdict::Miss);
    };
    let rows = mutation_rows(&text);
    let lost = uncaught(&rows, |test| run.passed(test));
    let mut figure = format!("{} listed, {} without their passing tests", rows.len(), lost.len());
    if let Some(first) = lost.first() {
        figure = format!("{figure} (first: line {first})");
    }
    Item::new(what, figure, Verdict::of(lost.is_empty() && rows.len() >= LEAST_MUTATIONS))
}

/// One row of the list: its line, and the tests it names.
#[derive(Debug, PartialEq, Eq)]
struct Mutation<'a> {
    line: usize,
    tests: Vec<&'a str>,
}

/// The rows of the tables, head and rule left out. A test is named by its path in backquotes, `module::function`; a crate
/// may stand before it, as in `nodes: host::tests::x`.
fn mutation_rows(text: &str) -> Vec<Mutation<'_>> {
    let mut rows = Vec::new();
    let mut in_table = false;
    for (i, line) in text.lines().enumerate() {
        let is_row = line.starts_with('|');
        let is_rule = is_row && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
        if is_row && in_table && !is_rule {
            let quoted = line.split('`').skip(1).step_by(2);
            let paths = quoted.map(|q| q.split_once(": ").map_or(q, |(_, path)| path));
            let tests = paths.filter(|path| is_test_path(path)).collect();
            rows.push(Mutation { line: i + 1, tests });
        }
        in_table = is_rule || (in_table && is_row);
    }
    rows
}

fn is_test_path(text: &str) -> bool {
    text.contains("::")
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | ':'))
}

/// Lines of the rows that name no test, or one that did not pass.
fn uncaught(rows: &[Mutation<'_>], passed: impl Fn(&str) -> bool) -> Vec<usize> {
    rows.iter().filter(|m| m.tests.is_empty() || !m.tests.iter().all(|t| passed(t))).map(|m| m.line).collect()
}

pub(super) fn properties(run: &Tests) -> Result<Item, String> {
    let names: BTreeSet<String> = properties::names(&metadata::root().join("crates"))?.into_iter().collect();
    let (n, failed) = run.count(|t| names.contains(t.function()));
    Ok(tests_item("property tests", (n, failed), names.len().max(1)))
}

fn limits(run: &Tests) -> Item {
    tests_item("what limits a flow is told apart", run.count(|t| t.function().starts_with("limited_by_")), 1)
}

fn fuzz() -> Item {
    let (text, ok) = cargo(&[
        "run",
        "--quiet",
        "--release",
        "--package",
        "bentpipe-wire",
        "--example",
        "fuzz",
        "--",
        "--seconds",
        "60",
    ]);
    Item::new("60 s of random packets", last_line(&text), Verdict::of(ok))
}

/// Tests of refused input: those beside the error pictures, the random ones and those through the program.
pub(super) fn bad_input(run: &Tests) -> Item {
    let is_one = |program: &str| program.starts_with("errors_") || program == "robust" || program == "cli";
    tests_item("wrong input is refused with its place", run.count(|t| is_one(&t.program)), 1)
}

pub(super) fn style() -> Result<[Item; 3], String> {
    let report = tidy::run(&metadata::root())?;
    let findings = report.findings.len();
    let first = report.findings.first().map(ToString::to_string).unwrap_or_default();
    let length = |what: &str, longest: &tidy::Longest, limit| {
        let figure = format!("{} lines ({})", longest.lines, longest.what);
        Item::new(format!("{what}, at most {limit} lines"), figure, Verdict::of(longest.lines <= limit))
    };
    Ok([
        Item::new(
            "tidy",
            format!("{findings} findings in {} files {first}", report.files),
            Verdict::of(findings == 0),
        ),
        length("longest file", &report.file, tidy::FILE_LINES),
        length("longest function", &report.function, tidy::FUNCTION_LINES),
    ])
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn rows_of_the_list_are_read() {
        let text = "# M\n\n| change | test |\n|---|---|\n| no `fold` | `a::b` |\n| `a::c` | `tcp: a::d` or `X::y` |\n| y | none |\n\n\
                    | z | `a::no` |\n";
        let rows = mutation_rows(text);
        let row = |line, tests: &[&'static str]| Mutation { line, tests: tests.to_vec() };
        assert_eq!(rows, [row(5, &["a::b"]), row(6, &["a::c", "a::d"]), row(7, &[])]);
        assert_eq!(uncaught(&rows, |_| true), [7]);
        assert_eq!(uncaught(&rows, |t| t != "a::d"), [6, 7]);
        assert_eq!(uncaught(&rows, |_| false), [5, 6, 7]);
    }

    #[test]
    fn no_test_is_no_success() {
        assert_eq!(tests_item("x", (0, 0), 1).verdict, Verdict::Miss);
        assert_eq!(tests_item("x", (3, 1), 1).verdict, Verdict::Miss);
        assert_eq!(tests_item("x", (3, 0), 1).verdict, Verdict::Pass);
    }

    #[test]
    fn the_sum_is_the_last_line() {
        assert_eq!(last_line("a\nb 3\n\n"), "b 3");
        assert_eq!(last_line(""), "no output");
    }
}
