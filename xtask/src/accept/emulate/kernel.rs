//! The kernel's own CUBIC in a case of the validation page: measured again, and compared with what is
//! recorded.

use crate::accept::List;
use crate::accept::place::{Place, judge};
use crate::metadata;
use lab::agreement::{KernelRun, kernel_runs};
use lab::{Outcome, Who, stats};
use std::fs;

/// The case.
const FILE: &str = "scenarios/sharing.toml";
const SETS: [&str; 3] = ["tcp=cubic", "loss=1e-2", "jitter=0 ms"];
/// Length of a run, s.
const SECONDS: u64 = 500;
/// Runs of the reference, and fewer; so many go at the same time, each with 10 Mbit/s.
const RUNS: (u64, u64) = (20, 4);
const TOGETHER: u64 = 4;
/// The row of the reference in [`TABLE`] begins so behind the kernel's release; behind this come the number
/// of runs and what they gave.
const CASE: &str = "A,linux-cubic,20,1e-2,0,1000,1040,0.55,10000000,50,64,2,0,500";
const TABLE: &str = "crates/validate/data/reference.csv";

pub(super) fn check(place: &Place, list: &mut List) {
    let (runs, short) = if place.long { (RUNS.0, "") } else { (RUNS.1, " (short)") };
    let what = format!(
        "the kernel's CUBIC, sharing, loss 1e-2, {runs} runs of {SECONDS} s: intervals meet the recorded{short}"
    );
    list.line(3, &judge(&what, measure(place, runs), |all| figure(&all)));
}

fn measure(place: &Place, runs: u64) -> Outcome<Vec<KernelRun>> {
    let rig = place.rig(Who::Ourselves)?;
    let mut all = Vec::new();
    for first in (1..=runs).step_by(TOGETHER as usize) {
        all.extend(kernel_runs(&rig, FILE, &SETS, first..first + TOGETHER, SECONDS)?);
    }
    Ok(all)
}

fn figure(all: &[KernelRun]) -> (String, bool) {
    let of = |figure: fn(&KernelRun) -> f64| all.iter().map(figure).collect::<Vec<_>>();
    let ((mean, half), peak) = (stats::mean(&of(|r| r.goodput)), stats::mean(&of(|r| r.queue_peak)).0);
    let release = all.first().map_or("", |r| r.kernel.as_str());
    let row = format!("linux{release},{CASE},{},{mean:.0},{half:.0},,,{peak:.1},", all.len());
    match fs::read_to_string(metadata::root().join(TABLE)).ok().and_then(|text| recorded(&text)) {
        Some((value, width)) => (row, (mean - value).abs() <= half + width),
        None => (format!("{row} (no such row in {TABLE} yet)"), false),
    }
}

/// Mean and half-width of the reference, B/s.
fn recorded(table: &str) -> Option<(f64, f64)> {
    let row = table.lines().find(|l| l.starts_with("linux") && l.contains(CASE))?;
    let mut cells = row.split_once(CASE)?.1.split(',').skip(2).map(|cell| cell.parse().ok());
    cells.next()?.zip(cells.next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

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
