//! Checks that the gateway never makes a flow slower: simulates each cell with and without the gateway,
//! seed by seed, and judges the ratio.
//!
//! A cell fails when the whole 99 % interval of the goodput ratio is below 0.97. A cell of transfers passes
//! only when the whole interval of the ratio of times is below 1.03. While the interval contains the limit,
//! more seeds are run. The runs use `bentpipe sim` on all cores, or the bed.

pub mod cell;
pub mod page;
pub mod paired;

use crate::reader::Reader;
use crate::scenario::simulate;
use bentpipe_stats::mean;
use cell::{Cell, cells};
use paired::Ratio;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The smallest accepted ratio of goodputs.
pub const LEAST_GOODPUT_RATIO: f64 = 0.97;
/// The ratio of transfer times that must not be reached.
const MOST_TIME_RATIO: f64 = 1.03;

/// A matrix run.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The `bentpipe` program.
    pub program: PathBuf,
    /// The cells.
    pub cells: Vec<Cell>,
    /// Seeds for each cell; each gives a run with and one without the gateway.
    pub seeds: u64,
    /// Largest number of seeds, for a cell whose interval contains the limit.
    pub most: u64,
    /// Concurrent runs.
    pub threads: usize,
    /// Run in the bed instead of the simulator.
    pub live: bool,
}

/// Result of a cell.
#[derive(Clone, Debug)]
pub struct CellResult {
    /// The cell.
    pub cell: Cell,
    /// With and without the gateway, for each seed: total bit/s, or geometric mean of transfer times, s.
    pub pairs: Vec<(f64, f64)>,
    /// The ratio, or why there is none.
    pub ratio: Result<Ratio, String>,
}

impl CellResult {
    /// True if the cell passes.
    pub fn is_met(&self) -> bool {
        self.ratio.as_ref().is_ok_and(|r| {
            if self.cell.transfer.is_some() {
                r.high < MOST_TIME_RATIO
            } else {
                r.high >= LEAST_GOODPUT_RATIO
            }
        })
    }

    /// Gain by the gateway: the ratio of goodputs, or the inverse of the ratio of times; 0 if there is none.
    pub fn gain(&self) -> f64 {
        let gain = |ratio: f64| if self.cell.transfer.is_some() { 1.0 / ratio.max(1e-9) } else { ratio };
        self.ratio.as_ref().map_or(0.0, |ratio| gain(ratio.mean))
    }

    fn is_undecided(&self) -> bool {
        let limit = if self.cell.transfer.is_some() { MOST_TIME_RATIO } else { LEAST_GOODPUT_RATIO };
        self.ratio.as_ref().is_ok_and(|r| r.contains(limit))
    }

    /// The result as one line of text.
    pub fn line(&self) -> String {
        let n = self.pairs.len().max(1) as f64;
        let mean = |one: fn(&(f64, f64)) -> f64| self.pairs.iter().map(one).sum::<f64>() / n;
        let (scale, unit) = if self.cell.transfer.is_some() { (1.0, "s") } else { (1e6, "Mbit/s") };
        let verdict = if self.is_met() { "ok" } else { "WORSE" };
        match &self.ratio {
            Ok(r) => format!(
                "{:<62} {:.4} [{:.4}, {:.4}] {:>2}  {:.3} / {:.3} {unit}  {verdict}",
                self.cell.to_string(),
                r.mean,
                r.low,
                r.high,
                self.pairs.len(),
                mean(|p| p.0) / scale,
                mean(|p| p.1) / scale
            ),
            Err(why) => format!("{:<62} FAILED {why}", self.cell.to_string()),
        }
    }

    /// The result of a cell from its pairs.
    fn of(cell: Cell, pairs: Vec<(f64, f64)>) -> Self {
        let ratio =
            Ratio::of(&pairs).ok_or_else(|| "a flow that carried nothing, or too few seeds".to_owned());
        Self { cell, pairs, ratio }
    }

    /// The result as JSON.
    pub fn json(&self) -> Value {
        let c = &self.cell;
        let ratio = self.ratio.as_ref().ok().map(|r| json!([r.mean, r.low, r.high]));
        json!({ "rate_mbps": c.rate, "rtt_ms": c.rtt, "loss": c.loss, "receiver": c.receiver, "sender": c.sender,
            "flows": c.flows, "transfer_bytes": c.transfer, "pairs": self.pairs, "ratio": ratio,
            "failed": self.ratio.as_ref().err(), "met": self.is_met() })
    }

    /// Reads a result from JSON.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn from_json(json: &Value) -> Result<Self, String> {
        // a key without its unit is the filter's
        let name = |key: &'static str| key.split('_').next().unwrap_or(key);
        let word = |key| format!("{}={}", name(key), json[key]).replace('"', "");
        let words = ["rate_mbps", "rtt_ms", "loss", "receiver", "sender", "flows"].map(word).join(",");
        let [cell] = cells(&words, json["transfer_bytes"].as_u64())?[..] else {
            return Err(format!("`{words}` is not one cell"));
        };
        let pairs =
            serde_json::from_value(json["pairs"].clone()).map_err(|e| format!("{words}: pairs: {e}"))?;
        let failed = json["failed"].as_str().map(str::to_owned);
        let ran = Self::of(cell, pairs);
        Ok(Self { ratio: failed.map_or(ran.ratio, Err), ..ran })
    }
}

