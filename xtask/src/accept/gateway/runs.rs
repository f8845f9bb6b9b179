//! Scenarios with gateways, live and simulated: reports and time series.
//!
//! `bentpipe emulate` and `bentpipe sim` write the same tables, so the same code reads both. Starting and
//! waiting are separate, so that several live runs can be concurrent.

use crate::Outcome;
use crate::accept::table::Table;
use lab::rig::{Rig, Running, json};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Time limit of a run beyond its duration.
const BESIDE: Duration = Duration::from_secs(90);

/// How a scenario is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// With namespaces as hosts and kernel TCP flows.
    Live,
    /// In simulated time.
    Simulated,
}

/// A run in progress.
#[derive(Debug)]
pub(super) struct Job {
    running: Running,
    out: PathBuf,
    what: String,
}

impl Job {
    /// Starts the scenario `file` with a seed and parameter values (`NAME=VALUE`).
    pub(super) fn start(rig: &Rig, how: How, file: &str, seed: u64, sets: &[&str]) -> Outcome<Self> {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        Self::run(rig, how, file, seed, &[&["--json"], &sets[..]].concat())
    }

    /// Starts shell scripts at the ends of the first flow instead of the flows. The run ends with `near`.
    pub(super) fn programs(rig: &Rig, file: &str, seed: u64, near: &str, far: &str) -> Outcome<Self> {
        Self::run(rig, How::Live, file, seed, &["--far", far, "--", "sh", "-c", near])
    }

    fn run(rig: &Rig, how: How, file: &str, seed: u64, more: &[&str]) -> Outcome<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("gateway-run-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let out = rig.path(&name);
        let (folder, seed) = (out.display().to_string(), seed.to_string());
        let mut words = match how {
            How::Live => vec!["emulate", file, "--name", &name],
            How::Simulated => vec!["sim", file],
        };
        words.extend(["--seed", &seed, "--out", &folder]);
        words.extend(more);
        Ok(Self { running: rig.start(&words)?, what: words.join(" "), out })
    }

    /// Waits for its end; `seconds` is its duration.
    pub(super) fn wait(self, seconds: u64) -> Outcome<Ran> {
        let done = self.running.wait(Duration::from_secs(seconds) + BESIDE)?;
        if done.code != Some(0) {
            return Err(format!("{}: {}", self.what, done.story()));
        }
        let ran = Ran::read(&self.out);
        let _ = fs::remove_dir_all(&self.out);
        ran
    }
}

/// Selects a time series: of a flow or of a link direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of<'a> {
    Flow(&'a str),
    Link(&'a str),
}

/// A value of a series in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Start of the interval, s.
    pub from: f64,
    /// End of the interval, s.
    pub to: f64,
    pub value: f64,
}

/// A completed run.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub report: Value,
    series: Table,
}

