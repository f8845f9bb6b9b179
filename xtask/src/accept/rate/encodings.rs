//! The three encodings side by side: what twenty flows get over a satellite hop if rates are granted
//! (TIA-1039), advised (SCONE in TCP) or approved for the start (Quick-Start), and without signalling.

use super::simulator::{Simulator, drops, named};
use crate::accept::list::{List, Outcome, Setup};
use lab::stats::Mean;
use serde_json::Value;

const SEEDS: u64 = 20;
/// End of a run: a transfer that has not ended took until then, s.
const END: f64 = 150.0;

/// Cases: a geostationary hop, rain over it, and slots of 15 s in low orbit.
const CASES: [(&str, &[(&str, &str)]); 3] = [
    ("GEO", &[]),
    ("rain", &[("mid", "25 Mbit/s"), ("low", "10 Mbit/s")]),
    ("LEO", &[("near", "10 ms"), ("far", "35 ms"), ("outage", "50 ms")]),
];

/// What the senders do.
const SENDERS: [(&str, &[(&str, &str)]); 5] = [
    ("tia-1039", &[]),
    ("scone-tcp", &[("encoding", "scone-tcp")]),
    ("quick-start", &[("encoding", "quick-start")]),
    ("cubic", &[("encoding", "off")]),
    ("bbr", &[("encoding", "off"), ("tcp", "bbr")]),
];

/// What one run measured.
struct Run {
    /// Mbit/s of all flows.
    goodput: f64,
    /// Packets dropped because the queue was full.
    drops: f64,
    /// Mean queue, packets.
    queue: f64,
    /// Mean time of the transfers, s.
    transfer: f64,
}

impl Run {
    fn of(report: &Value) -> Outcome<Self> {
        let hop = named(report, "links", "hop")?;
        let flows = report["flows"].as_array().ok_or("no flows in the report")?;
        let goodput: f64 = flows.iter().filter_map(|flow| flow["goodput_bps"].as_f64()).sum();
        let is_short = |flow: &&Value| flow["name"].as_str().is_some_and(|name| name.starts_with("short"));
        let time = |flow: &Value| -> Outcome<f64> {
            let start = flow["start_s"].as_f64().ok_or("no start_s in the report")?;
            Ok(flow["finished_s"].as_f64().unwrap_or(END) - start)
        };
        let times: Vec<f64> = flows.iter().filter(is_short).map(time).collect::<Outcome<_>>()?;
        let outages = hop["drops"]["outage"].as_f64().unwrap_or(0.0);
        Ok(Self {
            goodput: goodput / 1e6,
            drops: drops(hop)? - outages,
            queue: hop["queue_packets"]["mean"].as_f64().ok_or("no mean queue in the report")?,
            transfer: times.iter().sum::<f64>() / times.len().max(1) as f64,
        })
    }
}

/// The runs of one sender in one case.
fn runs(sim: &Simulator, case: &[(&str, &str)], sender: &[(&str, &str)]) -> Outcome<Vec<Run>> {
    let sets = [case, sender].concat();
    (1..=SEEDS).map(|seed| Run::of(&sim.run("rate-encodings", &sets, seed)?)).collect()
}

/// Mean and interval of one figure.
fn mean(runs: &[Run], figure: fn(&Run) -> f64) -> Mean {
    Mean::of(&runs.iter().map(figure).collect::<Vec<_>>())
}

/// A figure of a run, and what it is.
type Figure = (&'static str, fn(&Run) -> f64);

pub(super) fn encodings(_: &Setup, list: &mut List) -> Outcome {
    let sim = Simulator::build()?;
    for (case, sets) in CASES {
        let all: Vec<Vec<Run>> =
            SENDERS.iter().map(|(_, sender)| runs(&sim, sets, sender)).collect::<Outcome<_>>()?;
        for ((sender, _), runs) in SENDERS.iter().zip(&all) {
            let figures: [Figure; 4] = [
                ("goodput, Mbit/s", |run| run.goodput),
                ("queue full, packets", |run| run.drops),
                ("queue, packets", |run| run.queue),
                ("transfers of 4 MB, s", |run| run.transfer),
            ];
            let words = figures.map(|(what, figure)| format!("{what}: {}", mean(runs, figure)));
            list.line(format!("{case}, {sender}, {SEEDS} seeds (reported)"), words.join("; "), true);
        }
        let [granted, advised, _, cubic, _] = &all[..] else { return Err("not five senders".to_owned()) };
        // run by run: the seeds differ more than the senders
        let earlier: Vec<f64> = cubic.iter().zip(granted).map(|(c, g)| c.transfer - g.transfer).collect();
        let earlier = Mean::of(&earlier);
        let what = format!("{case}: transfers end earlier with tia-1039 than with cubic");
        list.line(what, format!("by {earlier} s"), earlier.value > earlier.half);
        let queues = (mean(advised, |run| run.queue), mean(cubic, |run| run.queue));
        let what = format!("{case}: the queue is shorter with scone-tcp than with cubic");
        list.line(what, format!("{} packets, {} packets", queues.0, queues.1), queues.1.above(queues.0));
    }
    for (last, wanted) in [("true", true), ("false", false)] {
        let report = sim.run("rate-encodings", &[("encoding", "quick-start"), ("last", last)], 1)?;
        let flows = report["flows"].as_array().ok_or("no flows in the report")?;
        let approved = flows.iter().filter(|flow| flow["rate"]["granted_bps"].as_u64().is_some()).count();
        let what = format!("a Quick-Start is approved if all routers signal ({last})");
        list.line(what, format!("{approved} of {} flows", flows.len()), (approved > 0) == wanted);
    }
    Ok(())
}

#[cfg(test)]
mod unit {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_is_read_from_its_report() {
        let report = json!({
            "flows": [
                {"name": "long1", "goodput_bps": 2e6, "start_s": 1.0},
                {"name": "short1", "goodput_bps": 1e6, "start_s": 10.0, "finished_s": 14.0},
                {"name": "short2", "goodput_bps": 0.0, "start_s": 148.0, "finished_s": null},
            ],
            "links": [{"name": "hop", "drops": {"queue_full": 7, "outage": 90}, "queue_packets": {"mean": 3.5}}],
        });
        let run = Run::of(&report).unwrap();
        let doubled = [run.goodput, run.drops, run.queue, run.transfer].map(|x| (x * 2.0).round() as i64);
        assert_eq!(doubled, [6, 14, 7, 6]);
        assert!(Run::of(&json!({"links": []})).is_err());
    }
}