/// Runs all cells; calls `tell` with each result as it completes. Returns the results in the order of the
/// cells; a cell that fails says so in its result.
pub fn run(matrix: &Matrix, tell: impl Fn(&CellResult) + Sync) -> Vec<CellResult> {
    // the longest runs first, so that all cores finish at about the same time
    let mut order: Vec<usize> = (0..matrix.cells.len()).collect();
    let cost = |c: &Cell| f64::from(c.rate) * c.seconds();
    order.sort_by(|a, b| cost(&matrix.cells[*b]).total_cmp(&cost(&matrix.cells[*a])));
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![None; matrix.cells.len()]));
    thread::scope(|scope| {
        for _ in 0..matrix.threads.max(1) {
            scope.spawn(|| {
                while let Some(i) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ran = run_cell(matrix, &matrix.cells[*i]);
                    tell(&ran);
                    done.lock().unwrap_or_else(PoisonError::into_inner)[*i] = Some(ran);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

fn run_cell(matrix: &Matrix, cell: &Cell) -> CellResult {
    let mut ran = CellResult { cell: *cell, pairs: Vec::new(), ratio: Err("no seeds".to_owned()) };
    for seed in 1..=matrix.most.max(matrix.seeds) {
        if seed > matrix.seeds && !ran.is_undecided() {
            break;
        }
        let figure = |gateway| {
            let measure = if matrix.live { live } else { simulated };
            measure(&matrix.program, cell, gateway, seed)
        };
        match figure(true).and_then(|with| Ok((with, figure(false)?))) {
            Ok(pair) => ran.pairs.push(pair),
            Err(why) => return CellResult { ratio: Err(format!("seed {seed}: {why}")), ..ran },
        }
        ran = CellResult::of(*cell, ran.pairs);
    }
    ran
}

/// Goodput or transfer time of one simulation.
fn simulated(program: &Path, cell: &Cell, gateway: bool, seed: u64) -> Result<f64, String> {
    of_report(&simulate(program, seed, &cell.toml(gateway))?, cell.transfer.is_some())
}

/// Goodput or transfer time of one run of the bed.
fn live(program: &Path, cell: &Cell, gateway: bool, seed: u64) -> Result<f64, String> {
    let cell = cell.live(program, gateway, seed);
    let ran = crate::run::run(&cell)?;
    if cell.flows[0].reader != Reader::Eager {
        // acknowledged bytes would not do: without a gateway more of them stay unread in kernel buffers
        let read: u64 = ran.bytes_read.iter().filter_map(|flow| flow.last()).sum();
        return Ok(read as f64 * 8e9 / ran.length as f64);
    }
    let flows = crate::analyse::flows::flows(&ran.hop.records);
    let Some(bytes) = cell.flows[0].bytes else {
        return Ok(flows.iter().map(|f| f.goodput(0, ran.length)).sum());
    };
    if flows.len() < cell.flows.len() {
        return Err("a transfer that did not begin".to_owned());
    }
    mean_time(flows.iter().map(|f| f.time_for(bytes)))
}

fn of_report(report: &Value, transfers: bool) -> Result<f64, String> {
    if !transfers {
        return report["total"]["goodput_bps"].as_f64().ok_or_else(|| "a report without goodput".to_owned());
    }
    let flows = report["flows"].as_array().map_or(&[][..], Vec::as_slice);
    mean_time(flows.iter().map(|flow| Some(flow["finished_s"].as_f64()? - flow["start_s"].as_f64()?)))
}

/// The geometric mean of transfer times, s.
fn mean_time(times: impl Iterator<Item = Option<f64>>) -> Result<f64, String> {
    let logs: Option<Vec<f64>> = times.map(|time| time.map(libm::log)).collect();
    Ok(libm::exp(mean(&logs.ok_or("a transfer that did not end")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_reports() {
        let report = json!({ "total": { "goodput_bps": 8.0 }, "flows": [
            { "start_s": 1.0, "finished_s": 3.0 }, { "start_s": 0.0, "finished_s": 8.0 }] });
        assert_eq!(of_report(&report, false), Ok(8.0));
        assert!((of_report(&report, true).unwrap() - 4.0).abs() < 1e-12);
        assert!(of_report(&json!({ "flows": [{ "start_s": 1.0, "finished_s": null }] }), true).is_err());
        assert!(of_report(&json!({}), false).is_err());
    }

    #[test]
    fn a_cell_fails_when_all_of_its_interval_does() {
        let cell = cell::cells("rate=2,rtt=100,loss=0,receiver=old,sender=bbr,flows=1", None).unwrap()[0];
        let ran = |mean: f64, half: f64| CellResult {
            cell,
            pairs: Vec::new(),
            ratio: Ok(Ratio { mean, low: mean - half, high: mean + half }),
        };
        assert!(!ran(0.95, 0.01).is_met() && !ran(0.95, 0.01).is_undecided());
        assert!(ran(0.96, 0.02).is_met() && ran(0.96, 0.02).is_undecided() && ran(1.0, 0.01).is_met());
        let late = |mean| CellResult { cell: Cell { transfer: Some(1), ..cell }, ..ran(mean, 0.01) };
        assert!(late(1.01).is_met() && !late(1.03).is_met() && late(1.01).gain() > late(1.03).gain());
        let ran = CellResult::of(Cell { transfer: Some(1), ..cell }, vec![(1.0, 2.0), (1.0, 2.5)]);
        let again = CellResult::from_json(&ran.json()).unwrap();
        assert_eq!((again.cell, again.pairs, again.ratio), (ran.cell, ran.pairs, ran.ratio));
        assert!(CellResult::from_json(&json!({ "rate_mbps": 3 })).is_err());
    }
}
