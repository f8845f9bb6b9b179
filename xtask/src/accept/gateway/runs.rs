//! Scenarios with gateways, live and simulated: reports and time series; and iperf3 over a hop with a
//! gateway, for BBR or IPv6.
//!
//! `bentpipe emulate` and `bentpipe sim` write the same tables, so the same code reads both. Starting and
//! waiting are separate, so that several live runs can be concurrent.

use super::hops::{Hop, OLD, toml};
use crate::Outcome;
use crate::accept::table::Table;
use lab::chain::OLD_KERNEL;
use lab::rig::{Rig, Running, json};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Time limit of a run beyond its duration.
const BESIDE: Duration = Duration::from_secs(90);
/// Gives a receiver 32 MiB per connection; it announces more than 8 MiB.
const MODERN_KERNEL: &str = "cd /proc/sys/net/ipv4 && echo 4096 33554432 33554432 >tcp_rmem";
/// Gives a sender more room: the default of 4 MB includes bookkeeping and allows 2.4 MB in flight.
pub(super) const SENDER: &str = "echo 4096 16384 67108864 >/proc/sys/net/ipv4/tcp_wmem";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunKind {
    /// With namespaces as hosts and kernel TCP flows.
    Live,
    /// In simulated time.
    Simulated,
}

pub(super) struct Job {
    running: Running,
    out: PathBuf,
    what: String,
}

impl Job {
    /// Starts the scenario `file` with a seed and parameter values (`NAME=VALUE`).
    pub(super) fn start(rig: &Rig, how: RunKind, file: &str, seed: u64, sets: &[&str]) -> Outcome<Self> {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        Self::run(rig, how, file, seed, &[&["--json"], &sets[..]].concat())
    }

    /// Starts shell scripts at the ends of the first flow instead of the flows. The run ends with `near`.
    pub(super) fn programs(rig: &Rig, file: &str, seed: u64, near: &str, far: &str) -> Outcome<Self> {
        Self::run(
            rig,
            RunKind::Live,
            file,
            seed,
            &["--far", far, "--far-ready", "off", "--", "sh", "-c", near],
        )
    }

    fn run(rig: &Rig, how: RunKind, file: &str, seed: u64, more: &[&str]) -> Outcome<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("gateway-run-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let out = rig.path(&name);
        let (folder, seed) = (out.display().to_string(), seed.to_string());
        let mut words = match how {
            RunKind::Live => vec!["emulate", file, "--name", &name],
            RunKind::Simulated => vec!["sim", file],
        };
        words.extend(["--seed", &seed, "--out", &folder]);
        words.extend(more);
        Ok(Self { running: rig.start(&words)?, what: words.join(" "), out })
    }

    /// Waits for its end; `seconds` is its duration.
    pub(super) fn wait(self, seconds: u64) -> Outcome<RunResult> {
        self.running.wait(Duration::from_secs(seconds) + BESIDE)?.succeeded(&self.what)?;
        let ran = RunResult::read(&self.out);
        let _ = fs::remove_dir_all(&self.out);
        ran
    }
}

