//! Runs the program `field` and reads its figures.

use crate::accept::setup::Setup;
use crate::{Outcome, bench};
use lab::{once::output, stats::mean, with};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// How often a run is repeated if the machine stalled the receiver.
const AGAIN: usize = 3;

/// The programs of the bed and of the gateway.
pub(super) struct TestBed {
    field: PathBuf,
    bentpipe: PathBuf,
    pub(super) long: bool,
}

pub(super) struct Run {
    pub(super) figures: Value,
    /// Seed and longest stall of each earlier attempt during which the machine stalled.
    pub(super) repeated: Vec<String>,
}

impl TestBed {
    pub(super) fn build(setup: &Setup) -> Outcome<Self> {
        let bentpipe = setup.bentpipe()?.to_owned();
        Ok(Self { field: bench::build("field")?, bentpipe, long: setup.long })
    }

    pub(super) fn seeds(&self, all: u64) -> std::ops::RangeInclusive<u64> {
        1..=if self.long { all } else { all.div_ceil(5) }
    }

    /// Runs `field WORDS`, with the gateway unless `words` exclude it; returns its output.
    pub(super) fn text(&self, words: &[&str]) -> Outcome<String> {
        let mut command = Command::new(&self.field);
        command.args(words);
        // `--no-gateway` excludes the option for the gateway's program
        if !words.contains(&"--no-gateway") {
            command.arg("--bin").arg(&self.bentpipe);
        }
        output(&format!("field {}", words.join(" ")), &mut command)
    }

    pub(super) fn runs(&self, words: &str, seeds: u64) -> Runs {
        self.seeds(seeds).map(|seed| self.run(words, seed)).collect()
    }

    /// Runs the bed once, and again if the machine stalled.
    pub(super) fn run(&self, words: &str, seed: u64) -> Outcome<Run> {
        let seed = seed.to_string();
        let mut all: Vec<&str> = words.split_whitespace().collect();
        all.extend(["--seed", &seed, "--json"]);
        let mut repeated = Vec::new();
        loop {
            let text = self.text(&all)?;
            let figures: Value = serde_json::from_str(&text).map_err(|e| format!("field: {e}: {text}"))?;
            let still = figures["watchdog"]["over_15_ms_at"].as_array().map_or(0, Vec::len);
            // with many programs on few processors some always wait, so only runs with old receivers repeat
            if still == 0 || repeated.len() == AGAIN || !words.contains("--old") {
                return Ok(Run { figures, repeated });
            }
            repeated.push(format!("seed {seed}: {} ms", figures["watchdog"]["worst_ms"]));
        }
    }
}

pub(super) type Runs = Outcome<Vec<Run>>;

/// A figure from each run of a cell.
pub(super) fn each<T>(runs: &Runs, of: impl Fn(&Run) -> Outcome<T>) -> Outcome<Vec<T>> {
    with(runs, |runs| runs.iter().map(of).collect())
}

impl Run {
    /// Goodput of the only flow, Mbit/s.
    pub(super) fn rate(&self) -> Outcome<f64> {
        self.figure("/flows/0/goodput_mbps")
    }

    /// A figure by its path; an error if absent.
    pub(super) fn figure(&self, path: &str) -> Outcome<f64> {
        self.optional_figure(path).ok_or_else(|| {
            let why = self.figures.pointer("/flows/0/failed").and_then(Value::as_str).unwrap_or("");
            format!("a run without {path} {why}")
        })
    }

    /// A figure that may be null.
    pub(super) fn optional_figure(&self, path: &str) -> Option<f64> {
        self.figures.pointer(path).and_then(Value::as_f64)
    }

    /// Mean goodput between two times in seconds, Mbit/s.
    pub(super) fn goodput(&self, from: usize, to: usize) -> Outcome<f64> {
        let all = self.figures.pointer("/flows/0/goodput_1s_mbps").and_then(Value::as_array);
        let values: Vec<f64> =
            all.into_iter().flatten().skip(from).take(to - from).filter_map(Value::as_f64).collect();
        if values.len() < to - from {
            return Err(format!("no goodput from {from} s to {to} s"));
        }
        Ok(mean(&values))
    }
}

pub(super) fn values(all: &[f64], digits: usize) -> String {
    all.iter().map(|v| format!("{v:.digits$}")).collect::<Vec<_>>().join(" ")
}

pub(super) fn repeats(runs: &Runs) -> String {
    let all: Vec<&str> = runs.iter().flatten().flat_map(|r| &r.repeated).map(String::as_str).collect();
    if all.is_empty() { String::new() } else { format!(" (repeated: {})", all.join(", ")) }
}

#[cfg(test)]
mod unit {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_found_or_missed() {
        let figures = json!({ "flows": [{ "goodput_1s_mbps": [1.0, 2.0, 6.0], "failed": "why" }] });
        let run = Run { figures, repeated: vec!["seed 1: 20 ms".to_owned()] };
        assert_eq!(run.goodput(1, 3), Ok(4.0));
        assert!(run.goodput(1, 4).is_err());
        assert_eq!(run.figure("/flows/0/x").unwrap_err(), "a run without /flows/0/x why");
        assert_eq!(repeats(&Ok(vec![run])), " (repeated: seed 1: 20 ms)");
        assert_eq!(values(&[1.0, 2.55], 1), "1.0 2.5");
    }
}
