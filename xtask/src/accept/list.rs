//! A list as it is printed, and the lines that several areas have.

use super::setup::{Setup, run_cargo};
use super::tests::Tests;
use crate::item::{Item, Verdict};
use crate::{Outcome, bench, metadata, tidy};

/// Prints lines as they come and counts those that were not met.
#[derive(Debug, Default)]
pub(super) struct List {
    /// The part that is being checked.
    pub part: &'static str,
    /// Lines that were not met.
    pub missed: usize,
}

/// What is asked of a figure.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// So much or more.
    Least(f64),
    /// So much or less.
    Most(f64),
    /// Nothing: it is reported.
    Nothing,
}

/// A unit: its name, how much one of it is in what is measured, and the decimals that are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit(pub &'static str, pub f64, pub usize);

/// Mbit/s, of bit/s.
pub(super) const MBIT_S: Unit = Unit("Mbit/s", 1e6, 2);

/// What a line asks, and the tests that prove it. A test that prints a figure is the first.
pub(super) type Proof = (&'static str, &'static [&'static str]);

impl List {
    /// Prints a line.
    pub(super) fn item(&mut self, item: &Item) {
        self.missed += usize::from(item.verdict != Verdict::Pass);
        println!("{:<12}  {item}", self.part);
    }

    /// A line from a measurement: the figure and whether it is met, by `verdict`. A fault is a miss and says
    /// what went wrong.
    pub(super) fn judge<T>(
        &mut self,
        what: impl Into<String>,
        measured: Outcome<T>,
        verdict: impl FnOnce(T) -> (String, bool),
    ) {
        match measured.map(verdict) {
            Ok((figure, met)) => self.item(&Item::new(what, figure, Verdict::of(met))),
            Err(why) => self.miss(what, &why),
        }
    }

    /// A line that is not met, and why.
    pub(super) fn miss(&mut self, what: impl Into<String>, why: &str) {
        self.item(&Item::new(what, why.lines().next().unwrap_or_default(), Verdict::Miss));
    }

    /// A line from one figure.
    pub(super) fn figure(&mut self, what: &str, measured: Outcome<f64>, asked: Asked, unit: Unit) {
        let Unit(name, one, digits) = unit;
        let bound = match asked {
            Asked::Least(least) => format!(": >= {:.digits$} {name}", least / one),
            Asked::Most(most) => format!(": <= {:.digits$} {name}", most / one),
            Asked::Nothing => " (reported)".to_owned(),
        };
        let is_met = |value: f64| match asked {
            Asked::Least(least) => value >= least,
            Asked::Most(most) => value <= most,
            Asked::Nothing => true,
        };
        let line = |value: f64| (format!("{:.digits$} {name}", value / one), is_met(value));
        self.judge(format!("{what}{bound}"), measured, line);
    }

    /// A line about a number of tests and how many of them failed: fewer than `least` is a miss.
    pub(super) fn tests(&mut self, what: &str, (n, failed): (usize, usize), least: usize) {
        let figure = format!("{} passed, {failed} failed", n - failed);
        self.item(&Item::new(what, figure, Verdict::of(failed == 0 && n >= least)));
    }

    /// A line about all tests of a run: one that could not run is a miss.
    pub(super) fn all_tests(&mut self, what: &str, run: &Tests, least: usize) {
        let (n, failed) = run.count(|_| true);
        let figure = format!("{} passed, {failed} failed, {} skipped", n - failed, run.skipped.len());
        self.item(&Item::new(what, figure, Verdict::of(failed == 0 && n >= least && run.skipped.is_empty())));
    }

    /// A line for each proof.
    pub(super) fn proofs(&mut self, run: &Tests, proofs: &[Proof]) {
        for (what, tests) in proofs {
            self.item(&run.proved(what, tests));
        }
    }
}

/// The last line with something on it: our tools end with their sum.
pub(super) fn last_line(text: &str) -> &str {
    text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no output").trim()
}

/// What a run costs, beside ns-2 and with many flows.
pub(super) fn bench(_: &Setup, list: &mut List) -> Outcome {
    bench::items()?.iter().for_each(|item| list.item(item));
    Ok(())
}

/// The style limits.
pub(super) fn style(_: &Setup, list: &mut List) -> Outcome {
    let report = tidy::run(&metadata::root())?;
    let findings = report.findings.len();
    let first = report.findings.first().map(ToString::to_string).unwrap_or_default();
    let figure = format!("{findings} findings in {} files {first}", report.files);
    list.item(&Item::new("tidy", figure, Verdict::of(findings == 0)));
    for (what, longest, limit) in [
        ("longest file", &report.file, tidy::FILE_LINES),
        ("longest function", &report.function, tidy::FUNCTION_LINES),
    ] {
        let figure = format!("{} lines ({})", longest.lines, longest.what);
        list.item(&Item::new(
            format!("{what}, at most {limit} lines"),
            figure,
            Verdict::of(longest.lines <= limit),
        ));
    }
    Ok(())
}

/// Runs a fuzzer for `SECONDS`.
pub(super) fn fuzz(list: &mut List, fuzzer: &str, what: &str) -> Outcome {
    const SECONDS: &str = "60";
    let package = ["run", "--quiet", "--release", "--bin", fuzzer];
    let (text, ok) = run_cargo(&[&package[..], &["--", "--seconds", SECONDS]].concat(), &[]);
    list.item(&Item::new(format!("{SECONDS} s of {what}"), last_line(&text), Verdict::of(ok)));
    Ok(())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn only_what_is_met_passes() {
        let mut list = List::default();
        list.tests("x", (3, 0), 1);
        list.figure("x", Ok(2e6), Asked::Least(2e6), MBIT_S);
        list.figure("x", Ok(2e6), Asked::Most(2e6), MBIT_S);
        list.figure("x", Ok(f64::NAN), Asked::Nothing, MBIT_S);
        assert_eq!(list.missed, 0);
        list.tests("no test is no success", (0, 0), 1);
        list.tests("x", (3, 1), 1);
        list.figure("x", Ok(1e6), Asked::Least(2e6), MBIT_S);
        list.figure("x", Ok(f64::NAN), Asked::Most(2e6), MBIT_S);
        list.judge("x", Outcome::<()>::Err("why".to_owned()), |()| (String::new(), true));
        assert_eq!(list.missed, 5);
    }

    #[test]
    fn the_sum_is_the_last_line() {
        assert_eq!(last_line("a\nb 3\n\n"), "b 3");
        assert_eq!(last_line(""), "no output");
    }
}
