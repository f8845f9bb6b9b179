//! One run of all tests, taken apart: which test of which program passed.

use crate::metadata;
use std::io::{BufRead, BufReader};
use std::process::Command;

/// One test and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// The test program: `bentpipe_tcp` for the tests inside a crate, `limits` for `tests/limits.rs`.
    pub program: String,
    /// Its path in the program.
    pub name: String,
    /// True when it passed.
    pub passed: bool,
}

impl Test {
    /// The function's name alone.
    pub(super) fn function(&self) -> &str {
        self.name.rsplit("::").next().unwrap_or(&self.name)
    }
}

/// All tests of a run.
#[derive(Debug, Default)]
pub(super) struct Tests {
    /// In the order of the run.
    pub all: Vec<Test>,
    /// Tests that say that they could not run: they pass, and prove nothing.
    pub skipped: Vec<String>,
    /// What tests printed: the test's path, and a line.
    pub said: Vec<(String, String)>,
}

impl Tests {
    /// Runs all tests of the workspace.
    ///
    /// # Errors
    /// When cargo cannot be run or the tests do not compile.
    pub(super) fn run() -> Result<Self, String> {
        Self::of(&["--workspace"])
    }

    /// Runs the tests that `chosen` names to cargo.
    ///
    /// # Errors
    /// When cargo cannot be run or the tests do not compile.
    pub(super) fn of(chosen: &[&str]) -> Result<Self, String> {
        Self::with(chosen, &[])
    }

    /// The same with variables that the tests read.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) fn with(chosen: &[&str], variables: &[(&str, &str)]) -> Result<Self, String> {
        let fault = |e: std::io::Error| format!("cargo test: {e}");
        let (reader, writer) = std::io::pipe().map_err(fault)?;
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["test", "--no-fail-fast"]).args(chosen).args(["--", "--show-output"]);
        command.current_dir(metadata::root()).envs(variables.iter().copied());
        command.stdout(writer.try_clone().map_err(fault)?).stderr(writer);
        let mut child = command.spawn().map_err(fault)?;
        drop(command); // it holds the writing end
        let mut tests = Self::default();
        let mut at = Place::default();
        let mut errors = Vec::new();
        for line in BufReader::new(reader).lines() {
            let line = line.map_err(fault)?;
            tests.line(&line, &mut at);
            errors.extend(line.starts_with("error").then_some(line));
        }
        child.wait().map_err(fault)?;
        if tests.all.is_empty() {
            return Err(format!("cargo test: no test ran\n{}", errors.join("\n")));
        }
        Ok(tests)
    }

    fn line(&mut self, line: &str, at: &mut Place) {
        if let Some(rest) = line.trim_start().strip_prefix("Running ") {
            at.program = program_of(rest);
        } else if let Some(rest) = line.trim_start().strip_prefix("Doc-tests ") {
            at.program = format!("doc {rest}");
        } else if let Some(rest) = line.strip_prefix("SKIPPED ") {
            self.skipped.push(rest.split_once(':').map_or(rest, |(name, _)| name).to_owned());
        } else if let Some(rest) = line.strip_prefix("---- ") {
            rest.strip_suffix(" stdout ----").unwrap_or_default().clone_into(&mut at.speaker);
        } else if let Some((name, outcome)) = line.strip_prefix("test ").and_then(|l| l.rsplit_once(" ... "))
        {
            at.speaker.clear();
            let passed = outcome == "ok";
            if passed || outcome == "FAILED" {
                self.all.push(Test { program: at.program.clone(), name: name.to_owned(), passed });
            }
        } else if line.is_empty() {
            at.speaker.clear();
        } else if !at.speaker.is_empty() {
            self.said.push((at.speaker.clone(), line.to_owned()));
        }
    }

    /// Number of tests that meet a condition, and how many of these failed.
    pub(super) fn count(&self, condition: impl Fn(&Test) -> bool) -> (usize, usize) {
        let chosen = self.all.iter().filter(|t| condition(t));
        chosen.fold((0, 0), |(n, failed), t| (n + 1, failed + usize::from(!t.passed)))
    }

    /// True when a test with this name, or with a path that ends with it, ran and passed.
    pub(super) fn passed(&self, name: &str) -> bool {
        let is_it = |t: &&Test| t.name == name || t.name.ends_with(&format!("::{name}"));
        let mut found = self.all.iter().filter(is_it).peekable();
        found.peek().is_some() && found.all(|t| t.passed)
    }

    /// What the test with this name printed, as far as it was one line.
    pub(super) fn figure(&self, name: &str) -> Option<&str> {
        let is_it = |of: &str| of == name || of.ends_with(&format!("::{name}"));
        self.said.iter().find(|(of, _)| is_it(of)).map(|(_, line)| line.as_str())
    }

    /// Two runs as one.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.all.extend(other.all);
        self.skipped.extend(other.skipped);
        self.said.extend(other.said);
        self
    }
}

/// Where in the output of a run we are.
#[derive(Debug, Default)]
struct Place {
    /// The test program that runs.
    program: String,
    /// The test whose output follows, if one does.
    speaker: String,
}

/// From `unittests src/lib.rs (target/debug/deps/bentpipe_tcp-0123)`: what cargo calls it, without its hash.
fn program_of(running: &str) -> String {
    let file = running.trim_end_matches(')').rsplit(['/', '(']).next().unwrap_or_default();
    file.rsplit_once('-').map_or(file, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod unit {
    use super::*;

    fn of(text: &str) -> Tests {
        let (mut tests, mut at) = (Tests::default(), Place::default());
        text.lines().for_each(|l| tests.line(l, &mut at));
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
        assert_eq!(tests.said.len(), 2, "{:?}", tests.said);
    }

    #[test]
    fn two_runs_are_one() {
        let both = of("test a ... ok\nSKIPPED a: x").and(of("test a ... FAILED\ntest b ... ok"));
        assert!(!both.passed("a") && both.passed("b") && both.skipped.len() == 1);
    }
}