/// Selects a time series: of a flow or of a link direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeriesOf<'a> {
    Flow(&'a str),
    Link(&'a str),
}

/// A value of a series in an interval, s.
pub(super) struct Point {
    pub from: f64,
    pub to: f64,
    pub value: f64,
}

pub(super) struct RunResult {
    pub report: Value,
    series: Table,
}

impl RunResult {
    fn read(out: &Path) -> Outcome<Self> {
        let report = json(&out.join("report.json"))?;
        let path = out.join("series.csv");
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self { report, series: Table::read(&text)? })
    }

    /// A series; intervals without a value are omitted.
    pub(super) fn series(&self, of: SeriesOf<'_>, column: &str) -> Outcome<Vec<Point>> {
        let (kind, name) = match of {
            SeriesOf::Flow(name) => ("flow", name),
            SeriesOf::Link(name) => ("link", name),
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
    pub(super) fn mean(&self, of: SeriesOf<'_>, column: &str, from: f64, to: f64) -> Outcome<f64> {
        let within = |p: &Point| (p.to.min(to) - p.from.max(from)).max(0.0);
        let points = self.series(of, column)?;
        let time: f64 = points.iter().map(within).sum();
        let sum: f64 = points.iter().map(|p| p.value * within(p)).sum();
        if time > 0.0 { Ok(sum / time) } else { Err(format!("nothing of {column} from {from} s to {to} s")) }
    }

    /// Largest value after `from` seconds; 0 if there are none.
    pub(super) fn peak(&self, of: SeriesOf<'_>, column: &str, from: f64) -> Outcome<f64> {
        Ok(self.series(of, column)?.iter().filter(|p| p.to > from).fold(0.0, |peak, p| peak.max(p.value)))
    }

    /// Sum of the values after `from` seconds.
    pub(super) fn count(&self, of: SeriesOf<'_>, column: &str, from: f64) -> Outcome<f64> {
        Ok(self.series(of, column)?.iter().filter(|p| p.from >= from).map(|p| p.value).sum())
    }

    /// A figure of a gateway, by its key or path in the report (`flows/accelerated`).
    pub(super) fn gateway(&self, name: &str, key: &str) -> Outcome<f64> {
        self.figure("gateways", name, key)
    }

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
    pub(super) fn decreases(&self, of: SeriesOf<'_>, column: &str) -> Outcome<u64> {
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

/// iperf3 over a hop; the receiver opens the connection.
pub(super) struct Transfer {
    job: Job,
    result: PathBuf,
}

/// The iperf3 report of a completed transfer.
pub(super) struct IperfReport(pub Value);

impl Transfer {
    /// Starts a transfer of `seconds` over `hop` with loss probability `loss`.
    pub(super) fn start(rig: &Rig, hop: &Hop<'_>, loss: f64, seed: u64, seconds: u64) -> Outcome<Self> {
        // the scenario's flow does not run, and scenarios have no BBR
        let place = Hop { tcp: "cubic", ..*hop };
        let name = format!("{}-{loss:e}-{seed}", hop.name);
        let file = rig.file(&format!("{name}.toml"), &toml(&[place], loss, (0, seconds)))?;
        let result = rig.path(&format!("{name}.json"));
        let kernel = if hop.receiver == OLD { OLD_KERNEL } else { MODERN_KERNEL };
        let near = format!("{SENDER}; iperf3 -s -1 >/dev/null; sleep 3");
        let (tcp, to) = (hop.tcp, result.display());
        let far = format!("{kernel}; sleep 1; exec iperf3 -c near -R -C {tcp} -t {seconds} -J >'{to}'");
        let job = Job::programs(rig, &file, seed, &near, &far)?;
        Ok(Self { job, result })
    }

    /// Waits for its end, `seconds` after its start. Returns the run, and iperf3's report.
    pub(super) fn wait(self, seconds: u64) -> Outcome<(RunResult, IperfReport)> {
        Ok((self.job.wait(seconds)?, IperfReport(json(&self.result)?)))
    }
}

impl IperfReport {
    /// Mean goodput of the receiving application from second `from` on, bit/s.
    pub(super) fn rate_bps(&self, from: f64) -> Outcome<f64> {
        let intervals = self.0["intervals"].as_array().into_iter().flatten().map(|i| &i["sum"]);
        let late = intervals.filter(|sum| sum["start"].as_f64().is_some_and(|start| start >= from));
        let (bytes, time) = late.fold((0.0, 0.0), |(bytes, time), sum| {
            let of = |key: &str| sum[key].as_f64().unwrap_or(0.0);
            (bytes + of("bytes"), time + of("seconds"))
        });
        if time > 0.0 { Ok(bytes * 8.0 / time) } else { Err("iperf3 did not run long enough".to_owned()) }
    }

    /// Segments retransmitted by the sender, from TCP_INFO.
    pub(super) fn retransmits(&self) -> Outcome<f64> {
        let told = self.0["end"]["sum_sent"]["retransmits"].as_f64();
        told.ok_or_else(|| "iperf3 does not tell retransmissions".to_owned())
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

    fn ran() -> RunResult {
        let report = serde_json::json!({
            "gateways": [{"name": "g", "losses": 3, "flows": {"accelerated": 1}}],
            "live": {"trusted": false, "doubts": ["late"]}
        });
        RunResult { report, series: Table::read(SERIES).unwrap() }
    }

    #[test]
    fn series_have_means_peaks_and_falls() {
        let ran = ran();
        let mean = ran.mean(SeriesOf::Flow("f"), "goodput_bps", 1.5, 3.0).unwrap();
        assert!((mean - (0.5 * 4.0 + 7.0) / 1.5).abs() < 1e-12, "{mean}");
        assert!((ran.peak(SeriesOf::Link("l"), "throughput_bps", 1.0).unwrap() - 6.0).abs() < 1e-12);
        assert!((ran.count(SeriesOf::Link("l"), "throughput_bps", 1.0).unwrap() - 11.0).abs() < 1e-12);
        assert_eq!(ran.decreases(SeriesOf::Flow("f"), "cwnd_bytes"), Ok(1));
        assert_eq!(ran.series(SeriesOf::Link("l"), "throughput_bps").unwrap().len(), 3);
        for (of, column) in [
            (SeriesOf::Flow("x"), "goodput_bps"),
            (SeriesOf::Flow("f"), "none"),
            (SeriesOf::Link("l"), "goodput_bps"),
        ] {
            assert!(ran.mean(of, column, 0.0, 4.0).is_err(), "{of:?} {column}");
        }
        assert!(ran.mean(SeriesOf::Flow("f"), "goodput_bps", 5.0, 6.0).is_err());
    }

    #[test]
    fn figures_are_found_by_name_and_doubts_are_told() {
        let ran = ran();
        assert_eq!((ran.gateway("g", "losses"), ran.gateway("g", "flows/accelerated")), (Ok(3.0), Ok(1.0)));
        assert!(ran.gateway("h", "losses").is_err() && ran.flow("g", "losses").is_err());
        assert_eq!(ran.doubts(), " (machine too slow: late)");
        assert_eq!(RunResult { report: Value::Null, ..ran }.doubts(), "");
    }

    #[test]
    fn rates_count_from_a_second_on() {
        let sum = |start: f64, bytes: u64| serde_json::json!({"sum": {"start": start, "seconds": 1.0, "bytes": bytes}});
        let intervals = [sum(0.0, 5), sum(1.0, 10), sum(2.0, 30)];
        let ended =
            IperfReport(serde_json::json!({"intervals": intervals, "end": {"sum_sent": {"retransmits": 3}}}));
        assert!((ended.rate_bps(1.0).unwrap() - 160.0).abs() < 1e-9);
        assert!(ended.rate_bps(3.0).is_err());
        assert_eq!(ended.retransmits(), Ok(3.0));
        assert!(IperfReport(Value::Null).retransmits().is_err());
    }
}
