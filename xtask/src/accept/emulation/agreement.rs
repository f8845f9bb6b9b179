//! Checks that simulation and emulation with the kernel's TCP agree on the same scenario, by `bentpipe
//! compare`: rates, times, and response times of applications.

use crate::accept::list::{List, Outcome, Setup};
use lab::stats::{self, Mean};
use lab::{Rig, Who};
use serde_json::Value;
use std::time::Duration;

/// Seeds where means or medians are compared.
const SEEDS: u64 = 5;
/// Largest relative difference of a single figure.
const LIMIT: f64 = 0.02;
/// Total goodput of all flows, bit/s, and completion time of the first, s.
const GOODPUT: &str = "/total/goodput_bps";
const FINISHED: &str = "/flows/0/finished_s";
/// Duration of the run with one window, s: in full, and short.
const WINDOW_S: (u64, u64) = (500, 120);
/// Prefix of the flow names of each pattern, and what is timed.
const PATTERNS: [(&str, &str); 5] = [
    ("page", "60 kB asked for again and again: answer"),
    ("typing", "a key 5 times a second: acknowledgment"),
    ("upload", "150 kB sent up again and again: answer"),
    ("file", "20 transfers of 100 kB: completion"),
    ("voice", "datagrams, on and off: one-way delay"),
];

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::CurrentUser)?;
    let seconds = setup.pick(WINDOW_S.0, WINDOW_S.1);
    let duration = format!("duration={seconds} s");
    let window = compare(&rig, "scenarios/window.toml", &["--set", &duration], GOODPUT, seconds);
    let what = format!("compare window: goodput within 2 %{}", setup.short());
    list.judge(what, window, |p| figure(p, LIMIT));
    let transfer = compare(&rig, "scenarios/transfer.toml", &[], FINISHED, 60);
    list.judge("compare transfer: completion within 2 %", transfer, |p| figure(p, LIMIT));
    let what = "compare sharing, cubic, loss 1e-2, 60 s: total within 8 %";
    list.judge(what, sharing(&rig), |(pair, half)| {
        let (text, met) = figure(pair, 0.08);
        (format!("{text} ± {:.1} (95 %, {SEEDS} seeds)", half * 100.0), met)
    });
    Ok(())
}

fn figure(pair: Pair, limit: f64) -> (String, bool) {
    let [a, b] = [pair.simulated, pair.emulated].map(|v| if v > 1e4 { v / 1e6 } else { v });
    let difference = pair.difference();
    (format!("{a:.3} and {b:.3}: {:+.2} %", difference * 100.0), difference.abs() <= limit)
}

/// Means over seeds, and the half-width of the confidence interval of the difference.
fn sharing(rig: &Rig) -> Outcome<(Pair, f64)> {
    let sets = ["--set", "tcp=cubic", "--set", "loss=1e-2", "--set", "duration=60 s"];
    let one = |seed: u64| {
        let seed = seed.to_string();
        compare(rig, "scenarios/sharing.toml", &[&sets[..], &["--seed", &seed]].concat(), GOODPUT, 60)
    };
    let pairs: Vec<Pair> = (1..=SEEDS).map(one).collect::<Outcome<_>>()?;
    let mean = |of: fn(&Pair) -> f64| Mean::of(&pairs.iter().map(of).collect::<Vec<_>>());
    let pair = Pair { simulated: mean(|p| p.simulated).value, emulated: mean(|p| p.emulated).value };
    Ok((pair, mean(Pair::difference).half))
}

/// Response times of applications: medians over seeds, and the seed with the largest difference.
pub(super) fn applications(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::CurrentUser)?;
    let run = |seed| medians(&rig, seed);
    let measured: Vec<Vec<Pair>> = (1..=SEEDS * setup.pick(4, 1)).map(run).collect::<Outcome<_>>()?;
    for (i, (_, what)) in PATTERNS.iter().enumerate() {
        let pairs: Vec<Pair> = measured.iter().map(|run| run[i]).collect();
        let median = |side: fn(&Pair) -> f64| stats::median(&pairs.iter().map(side).collect::<Vec<_>>());
        let all = Pair { simulated: median(|p| p.simulated), emulated: median(|p| p.emulated) };
        let worst = pairs.iter().map(Pair::difference).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let Pair { simulated, emulated } = all;
        let [of_all, worst] = [all.difference(), worst.unwrap_or(f64::NAN)].map(|share| share * 100.0);
        let seeds = pairs.len();
        let text = format!(
            "{simulated:.4} and {emulated:.4} s: {of_all:+.2} % ({seeds} seeds, worst {worst:+.2} %)"
        );
        list.line(format!("compare {what}, median within 2 %"), text, all.difference().abs() <= LIMIT);
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    simulated: f64,
    /// With the kernel's TCP.
    emulated: f64,
}

impl Pair {
    /// Relative difference of the emulated figure.
    fn difference(&self) -> f64 {
        self.emulated / self.simulated - 1.0
    }
}

/// Runs both sides of `file` and takes a figure of each by its path; the emulated side takes `seconds`.
fn compare(rig: &Rig, file: &str, options: &[&str], figure: &str, seconds: u64) -> Outcome<Pair> {
    let both = both(rig, file, options, seconds)?;
    Ok(Pair { simulated: read(&both["simulated"], figure)?, emulated: read(&both["emulated"], figure)? })
}

/// Runs both sides with a seed. Returns the median response time, s, for each of the patterns.
fn medians(rig: &Rig, seed: u64) -> Outcome<Vec<Pair>> {
    let both = both(rig, "scenarios/applications.toml", &["--seed", &seed.to_string()], 90)?;
    let live = &both["emulated"]["live"];
    if live["trusted"] != true {
        return Err(format!("--seed {seed}: this machine was too slow: {}", live["doubts"]));
    }
    let pair = |(pattern, _): &(&str, _)| {
        let side = |side: &str| {
            waited(&both[side], pattern).ok_or_else(|| format!("{side}: `{pattern}` waited for nothing"))
        };
        Ok(Pair { simulated: side("simulated")?, emulated: side("emulated")? })
    };
    PATTERNS.iter().map(pair).collect()
}

/// Median of a pattern's flows: response, acknowledgment, one-way delay of a datagram, or transfer.
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

fn both(rig: &Rig, file: &str, options: &[&str], seconds: u64) -> Outcome<Value> {
    let words = [&["compare", file, "--json"], options].concat();
    let text = rig.output(&words, Duration::from_secs(seconds + 120))?;
    serde_json::from_str(&text).map_err(|e| format!("compare {file}: {e}"))
}

fn read(report: &Value, path: &str) -> Outcome<f64> {
    report.pointer(path).and_then(Value::as_f64).ok_or_else(|| format!("a report has no {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_compared() {
        let report = serde_json::json!({"total": {"goodput_bps": 2.0}, "flows": [{"finished_s": 3.0}]});
        assert_eq!(read(&report, GOODPUT), Ok(2.0));
        assert_eq!(read(&report, FINISHED), Ok(3.0));
        assert!(read(&Value::Null, GOODPUT).is_err());
        assert!((Pair { simulated: 2.0, emulated: 2.1 }.difference() - 0.05).abs() < 1e-12);
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
