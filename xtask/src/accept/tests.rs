//! Runs all tests and parses which of them passed.

use crate::item::Item;
use crate::{Outcome, metadata, tidy};
use proc_macro2::TokenTree;
use std::collections::BTreeSet;
use std::process::Command;
use syn::visit::{self, Visit};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// The test program: `bentpipe_tcp` for the tests inside a crate, `limits` for `tests/limits.rs`.
    pub program: String,
    pub name: String,
    pub passed: bool,
}

impl Test {
    /// True if it is of this test program, or of this module of one.
    pub(super) fn is_of(&self, program: &str) -> bool {
        self.program == program || self.name.split_once("::").is_some_and(|(module, _)| module == program)
    }

    pub(super) fn function(&self) -> &str {
        self.name.rsplit("::").next().unwrap_or(&self.name)
    }
}

/// All tests of a run.
#[derive(Debug, Default)]
pub(super) struct Tests {
    pub all: Vec<Test>,
    /// Tests that printed that they could not run: they pass, but prove nothing.
    pub skipped: Vec<String>,
    /// Output of tests: test path and line.
    pub output: Vec<(String, String)>,
    program: String,
    /// The test whose output follows, if any.
    speaker: String,
}

impl Tests {
    /// Runs the tests given by the cargo arguments `chosen`, with environment variables.
    pub(super) fn of(chosen: &str, variables: &[(&str, &str)]) -> Outcome<Self> {
        // cargo names the test programs on standard error, between the results on standard output
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(metadata::cargo());
        command.args(["test", "--no-fail-fast"]).args(chosen.split(' ')).args(["--", "--show-output"]);
        command.current_dir(metadata::root()).envs(variables.iter().copied());
        let done = command.output().map_err(|e| format!("cargo test: {e}"))?;
        let text = String::from_utf8_lossy(&done.stdout);
        let mut tests = Self::default();
        text.lines().for_each(|line| tests.line(line));
        if tests.all.is_empty() {
            let errors: Vec<_> = text.lines().filter(|line| line.starts_with("error")).collect();
            return Err(format!("cargo test: no test ran\n{}", errors.join("\n")));
        }
        Ok(tests)
    }

    fn line(&mut self, line: &str) {
        if let Some(rest) = line.trim_start().strip_prefix("Running ") {
            self.program = program_of(rest);
        } else if let Some(rest) = line.trim_start().strip_prefix("Doc-tests ") {
            self.program = format!("doc {rest}");
        } else if let Some(rest) = line.strip_prefix("SKIPPED ") {
            self.skipped.push(rest.split_once(':').map_or(rest, |(name, _)| name).to_owned());
        } else if let Some(rest) = line.strip_prefix("---- ") {
            rest.strip_suffix(" stdout ----").unwrap_or_default().clone_into(&mut self.speaker);
        } else if let Some((name, outcome)) = line.strip_prefix("test ").and_then(|l| l.rsplit_once(" ... "))
        {
            self.speaker.clear();
            let passed = outcome == "ok";
            if passed || outcome == "FAILED" {
                self.all.push(Test { program: self.program.clone(), name: name.to_owned(), passed });
            }
        } else if line.is_empty() {
            self.speaker.clear();
        } else if !self.speaker.is_empty() {
            self.output.push((self.speaker.clone(), line.to_owned()));
        }
    }

    /// Number of tests that meet a condition, and how many of them failed.
    pub(super) fn count(&self, condition: impl Fn(&Test) -> bool) -> (usize, usize) {
        let chosen = self.all.iter().filter(|t| condition(t));
        chosen.fold((0, 0), |(n, failed), t| (n + 1, failed + usize::from(!t.passed)))
    }

    /// Counts tests of invalid input: error messages (`errors`), random input, and the command line.
    pub(super) fn refused_input(&self) -> (usize, usize) {
        self.count(|t| matches!(t.program.as_str(), "errors" | "robust" | "cli"))
    }

    /// True if a test with this name or path suffix ran and passed.
    fn passed(&self, name: &str) -> bool {
        let mut found = self.all.iter().filter(|t| is_named(&t.name, name)).peekable();
        found.peek().is_some() && found.all(|t| t.passed)
    }

    /// The line that the test with this name printed, if it was a single one.
    fn figure(&self, name: &str) -> Option<&str> {
        self.output.iter().find(|(of, _)| is_named(of, name)).map(|(_, line)| line.as_str())
    }

    /// A requirement proved by tests; not met if one of them is missing, failed or was skipped.
    pub(super) fn check_proof(&self, what: &str, tests: &[&str]) -> Item {
        let skipped = |test: &str| self.skipped.iter().any(|s| is_named(test, s) || is_named(s, test));
        let lost: Vec<&str> = tests.iter().copied().filter(|t| !self.passed(t) || skipped(t)).collect();
        let figure = match tests.iter().find_map(|test| self.figure(test)) {
            _ if !lost.is_empty() => format!("did not run and pass: {}", lost.join(", ")),
            Some(said) => said.to_owned(),
            None if tests.len() == 1 => format!("{} passed", tests[0]),
            None => format!("{} tests passed", tests.len()),
        };
        Item::new(what, figure, lost.is_empty() && !tests.is_empty())
    }

