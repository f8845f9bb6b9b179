//! Checks that simulation and emulation with the kernel's TCP agree on the same scenario, by `bentpipe
//! compare`: rates, times, and response times of applications.

use crate::Outcome;
use crate::accept::list::List;
use crate::accept::setup::Setup;
use lab::stats::{self, Mean};
use lab::{Rig, Who};
use serde_json::Value;
use std::time::Duration;

/// Seeds where means or medians are compared.
const SEEDS: u64 = 5;
/// Largest relative difference of a single figure.
const LIMIT: f64 = 0.02;
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
    let rig = setup.rig(Who::Ourselves)?;
    let seconds = setup.pick(WINDOW_S.0, WINDOW_S.1);
    let duration = format!("duration={seconds} s");
    let window = compare(&rig, "scenarios/window.toml", &[&duration], Figure::Goodput, seconds);
    let what = format!("compare window: goodput within 2 %{}", setup.short());
    list.judge(what, window, |p| figure(p, LIMIT));
    let transfer = compare(&rig, "scenarios/transfer.toml", &[], Figure::Finished, 60);
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
    let sets = ["tcp=cubic", "loss=1e-2", "duration=60 s"];
    let one = |seed: u64| {
        let seed = format!("--seed {seed}");
        compare(rig, "scenarios/sharing.toml", &[&sets[..], &[&seed]].concat(), Figure::Goodput, 60)
    };
    let pairs: Vec<Pair> = (1..=SEEDS).map(one).collect::<Outcome<_>>()?;
    let mean = |of: fn(&Pair) -> f64| Mean::of(&pairs.iter().map(of).collect::<Vec<_>>());
    let pair = Pair { simulated: mean(|p| p.simulated).value, emulated: mean(|p| p.emulated).value };
    Ok((pair, mean(Pair::difference).half))
}

/// Response times of applications: medians over seeds, and the seed with the largest difference.
pub(super) fn applications(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::Ourselves)?;
    let patterns = PATTERNS.map(|(name, _)| name);
    let run =
        |seed| medians(&rig, "scenarios/applications.toml", &[&format!("--seed {seed}")], &patterns, 90);
    let measured: Vec<Vec<Pair>> = (1..=SEEDS * setup.pick(4, 1)).map(run).collect::<Outcome<_>>()?;
    for (i, (_, what)) in PATTERNS.iter().enumerate() {
        let pairs: Vec<Pair> = measured.iter().map(|run| run[i]).collect();
        let median = |side: fn(&Pair) -> f64| stats::median(&pairs.iter().map(side).collect::<Vec<_>>());
        let all = Pair { simulated: median(|p| p.simulated), emulated: median(|p| p.emulated) };
        let worst = pairs.iter().map(Pair::difference).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let text = format!(
            "{:.4} and {:.4} s: {:+.2} % ({} seeds, worst {:+.2} %)",
            all.simulated,
            all.emulated,
            all.difference() * 100.0,
            pairs.len(),
            worst.unwrap_or(f64::NAN) * 100.0
        );
        list.judge(format!("compare {what}, median within 2 %"), Ok(text), |text| {
            (text, all.difference().abs() <= LIMIT)
        });
    }
    Ok(())
}

/// One figure from simulation and emulation.
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

/// A figure to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    /// Total goodput of all flows, bit/s.
    Goodput,
    /// Completion time of the first flow, s.
    Finished,
}

/// Runs both sides of `file` and takes a figure of each; the emulated side takes `seconds`.
fn compare(rig: &Rig, file: &str, sets: &[&str], figure: Figure, seconds: u64) -> Outcome<Pair> {
    let both = both(rig, file, sets, seconds)?;
    Ok(Pair { simulated: read(&both["simulated"], figure)?, emulated: read(&both["emulated"], figure)? })
}

/// Runs both sides of `file`. Returns the median response time, s, for each prefix of flow names.
fn medians(rig: &Rig, file: &str, sets: &[&str], patterns: &[&str], seconds: u64) -> Outcome<Vec<Pair>> {
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
