//! Measures the kernel's own CUBIC in a validation case again, and compares with the recorded result.

use crate::accept::list::{List, Outcome, Setup};
use crate::metadata;
use lab::rig::Running;
use lab::stats::Mean;
use lab::{Rig, Who};
use serde_json::Value;
use std::fs;
use std::ops::Range;
use std::time::Duration;

const FILE: &str = "scenarios/sharing.toml";
const SETS: [&str; 3] = ["tcp=cubic", "loss=1e-2", "jitter=0 ms"];
/// Duration of a run, s.
const SECONDS: u64 = 500;
/// Runs in full, as in the reference, and in short; all run concurrently, each at 10 Mbit/s.
const RUNS: (u64, u64) = (20, 4);
const TOGETHER: u64 = 4;
/// Start of this case's row in [`TABLE`], after the kernel release and before runs and results.
const CASE: &str = "A,linux-cubic,20,1e-2,0,1000,1040,0.55,10000000,50,64,2,0,500";
const TABLE: &str = "crates/validate/data/kernel-cubic.csv";

/// Result of the kernel's TCP in this case.
#[derive(Clone, Debug)]
struct KernelRun {
    kernel: String,
    /// Total, B/s.
    goodput: f64,
    /// Peak queue of the bottleneck, packets.
    queue_peak: f64,
}

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let runs = setup.pick(RUNS.0, RUNS.1);
    let what = format!(
        "the kernel's CUBIC, sharing, loss 1e-2, {runs} runs of {SECONDS} s: intervals meet the recorded{}",
        setup.short()
    );
    let rig = setup.rig(Who::CurrentUser)?;
    let all = (1..=runs).step_by(TOGETHER as usize).map(|first| together(&rig, first..first + TOGETHER));
    let all: Outcome<Vec<_>> = all.collect();
    list.judge(what, all, |all| figure(&all.concat()));
    Ok(())
}

/// Runs the case with the kernel's TCP, once for each of `seeds`, all concurrently.
fn together(rig: &Rig, seeds: Range<u64>) -> Outcome<Vec<KernelRun>> {
    let start = |seed: u64| {
        let (name, seed) = (format!("kernel-{seed}"), seed.to_string());
        let mut words = vec!["emulate", FILE, "--name", &name, "--seed", &seed, "--json"];
        words.extend(SETS.iter().flat_map(|set| ["--set", set]));
        rig.start(&words)
    };
    let sessions = seeds.map(start).collect::<Outcome<Vec<_>>>()?;
    let read = |session: Running| {
        let done = session.wait(Duration::from_secs(SECONDS + 120))?;
        let report: Value = serde_json::from_str(&done.out).map_err(|_| done.describe())?;
        kernel_run(&report).ok_or_else(|| format!("not a report to be relied on: {}", report["live"]))
    };
    sessions.into_iter().map(read).collect()
}

fn kernel_run(report: &Value) -> Option<KernelRun> {
    let live = report.get("live").filter(|live| live["trusted"] == true)?;
    let bottleneck = report["links"].as_array()?.iter().find(|l| l["name"] == "bottleneck")?;
    Some(KernelRun {
        kernel: live["kernel"].as_str()?.to_owned(),
        goodput: report["total"]["goodput_bps"].as_f64()? / 8.0,
        queue_peak: bottleneck["queue_packets"]["peak"].as_f64()?,
    })
}

fn figure(all: &[KernelRun]) -> (String, bool) {
    let of = |figure: fn(&KernelRun) -> f64| all.iter().map(figure).collect::<Vec<_>>();
    let (Mean { value: mean, half }, peak) =
        (Mean::of(&of(|r| r.goodput)), Mean::of(&of(|r| r.queue_peak)).value);
    let release = all.first().map_or("", |r| r.kernel.as_str());
    let row = format!("linux{release},{CASE},{},{mean:.0},{half:.0},,,{peak:.1},", all.len());
    match fs::read_to_string(metadata::root().join(TABLE)).ok().and_then(|text| recorded(&text)) {
        Some((value, width)) => (row, (mean - value).abs() <= half + width),
        None => (format!("{row} (no such row in {TABLE} yet)"), false),
    }
}

/// Mean and half-width of the recorded result, B/s.
fn recorded(table: &str) -> Option<(f64, f64)> {
    let row = table.lines().find(|l| l.starts_with("linux") && l.contains(CASE))?;
    let mut cells = row.split_once(CASE)?.1.split(',').skip(2).map(|cell| cell.parse().ok());
    cells.next()?.zip(cells.next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_a_machine_that_was_too_slow_is_none() {
        let report = |trusted: bool| {
            serde_json::json!({
                "total": {"goodput_bps": 8.0}, "live": {"kernel": "6.18.0", "trusted": trusted},
                "links": [{"name": "bottleneck", "queue_packets": {"peak": 49}}],
            })
        };
        let run = kernel_run(&report(true)).unwrap();
        assert_eq!((run.kernel.as_str(), run.goodput, run.queue_peak), ("6.18.0", 1.0, 49.0));
        assert!(kernel_run(&report(false)).is_none());
    }

    #[test]
    fn what_was_printed_is_found_again() {
        let all =
            [840e3, 850e3].map(|goodput| KernelRun { kernel: "6.18.0".into(), goodput, queue_peak: 49.0 });
        let (row, _) = figure(&all);
        let row = row.split(" (").next().unwrap();
        assert_eq!(row, format!("linux6.18.0,{CASE},2,845000,63530,,,49.0,"));
        assert_eq!(recorded(&format!("ns2,x\n{row}\n")), Some((845e3, 63_530.0)));
        assert_eq!(recorded("ns2,x\n"), None);
    }
}