    pub(super) fn merge(mut self, other: Self) -> Self {
        self.all.extend(other.all);
        self.skipped.extend(other.skipped);
        self.output.extend(other.output);
        self
    }
}

/// True if a test's path is `name` or ends with it.
fn is_named(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

/// Names of all property tests of the workspace.
pub(super) fn properties() -> Outcome<BTreeSet<String>> {
    let mut found = Properties::default();
    for file in tidy::tree::read(&metadata::root())? {
        if let Some(Ok(syntax)) = &file.syntax {
            found.visit_file(syntax);
        }
    }
    Ok(found.0)
}

/// Names of the functions in `proptest!` blocks, without nested functions.
#[derive(Default)]
struct Properties(BTreeSet<String>);

impl<'ast> Visit<'ast> for Properties {
    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        if mac.path.segments.last().is_some_and(|s| s.ident == "proptest") {
            let tokens: Vec<TokenTree> = mac.tokens.clone().into_iter().collect();
            self.0.extend(tokens.windows(2).filter_map(|pair| match pair {
                [TokenTree::Ident(word), TokenTree::Ident(name)] if word == "fn" => Some(name.to_string()),
                _ => None,
            }));
        }
        visit::visit_macro(self, mac);
    }
}

/// Program name from `unittests src/lib.rs (target/debug/deps/bentpipe_tcp-0123)`, without its hash.
fn program_of(running: &str) -> String {
    let file = running.trim_end_matches(')').rsplit(['/', '(']).next().unwrap_or_default();
    file.rsplit_once('-').map_or(file, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod unit {
    use super::*;
    use crate::item::Verdict;

    fn of(text: &str) -> Tests {
        let mut tests = Tests::default();
        text.lines().for_each(|l| tests.line(l));
        tests
    }

    #[test]
    fn a_run_is_taken_apart() {
        let tests = of("     Running unittests src/lib.rs (target/debug/deps/bentpipe_tcp-0a1b)
test rtt::tests::grows ... ok
test rtt::tests::shrinks ... FAILED
     Running tests/limits.rs (target/debug/deps/limits-77)
test limited_by_window ... ok
test ignored_one ... ignored

successes:

---- limited_by_window stdout ----
64 segments
SKIPPED a: no root

---- rtt::tests::grows stdout ----
2 s

successes:
    limited_by_window
test result: FAILED. 1 passed; 1 failed");
        assert_eq!(tests.all.len(), 3);
        assert_eq!(tests.all[0].program, "bentpipe_tcp");
        assert_eq!((tests.all[2].program.as_str(), tests.all[2].function()), ("limits", "limited_by_window"));
        assert_eq!(tests.count(|t| t.program == "bentpipe_tcp"), (2, 1));
        assert!(tests.passed("grows") && tests.passed("rtt::tests::grows"));
        assert!(!tests.passed("shrinks") && !tests.passed("rows") && !tests.passed("ignored_one"));
        assert_eq!(tests.skipped, ["a"]);
        assert_eq!(
            (tests.figure("limited_by_window"), tests.figure("grows")),
            (Some("64 segments"), Some("2 s"))
        );
        assert_eq!(tests.figure("shrinks"), None);
        assert_eq!(tests.output.len(), 2, "{:?}", tests.output);
    }

    #[test]
    fn two_runs_are_one() {
        let both = of("test a ... ok\nSKIPPED a: x").merge(of("test a ... FAILED\ntest b ... ok"));
        assert!(!both.passed("a") && both.passed("b") && both.skipped.len() == 1);
    }

    #[test]
    fn every_named_test_must_have_run_and_passed() {
        let run =
            of("test a::grows ... ok\ntest b ... ok\ntest c ... FAILED\ntest d ... ok\nSKIPPED d: no root\n\
                      ---- b stdout ----\n2 RTT\n");
        let proved = |tests: &[&str]| run.check_proof("w", tests);
        assert_eq!(proved(&["grows"]), Item::new("w", "grows passed", Verdict::Pass));
        assert_eq!(proved(&["a::grows", "b"]), Item::new("w", "2 RTT", Verdict::Pass));
        // failed, could not run, missing, another test's suffix
        for lost in ["c", "d", "e", "rows"] {
            let figure = format!("did not run and pass: {lost}");
            assert_eq!(proved(&["b", lost]), Item::new("w", figure, Verdict::Miss));
        }
    }

    #[test]
    fn properties_are_told_from_tests() {
        let mut found = Properties::default();
        let text = "#[cfg(test)] mod tests {
                proptest! { #[test] fn a(x: u8) { fn inner() {} } #[test] fn b(y in 0..3) {} }
                #[test] fn c() {}
            }
            proptest::proptest! { #[test] fn d(x: u8) {} }
            vec! { fn e }";
        found.visit_file(&syn::parse_file(text).unwrap());
        assert_eq!(found.0.into_iter().collect::<Vec<_>>(), ["a", "b", "d"]);
    }
}
