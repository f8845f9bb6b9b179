//! Old and new on one trunk, compared with a network in which nobody signals.

use super::simulator::{Simulator, goodput_bps, named};
use super::{PERCENT, SECONDS};
use crate::accept::list::{Bound, List, Outcome, Setup};
use lab::stats::median;
use serde_json::Value;

const SEEDS: u64 = 10;
/// Names of the flows that ask if anybody does, and of those that never do.
const ABLE: &str = "able";
const PLAIN: &str = "plain";
/// Later connections to the peer behind the firewall, and their bytes.
const LATER: [&str; 4] = ["later1", "later2", "later3", "later4"];
const LATER_BYTES: f64 = 500e3;
/// A lost SYN costs a second.
const SYN_TIMEOUT_S: f64 = 1.0;
/// Rates of the link without a flow router. A share of the trunk is 4.75 Mbit/s.
const SILENT: [&str; 4] = ["1.5 Mbit/s", "3 Mbit/s", "5 Mbit/s", "12 Mbit/s"];
/// What the flow without signalling keeps there.
const KEPT: f64 = 1.0 / 3.0;

/// Mean goodput of the flows whose names begin like this.
fn mean(report: &Value, group: &str) -> Outcome<f64> {
    let flows = report["flows"].as_array().ok_or("no flows in the report")?;
    let own = |flow: &&Value| flow["name"].as_str().is_some_and(|name| name.starts_with(group));
    let all: Vec<f64> = flows.iter().filter(own).filter_map(|flow| flow["goodput_bps"].as_f64()).collect();
    if all.is_empty() {
        Err(format!("no flows {group}"))
    } else {
        Ok(all.iter().sum::<f64>() / all.len() as f64)
    }
}

/// Time of a flow's handshake, s.
fn handshake(report: &Value, flow: &str) -> Outcome<f64> {
    let flow = named(report, "flows", flow)?;
    let of = |key: &str| flow[key].as_f64().ok_or_else(|| format!("no {key} of {}", flow["name"]));
    Ok(of("established_s")? - of("start_s")?)
}

pub(super) fn mixed(_: &Setup, list: &mut List) -> Outcome {
    let sim = Simulator::build()?;
    for ip in ["4", "6"] {
        let runs: Outcome<Vec<[Value; 2]>> = (1..=SEEDS).map(|seed| pair(&sim, ip, &[], seed)).collect();
        groups(list, ip, &runs);
        firewall(list, &runs);
    }
    for rate in SILENT {
        let sets = [("silent", rate)];
        let runs: Outcome<Vec<[Value; 2]>> = (1..=SEEDS).map(|seed| pair(&sim, "4", &sets, seed)).collect();
        for (group, least) in [(ABLE, 0.94), (PLAIN, 0.98), ("able-silent", KEPT), ("plain-silent", KEPT)] {
            let what = format!("{group}, silent link {rate}, {SEEDS} seeds, of that without signalling");
            list.figure(&what, share(&runs, group), Bound::Least(least), PERCENT);
        }
    }
    Ok(())
}

/// A run in which half of the flows ask, and one in which nobody does.
fn pair(sim: &Simulator, ip: &str, sets: &[(&str, &str)], seed: u64) -> Outcome<[Value; 2]> {
    let run = |encoding| {
        let own = [("ip", ip), ("encoding", encoding)];
        sim.run("rate-mixed", &[&own[..], sets].concat(), seed)
    };
    Ok([run("tia-1039")?, run("off")?])
}

/// Mean goodput of a group over all seeds, relative to that without signalling.
fn share(runs: &Outcome<Vec<[Value; 2]>>, group: &str) -> Outcome<f64> {
    let runs = runs.as_ref().map_err(Clone::clone)?;
    let sum = |i: usize| runs.iter().map(|pair| mean(&pair[i], group)).sum::<Outcome<f64>>();
    Ok(sum(0)? / sum(1)?)
}

fn groups(list: &mut List, ip: &str, runs: &Outcome<Vec<[Value; 2]>>) {
    for (group, least) in [(ABLE, 0.94), (PLAIN, 0.98)] {
        let what =
            format!("mean goodput of flows {group}, IPv{ip}, {SEEDS} seeds, of that without signalling");
        list.figure(&what, share(runs, group), Bound::Least(least), PERCENT);
    }
}

fn firewall(list: &mut List, runs: &Outcome<Vec<[Value; 2]>>) {
    let times = |flows: &[&str]| -> Outcome<Vec<f64>> {
        let runs = runs.as_ref().map_err(Clone::clone)?;
        runs.iter().flat_map(|[with, _]| flows.iter().map(|flow| handshake(with, flow))).collect()
    };
    let what = "handshake with a peer behind a firewall, the first: one SYN timeout and a round trip, median";
    list.figure(
        what,
        times(&["able-guarded"]).map(|all| median(&all)),
        Bound::Most(SYN_TIMEOUT_S + 0.2),
        SECONDS,
    );
    let what = "the same, later connections, median";
    list.figure(what, times(&LATER).map(|all| median(&all)), Bound::Most(0.2), SECONDS);
    let bytes = runs.as_ref().map_err(Clone::clone).and_then(|runs| {
        let run_s = |report: &Value| report["simulated_s"].as_f64().ok_or("no simulated_s in the report");
        let of = |report: &Value, flow: &&str| Ok(goodput_bps(report, flow)? * run_s(report)? / 8.0);
        let all = runs.iter().flat_map(|[with, _]| LATER.iter().map(|flow| of(with, flow)));
        all.collect::<Outcome<Vec<f64>>>()
    });
    list.judge("the same, no byte lost", bytes, |all| {
        let exact = all.iter().filter(|bytes| (**bytes - LATER_BYTES).abs() < 0.5).count();
        (format!("{exact} of {} transfers exact", all.len()), exact == all.len())
    });
}
