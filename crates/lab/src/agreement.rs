//! The same scenario simulated and with the kernel's TCP, side by side by `bentpipe compare`.

use crate::Outcome;
use crate::rig::{Rig, Running};
use crate::stats;
use serde_json::Value;
use std::ops::Range;
use std::time::Duration;

/// One figure of both sides.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// In simulated time.
    pub simulated: f64,
    /// With the kernel.
    pub emulated: f64,
}

impl Pair {
    /// Share by which the emulated one is larger.
    pub fn difference(&self) -> f64 {
        self.emulated / self.simulated - 1.0
    }
}

/// A figure of a report that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Goodput of all flows together, bit/s.
    Goodput,
    /// When the first flow was finished, s.
    Finished,
}

/// What the kernel's TCP made of a scenario's flows.
#[derive(Clone, Debug)]
pub struct KernelRun {
    /// Release of the kernel.
    pub kernel: String,
    /// Of all flows together, B/s.
    pub goodput: f64,
    /// Longest queue of the bottleneck, packets.
    pub queue_peak: f64,
}

/// Runs `file` with the kernel's TCP, once for each of `seeds`, all at the same time; a run takes `seconds`.
///
/// # Errors
/// When one fails, or says itself that the machine was too slow.
pub fn kernel_runs(
    rig: &Rig,
    file: &str,
    sets: &[&str],
    seeds: Range<u64>,
    seconds: u64,
) -> Outcome<Vec<KernelRun>> {
    let start = |seed: u64| {
        let (name, seed) = (format!("kernel-{seed}"), seed.to_string());
        let mut words = vec!["emulate", file, "--name", &name, "--seed", &seed, "--json"];
        words.extend(sets.iter().flat_map(|set| ["--set", set]));
        rig.start(&words)
    };
    let sessions = seeds.map(start).collect::<Outcome<Vec<_>>>()?;
    let read = |session: Running| {
        let done = session.wait(Duration::from_secs(seconds + 120))?;
        let report: Value = serde_json::from_str(&done.out).map_err(|_| done.story())?;
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

/// Runs both sides of `file` and takes a figure of each; `seconds` is how long the emulated side takes.
///
/// # Errors
/// When one side fails.
pub fn compare(rig: &Rig, file: &str, sets: &[&str], figure: Figure, seconds: u64) -> Outcome<Pair> {
    let both = both(rig, file, sets, seconds)?;
    Ok(Pair { simulated: read(&both["simulated"], figure)?, emulated: read(&both["emulated"], figure)? })
}

/// Runs both sides of `file` and takes of each pattern, the names of whose flows begin with the given word, the median of what its user waits for, s.
///
/// # Errors
/// When one side fails, has no such figure, or the run says itself that the machine was too slow.
pub fn medians(rig: &Rig, file: &str, sets: &[&str], patterns: &[&str], seconds: u64) -> Outcome<Vec<Pair>> {
    let both = both(rig, file, sets, seconds)?;
    if both["emulated"]["live"]["trusted"] != true {
        return Err(format!(
            "{}: this machine was too slow: {}",
            sets.join(" "),
            both["emulated"]["live"]["doubts"]
        ));
    }
    let pair = |pattern: &&str| {
        let side = |side: &str| {
            waited(&both[side], pattern).ok_or_else(|| format!("{side}: `{pattern}` waited for nothing"))
        };
        Ok(Pair { simulated: side("simulated")?, emulated: side("emulated")? })
    };
    patterns.iter().map(pair).collect()
}

/// The median of the times that the flows of a pattern have: of an answer, of an acknowledgment, of a datagram's way, of a transfer.
fn waited(report: &Value, pattern: &str) -> Option<f64> {
    let flows = report["flows"].as_array()?;
    let named = |f: &&Value| f["name"].as_str().is_some_and(|name| name.starts_with(pattern));
    let of_one = |f: &Value| {
        let histograms = ["/requests/response_ms/p50", "/telnet/ack_ms/p50", "/udp/delay_ms/p50"];
        let median = histograms.iter().find_map(|at| f.pointer(at)?.as_f64()).map(|ms| ms / 1e3);
        median.or_else(|| Some(f["finished_s"].as_f64()? - f["start_s"].as_f64()?))
    };
    let times: Option<Vec<f64>> = flows.iter().filter(named).map(of_one).collect();
    times.filter(|t| !t.is_empty()).map(|t| stats::median(&t))
}

fn both(rig: &Rig, file: &str, sets: &[&str], seconds: u64) -> Outcome<Value> {
    let mut words = vec!["compare", file, "--json"];
    for set in sets {
        words.extend(if set.starts_with("--") { set.splitn(2, ' ').collect() } else { vec!["--set", set] });
    }
    let text = rig.output(&words, Duration::from_secs(seconds + 120))?;
    serde_json::from_str(&text).map_err(|e| format!("compare {file}: {e}"))
}

fn read(report: &Value, figure: Figure) -> Outcome<f64> {
    let value = match figure {
        Figure::Goodput => report["total"]["goodput_bps"].as_f64(),
        Figure::Finished => report["flows"][0]["finished_s"].as_f64(),
    };
    value.ok_or_else(|| format!("a report has no {figure:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_compared() {
        let report = serde_json::json!({"total": {"goodput_bps": 2.0}, "flows": [{"finished_s": 3.0}]});
        assert_eq!(read(&report, Figure::Goodput), Ok(2.0));
        assert_eq!(read(&report, Figure::Finished), Ok(3.0));
        assert!(read(&Value::Null, Figure::Goodput).is_err());
        assert!((Pair { simulated: 2.0, emulated: 2.1 }.difference() - 0.05).abs() < 1e-12);
    }

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
    fn a_pattern_has_the_median_of_its_flows() {
        let file =
            |name: &str, end: f64| serde_json::json!({"name": name, "start_s": 1.0, "finished_s": end});
        let page =
            serde_json::json!({"name": "page", "start_s": 0.0, "requests": {"response_ms": {"p50": 600.0}}});
        let flows = [file("file1", 3.0), file("file2", 9.0), file("file3", 4.0), page];
        let report = serde_json::json!({ "flows": flows });
        assert_eq!((waited(&report, "file"), waited(&report, "page")), (Some(3.0), Some(0.6)));
        assert_eq!(waited(&report, "voice"), None);
        let never = serde_json::json!({"flows": [{"name": "file1", "start_s": 1.0, "finished_s": null}]});
        assert_eq!(waited(&never, "file"), None, "one that never ends has no time");
    }
}