impl Ran {
    fn read(out: &Path) -> Outcome<Self> {
        let report = json(&out.join("report.json"))?;
        let path = out.join("series.csv");
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self { report, series: Table::read(&text)? })
    }

    /// A series; intervals without a value are omitted.
    pub(super) fn series(&self, of: Of<'_>, column: &str) -> Outcome<Vec<Point>> {
        let (kind, name) = match of {
            Of::Flow(name) => ("flow", name),
            Of::Link(name) => ("link", name),
        };
        let value = self.series.column(column)?;
        let (mut points, mut from) = (Vec::new(), 0.0);
        for row in self.series.rows.iter().filter(|r| r[1] == kind && r[2] == name) {
            let to = row[0].parse().map_err(|_| format!("time {}", row[0]))?;
            if let Ok(value) = row[value].parse() {
                points.push(Point { from, to, value });
            }
            from = to;
        }
        if points.is_empty() {
            return Err(format!("no values of {column} for {kind} {name}"));
        }
        Ok(points)
    }

    /// Mean from `from` to `to` seconds.
    pub(super) fn mean(&self, of: Of<'_>, column: &str, from: f64, to: f64) -> Outcome<f64> {
        let within = |p: &Point| (p.to.min(to) - p.from.max(from)).max(0.0);
        let (sum, time) = self
            .series(of, column)?
            .iter()
            .fold((0.0, 0.0), |(sum, time), p| (sum + p.value * within(p), time + within(p)));
        if time > 0.0 { Ok(sum / time) } else { Err(format!("nothing of {column} from {from} s to {to} s")) }
    }

    /// Largest value after `from` seconds; 0 if there are none.
    pub(super) fn peak(&self, of: Of<'_>, column: &str, from: f64) -> Outcome<f64> {
        Ok(self.series(of, column)?.iter().filter(|p| p.to > from).fold(0.0, |peak, p| peak.max(p.value)))
    }

    /// Sum of the values after `from` seconds.
    pub(super) fn count(&self, of: Of<'_>, column: &str, from: f64) -> Outcome<f64> {
        Ok(self.series(of, column)?.iter().filter(|p| p.from >= from).map(|p| p.value).sum())
    }

    /// A figure of a gateway, by its key or path in the report (`flows/accelerated`).
    pub(super) fn gateway(&self, name: &str, key: &str) -> Outcome<f64> {
        self.figure("gateways", name, key)
    }

    /// A figure of a flow.
    pub(super) fn flow(&self, name: &str, key: &str) -> Outcome<f64> {
        self.figure("flows", name, key)
    }

    fn figure(&self, list: &str, name: &str, key: &str) -> Outcome<f64> {
        let all = self.report[list].as_array().into_iter().flatten();
        let found =
            all.filter(|one| one["name"] == name).find_map(|one| one.pointer(&format!("/{key}"))?.as_f64());
        found.ok_or_else(|| format!("a report has no {list} {name} {key}"))
    }

    /// How often a value decreased from one interval to the next.
    pub(super) fn falls(&self, of: Of<'_>, column: &str) -> Outcome<u64> {
        let points = self.series(of, column)?;
        Ok(points.windows(2).filter(|pair| pair[1].value < pair[0].value).count() as u64)
    }

    /// Why the figures of a live run are unreliable, if the machine was too slow; otherwise empty.
    pub(super) fn doubts(&self) -> String {
        let live = &self.report["live"];
        if live["trusted"] == true || live.is_null() {
            return String::new();
        }
        let doubts = live["doubts"].as_array().into_iter().flatten().filter_map(Value::as_str);
        format!(" (machine too slow: {})", doubts.collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERIES: &str = "time_s,kind,name,goodput_bps,cwnd_bytes,throughput_bps
1,flow,f,0,10,
1,link,l,,,8
2,flow,f,4,20,
2,link,l,,,6
4,flow,f,7,15,
4,link,l,,,5
";

    fn ran() -> Ran {
        let report = serde_json::json!({
            "gateways": [{"name": "g", "losses": 3, "flows": {"accelerated": 1}}],
            "live": {"trusted": false, "doubts": ["late"]}
        });
        Ran { report, series: Table::read(SERIES).unwrap() }
    }

    #[test]
    fn series_have_means_peaks_and_falls() {
        let ran = ran();
        let mean = ran.mean(Of::Flow("f"), "goodput_bps", 1.5, 3.0).unwrap();
        assert!((mean - (0.5 * 4.0 + 7.0) / 1.5).abs() < 1e-12, "{mean}");
        assert!((ran.peak(Of::Link("l"), "throughput_bps", 1.0).unwrap() - 6.0).abs() < 1e-12);
        assert!((ran.count(Of::Link("l"), "throughput_bps", 1.0).unwrap() - 11.0).abs() < 1e-12);
        assert_eq!(ran.falls(Of::Flow("f"), "cwnd_bytes"), Ok(1));
        assert_eq!(ran.series(Of::Link("l"), "throughput_bps").unwrap().len(), 3);
        for (of, column) in
            [(Of::Flow("x"), "goodput_bps"), (Of::Flow("f"), "none"), (Of::Link("l"), "goodput_bps")]
        {
            assert!(ran.mean(of, column, 0.0, 4.0).is_err(), "{of:?} {column}");
        }
        assert!(ran.mean(Of::Flow("f"), "goodput_bps", 5.0, 6.0).is_err());
    }

    #[test]
    fn figures_are_found_by_name_and_doubts_are_told() {
        let ran = ran();
        assert_eq!((ran.gateway("g", "losses"), ran.gateway("g", "flows/accelerated")), (Ok(3.0), Ok(1.0)));
        assert!(ran.gateway("h", "losses").is_err() && ran.flow("g", "losses").is_err());
        assert_eq!(ran.doubts(), " (machine too slow: late)");
        assert_eq!(Ran { report: Value::Null, ..ran }.doubts(), "");
    }
}
