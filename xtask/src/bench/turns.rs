//! CPU time beside another program that does the same work, by turns: pairs of runs, and the median of their
//! ratios. The other is ns-2, or bentpipe before its simulator was made faster.

use super::{Bench, Report, before, measure::Cost, ns2};
use crate::item::{Item, Verdict};
use crate::{Outcome, program};
use lab::stats::median;
use std::path::Path;

/// Pairs of runs.
const PAIRS: usize = 9;
/// Largest difference of goodput at which two programs did the same work.
const SAME_WORK: f64 = 0.05;

enum Other {
    /// Arguments of `bench/ns2-sat.tcl`.
    Ns2(&'static str),
    Before,
}

struct Case {
    name: &'static str,
    scenario: &'static str,
    set: &'static [(&'static str, &'static str)],
    other: Other,
    /// Largest CPU time, as a share of the other's.
    most: f64,
}

const CASES: [Case; 5] = [
    Case {
        name: "20 flows, 10 Mbit/s, 500 s",
        scenario: "scenarios/sharing.toml",
        set: &[("loss", "1e-4"), ("tcp", "newreno"), ("jitter", "0 ms")],
        other: Other::Ns2("flows 20 loss 1e-4 variant newreno dur 500 bare 1"),
        most: 0.22,
    },
    Case {
        name: "20 flows, jitter of the senders",
        scenario: "scenarios/sharing.toml",
        set: &[("loss", "1e-4"), ("tcp", "newreno"), ("jitter", "0.9 ms")],
        other: Other::Ns2("flows 20 loss 1e-4 variant newreno dur 500 overhead 0.0009 bare 1"),
        most: 0.27,
    },
    Case {
        name: "200 flows, 100 Mbit/s, 500 s",
        scenario: "bench/many.toml",
        set: &[],
        other: Other::Ns2("flows 200 bw 100e6 buf 1000 wnd 1000 loss 1e-4 variant newreno dur 500 bare 1"),
        most: 0.22,
    },
    Case {
        name: "two hosts, one link, loss 1e-4",
        scenario: "bench/spine.toml",
        set: &[("loss", "1e-4")],
        other: Other::Before,
        most: 0.4,
    },
    Case {
        name: "a fade of two hours (fade-2h.toml)",
        scenario: "scenarios/fade-2h.toml",
        set: &[],
        other: Other::Before,
        most: 0.5,
    },
];

pub(super) fn items(bench: &Bench) -> Outcome<Vec<Item>> {
    let peer = program::find(&["ns"], "ns2");
    CASES
        .iter()
        .map(|case| {
            let (name, program) = match case.other {
                Other::Ns2(_) => ("ns-2", peer.clone()),
                Other::Before => ("before", before::program()),
            };
            let what = format!("CPU time, at most {} of {name}'s: {}", case.most, case.name);
            match program {
                Ok(program) => Ok(judge(what, name, case.most, &by_turns(bench, case, &program)?)),
                Err(why) => Ok(Item::new(what, why, Verdict::Skipped)),
            }
        })
        .inspect(|item| item.iter().for_each(|item| println!("{item}")))
        .collect()
}

/// A run of the other program and one of ours.
type Pair = [(Cost, f64); 2];

fn by_turns(bench: &Bench, case: &Case, other: &Path) -> Outcome<Vec<Pair>> {
    let theirs = || match case.other {
        Other::Ns2(args) => ns2::run(bench, other, args),
        Other::Before => with_goodput(bench.simulate_with(other, case.scenario, case.set)?),
    };
    let ours = || with_goodput(bench.simulate(case.scenario, case.set)?);
    let pair = |n: usize| {
        // the second of a pair finds the machine as the first leaves it
        Ok(if n.is_multiple_of(2) {
            [theirs()?, ours()?]
        } else {
            let ours = ours()?;
            [theirs()?, ours]
        })
    };
    (0..PAIRS).map(pair).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "as the other side")]
fn with_goodput((cost, report): (Cost, Report)) -> Outcome<(Cost, f64)> {
    Ok((cost, report.goodput_bps))
}

fn judge(what: String, name: &str, most: f64, pairs: &[Pair]) -> Item {
    let ratios: Vec<f64> = pairs.iter().map(|[theirs, ours]| ours.0.cpu_s / theirs.0.cpu_s).collect();
    let ratio = median(&ratios);
    let (low, high) = ratios.iter().fold((f64::MAX, 0.0_f64), |(l, h), r| (l.min(*r), h.max(*r)));
    let cpu_s = |i: usize| median(&pairs.iter().map(|pair| pair[i].0.cpu_s).collect::<Vec<_>>());
    let same = pairs.iter().all(|[(_, theirs), (_, ours)]| (ours / theirs - 1.0).abs() <= SAME_WORK);
    let work = if same { "" } else { ", but not the same work: goodputs differ" };
    let figure =
        format!("{ratio:.3} ({low:.3} to {high:.3}): {:.3} s, {name} {:.3} s{work}", cpu_s(1), cpu_s(0));
    Item::new(what, figure, ratio <= most && same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ratio: f64, goodput: f64) -> Verdict {
        let run = |cpu_s, bps| (Cost { cpu_s, peak_kb: 1 }, bps);
        let pairs = [run(1.0, 8e6), run(ratio, goodput)];
        judge(String::new(), "ns-2", 0.22, &[pairs; 3]).verdict
    }

    #[test]
    fn the_limit_is_a_limit_and_the_work_must_be_the_same() {
        assert_eq!(verdict(0.21, 8.1e6), Verdict::Pass);
        assert_eq!(verdict(0.23, 8.1e6), Verdict::Miss);
        assert_eq!(verdict(0.21, 7e6), Verdict::Miss);
        assert_eq!(verdict(f64::NAN, 8e6), Verdict::Miss);
    }
}
