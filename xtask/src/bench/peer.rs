//! Runs the same experiment in ns-2 and in bentpipe alternately.

use super::{Bench, measure};
use crate::item::{Item, Verdict};
use lab::stats::median;
use std::path::Path;

/// Largest CPU time of a run, as a share of that of ns-2.
const SHARE: f64 = 1.0 / 3.0;
/// Runs of each; the median counts.
const RUNS: usize = 5;

/// The arguments of an experiment for both programs.
struct Case {
    name: &'static str,
    ns2: &'static str,
    scenario: &'static str,
    set: &'static [(&'static str, &'static str)],
}

const CASES: [Case; 2] = [
    Case {
        name: "20 flows, 10 Mbit/s, 500 s",
        ns2: "flows 20 loss 1e-4 variant newreno dur 500 bare 1",
        scenario: "scenarios/sharing.toml",
        set: &[("loss", "1e-4"), ("tcp", "newreno"), ("jitter", "0 ms")],
    },
    Case {
        name: "200 flows, 100 Mbit/s, 500 s",
        ns2: "flows 200 bw 100e6 buf 1000 wnd 1000 loss 1e-4 variant newreno dur 500 bare 1",
        scenario: "bench/many.toml",
        set: &[],
    },
];

pub(super) fn items(bench: &Bench) -> Result<Vec<Item>, String> {
    let what = |case: &Case| format!("CPU time at most 1/3 of ns-2's: {}", case.name);
    let ns2 = match crate::program::find(&["ns"], "ns2") {
        Ok(ns2) => ns2,
        Err(reason) => {
            println!("SKIPPED ns-2: {reason}");
            return Ok(CASES.iter().map(|c| Item::new(what(c), reason.clone(), Verdict::Skipped)).collect());
        }
    };
    println!(
        "{:<30} {:>10} {:>10} {:>7}  {:>13}  {:>22}",
        "case", "ns-2", "bentpipe", "ratio", "memory", "goodput"
    );
    let mut items = Vec::new();
    for case in &CASES {
        let (theirs, ours, ratio) = by_turns(bench, &ns2, case)?;
        let figure = format!("ratio {ratio:.3}: {ours:.2} s, ns-2 {theirs:.2} s");
        items.push(Item::new(what(case), figure, ratio <= SHARE));
    }
    Ok(items)
}

/// Median CPU seconds of ns-2 and of bentpipe, and the ratio of bentpipe to ns-2.
fn by_turns(bench: &Bench, ns2: &Path, case: &Case) -> Result<(f64, f64, f64), String> {
    let mut args = vec![bench.root.join("bench/ns2-sat.tcl").display().to_string()];
    args.extend(case.ns2.split(' ').map(str::to_owned));
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let theirs = measure::run(ns2, &args, &bench.output)?;
        let line = std::fs::read_to_string(&bench.output).map_err(|e| format!("ns-2's output: {e}"))?;
        let goodput_bps = goodput_of_ns2(&line).ok_or_else(|| format!("ns-2 printed: {line}"))?;
        let (ours, report) = bench.simulate(case.scenario, case.set)?;
        runs.push([(theirs, goodput_bps), (ours, report.goodput_bps)]);
    }
    let cpu_s = |i: usize| median(&runs.iter().map(|run| run[i].0.cpu_s).collect::<Vec<_>>());
    let peak_mb = |i: usize| runs.iter().map(|run| run[i].0.peak_kb).max().unwrap_or(0) / 1000;
    let [their_mbps, our_mbps] = runs[RUNS - 1].map(|(_, bps)| bps / 1e6);
    let (theirs, ours) = (cpu_s(0), cpu_s(1));
    let ratio = ours / theirs;
    let goodputs = format!("{their_mbps:.2}, {our_mbps:.2} Mbit/s");
    let memory = format!("{}, {} MB", peak_mb(0), peak_mb(1));
    println!("{:<30} {theirs:>8.3} s {ours:>8.3} s {ratio:>7.3}  {memory:>13}  {goodputs:>22}", case.name);
    Ok((theirs, ours, ratio))
}

/// Total goodput, bit/s; ns-2's script prints bytes per second in its 17th column.
fn goodput_of_ns2(line: &str) -> Option<f64> {
    line.trim().split(',').nth(16)?.parse::<f64>().ok().map(|bytes| bytes * 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_ns2_is_read() {
        let line = "ns2,x,newreno,1,20,1e-4,0,1000,1040,0.5500,10e6,50,64,2,0,500.0000,999742.00,44316.00,1,2,,,3,4\n";
        assert_eq!(goodput_of_ns2(line), Some(999_742.0 * 8.0));
        assert_eq!(goodput_of_ns2("unknown key: x"), None);
    }
}
