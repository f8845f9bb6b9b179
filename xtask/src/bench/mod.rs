//! `bench`: cost of a simulation beside ns-2 and beside bentpipe before it was made faster, on the same
//! machine at the same time, and with many flows; throughput of a live link beside kernel forwarding, and
//! lateness of its packets.

mod before;
mod forward;
mod growth;
mod htsim;
pub(crate) mod live;
pub(crate) mod measure;
mod ns2;
mod page;
mod turns;

use crate::item::{Item, Verdict};
use crate::{Outcome, metadata};
use lab::once::output;
use serde_json::Value;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Shared by all parts of the benchmark.
struct Bench {
    root: PathBuf,
    bentpipe: PathBuf,
    /// The file for outputs.
    output: PathBuf,
}

/// Prints the figures at once and all verdicts at the end; with `--strict` a miss is a failure.
pub(crate) fn command(args: &[String]) -> Outcome {
    if let Some(unknown) = args.iter().find(|a| *a != "--strict") {
        return Err(format!("bench: unknown option {unknown} (there is only --strict)"));
    }
    let bench = Bench::new()?;
    let mut items = besides(&bench)?;
    // at once: what follows takes minutes
    page::write(&items)?;
    items.extend(growth::items(&bench)?);
    page::write(&items)?;
    items.extend(forward::items(&bench)?);
    page::write(&items)?;
    items.extend(live::items()?);
    println!();
    for item in &items {
        println!("{item}");
    }
    let all_met = items.iter().all(|i| i.verdict == Verdict::Pass);
    if all_met || args.is_empty() { Ok(()) } else { Err("bench: not everything was met".to_owned()) }
}

/// Runs all simulated benchmarks; returns one item per requirement.
pub(crate) fn items() -> Outcome<Vec<Item>> {
    let bench = Bench::new()?;
    let mut items = besides(&bench)?;
    items.extend(growth::items(&bench)?);
    items.extend(forward::items(&bench)?);
    Ok(items)
}

/// CPU time beside other programs.
fn besides(bench: &Bench) -> Outcome<Vec<Item>> {
    let mut items = turns::items(bench)?;
    items.extend(htsim::items(bench)?);
    Ok(items)
}

/// CPU time of all threads and elapsed time, s, of the release build with `args` in the workspace's root.
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "it measures elapsed time")]
pub(crate) fn timed(args: &[&str]) -> Outcome<(f64, f64)> {
    let bench = Bench::new()?;
    std::env::set_current_dir(&bench.root).map_err(|e| format!("{}: {e}", bench.root.display()))?;
    let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
    let start = std::time::Instant::now();
    let cost = measure::run(&bench.bentpipe, &args, &bench.output)?;
    Ok((cost.cpu_s, start.elapsed().as_secs_f64()))
}

impl Bench {
    fn new() -> Result<Self, String> {
        let root = metadata::root();
        let bentpipe = build("bentpipe")?;
        let output = std::env::temp_dir().join(format!("bentpipe-bench-{}", std::process::id()));
        Ok(Self { root, bentpipe, output })
    }

    /// Runs a simulation that handles every packet; returns its cost and its report.
    fn simulate<V: Display>(&self, scenario: &str, set: &[(&str, V)]) -> Outcome<(measure::Cost, Report)> {
        self.run(&self.bentpipe, &["--no-fast-forward"], scenario, set)
    }

    /// The same with another program, which has no fast-forward.
    fn simulate_with<V: Display>(
        &self,
        program: &Path,
        scenario: &str,
        set: &[(&str, V)],
    ) -> Outcome<(measure::Cost, Report)> {
        self.run(program, &[], scenario, set)
    }

    fn run<V: Display>(
        &self,
        program: &Path,
        options: &[&str],
        scenario: &str,
        set: &[(&str, V)],
    ) -> Outcome<(measure::Cost, Report)> {
        let scenario = self.root.join(scenario).display().to_string();
        let mut args = vec!["sim".to_owned(), scenario, "--json".to_owned()];
        args.extend(options.iter().map(|option| (*option).to_owned()));
        args.extend(set.iter().map(|(name, value)| format!("--set={name}={value}")));
        let cost = measure::run(program, &args, &self.output)?;
        let text = std::fs::read(&self.output).map_err(|e| format!("{}: {e}", self.output.display()))?;
        Ok((cost, Report::parse(&text)?))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Harmless if it fails: the next run uses another name.
        let _ = std::fs::remove_file(&self.output);
    }
}

/// What the benchmark reads from a report.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Report {
    goodput_bps: f64,
    /// Data packets sent.
    segments: u64,
}

impl Report {
    fn parse(json: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(json).map_err(|e| format!("report: {e}"))?;
        let flows = value["flows"].as_array().ok_or("report: no flows")?;
        let sent = |f: &Value| f["segments_sent"].as_u64().ok_or("report: no segments_sent");
        Ok(Self {
            goodput_bps: value["total"]["goodput_bps"].as_f64().ok_or("report: no goodput")?,
            segments: flows.iter().map(sent).sum::<Result<u64, _>>()?,
        })
    }
}

/// Builds a program of the workspace in release mode and returns its path.
pub(crate) fn build(program: &str) -> Outcome<PathBuf> {
    build_with(program, &[])
}

/// The same with more words for cargo.
pub(crate) fn build_with(program: &str, more: &[&str]) -> Outcome<PathBuf> {
    let words = [&["--bin", program], more].concat();
    release(&words).map(|folder| folder.join(program))
}

/// Builds in release mode what these words of cargo say; returns the folder of the programs.
pub(crate) fn release(words: &[&str]) -> Outcome<PathBuf> {
    let root = metadata::root();
    let what = format!("cargo build --release {}", words.join(" "));
    let mut cargo = Command::new(metadata::cargo());
    output(&what, cargo.args(["build", "--release", "--quiet"]).args(words).current_dir(&root))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let json = br#"{"total":{"goodput_bps":8.0},"flows":[{"segments_sent":3},{"segments_sent":4}]}"#;
        assert_eq!(Report::parse(json), Ok(Report { goodput_bps: 8.0, segments: 7 }));
        assert!(Report::parse(br#"{"total":{"goodput_bps":8.0},"flows":[{}]}"#).is_err());
        assert!(Report::parse(b"").is_err());
    }
}
