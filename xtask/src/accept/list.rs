//! Prints an acceptance list, with checks that several areas share.

pub(super) use super::setup::{Setup, lacks_for_bpf, run_cargo};
pub(super) use super::tests::Tests;
pub(super) use crate::Outcome;
use crate::item::{Item, Verdict};
use crate::{bench, metadata, tidy};

/// Prints lines at once and counts those not met.
#[derive(Debug, Default)]
pub(super) struct List {
    pub part: &'static str,
    pub missed: usize,
}

/// The requirement for a figure.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    Least(f64),
    Most(f64),
    /// None: the figure is only reported.
    Nothing,
}

/// A unit: name, its size in the measured unit, and displayed decimals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit(pub &'static str, pub f64, pub usize);

/// Mbit/s, for figures in bit/s.
pub(super) const MBIT_S: Unit = Unit("Mbit/s", 1e6, 2);

impl List {
    pub(super) fn item(&mut self, item: &Item) {
        self.missed += usize::from(item.verdict != Verdict::Pass);
        println!("{:<12}  {item}", self.part);
    }

    pub(super) fn line(&mut self, what: impl Into<String>, figure: impl Into<String>, met: bool) {
        self.item(&Item::new(what, figure, met));
    }

    /// Prints a line for a measurement with the figure and result of `verdict`; an error is a miss.
    pub(super) fn judge<T>(
        &mut self,
        what: impl Into<String>,
        measured: Outcome<T>,
        verdict: impl FnOnce(T) -> (String, bool),
    ) {
        match measured.map(verdict) {
            Ok((figure, met)) => self.line(what, figure, met),
            Err(why) => self.miss(what, &why),
        }
    }

    /// Prints a line for a measurement that was not asked for; it is not a miss.
    pub(super) fn skip(&self, what: &str, why: &str) {
        println!("{:<12}  {}", self.part, Item::new(what, why, Verdict::Skipped));
    }

    /// Prints a line that is not met, with the reason.
    pub(super) fn miss(&mut self, what: impl Into<String>, why: &str) {
        self.line(what, why.lines().next().unwrap_or_default(), false);
    }

    /// Prints a line for one figure.
    pub(super) fn figure(&mut self, what: &str, measured: Outcome<f64>, asked: Bound, unit: Unit) {
        let Unit(name, one, digits) = unit;
        let bound = match asked {
            Bound::Least(least) => format!(": >= {:.digits$} {name}", least / one),
            Bound::Most(most) => format!(": <= {:.digits$} {name}", most / one),
            Bound::Nothing => " (reported)".to_owned(),
        };
        let is_met = |value: f64| match asked {
            Bound::Least(least) => value >= least,
            Bound::Most(most) => value <= most,
            Bound::Nothing => true,
        };
        let line = |value: f64| (format!("{:.digits$} {name}", value / one), is_met(value));
        self.judge(format!("{what}{bound}"), measured, line);
    }

    /// Prints a line for a number of tests and failures; fewer than `least` tests count as not met.
    pub(super) fn tests(&mut self, what: &str, (n, failed): (usize, usize), least: usize) {
        self.line(what, format!("{} passed, {failed} failed", n - failed), failed == 0 && n >= least);
    }

    /// The same for all tests of a run; a test that could not run counts as not met.
    pub(super) fn all_tests(&mut self, what: &str, run: &Tests, least: usize) {
        let (n, failed) = run.count(|_| true);
        let figure = format!("{} passed, {failed} failed, {} skipped", n - failed, run.skipped.len());
        self.line(what, figure, failed == 0 && n >= least && run.skipped.is_empty());
    }

    /// Prints a line for each requirement in `proofs`, which starts with `* `. The lines after it name the
    /// tests that prove it, first one that prints a figure.
    pub(super) fn proofs(&mut self, run: &Tests, proofs: &str) {
        for (what, tests) in proofs.split("\n* ").filter_map(|proof| proof.split_once('\n')) {
            self.item(&run.check_proof(what, &tests.split_whitespace().collect::<Vec<_>>()));
        }
    }
}

/// The last non-empty line, where the tools print their totals.
pub(super) fn last_line(text: &str) -> &str {
    text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no output").trim()
}

/// Cost of a run compared with ns-2, and with many flows.
pub(super) fn bench(_: &Setup, list: &mut List) -> Outcome {
    bench::items()?.iter().for_each(|item| list.item(item));
    Ok(())
}

pub(super) fn style(_: &Setup, list: &mut List) -> Outcome {
    let report = tidy::run(&metadata::root())?;
    let findings = report.findings.len();
    let first = report.findings.first().map(ToString::to_string).unwrap_or_default();
    let figure = format!("{findings} findings in {} files {first}", report.files);
    list.line("tidy", figure, findings == 0);
    for (what, longest, limit) in [
        ("longest file", &report.file, tidy::FILE_LINES),
        ("longest function", &report.function, tidy::FUNCTION_LINES),
    ] {
        let figure = format!("{} lines ({})", longest.lines, longest.what);
        list.line(format!("{what}, at most {limit} lines"), figure, longest.lines <= limit);
    }
    Ok(())
}

/// Runs a fuzzer for `SECONDS`.
pub(super) fn fuzz(list: &mut List, fuzzer: &str, what: &str) -> Outcome {
    const SECONDS: &str = "60";
    let words = ["run", "--quiet", "--release", "--bin", fuzzer, "--", "--seconds", SECONDS];
    let (text, ok) = run_cargo(&words, &[]);
    list.line(format!("{SECONDS} s of {what}"), last_line(&text), ok);
    Ok(())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn only_what_is_met_passes() {
        let mut list = List::default();
        list.tests("x", (3, 0), 1);
        list.figure("x", Ok(2e6), Bound::Least(2e6), MBIT_S);
        list.figure("x", Ok(2e6), Bound::Most(2e6), MBIT_S);
        list.figure("x", Ok(f64::NAN), Bound::Nothing, MBIT_S);
        assert_eq!(list.missed, 0);
        list.tests("no test is no success", (0, 0), 1);
        list.tests("x", (3, 1), 1);
        list.figure("x", Ok(1e6), Bound::Least(2e6), MBIT_S);
        list.figure("x", Ok(f64::NAN), Bound::Most(2e6), MBIT_S);
        list.judge("x", Outcome::<()>::Err("why".to_owned()), |()| (String::new(), true));
        assert_eq!(list.missed, 5);
    }

    #[test]
    fn the_sum_is_the_last_line() {
        assert_eq!(last_line("a\nb 3\n\n"), "b 3");
        assert_eq!(last_line(""), "no output");
    }
}
