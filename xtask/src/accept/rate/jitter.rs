//! How evenly packets arrive at a link, and how long its queue becomes.

use super::simulator::{Simulator, drops, named};
use super::{COUNT, SEEDS};
use crate::accept::list::{Bound, List, Outcome, Setup, Unit};
use lab::stats::median;
use serde_json::Value;

/// Start of the time without arrivals or departures, s.
const STEADY: f64 = 15.0;
/// Bytes that the link sends in an interval of the instrument.
const INTERVAL: f64 = 1500.0;
/// Intervals of which the variance is taken.
const WINDOW: usize = 10;

/// Variance relative to the mean: 1 for independent arrivals, 0 for equal intervals.
const DISPERSION: Unit = Unit("", 1.0, 3);

/// Packets and bytes that arrived in each interval of the steady time.
fn arrivals(report: &Value) -> Outcome<Vec<(f64, f64)>> {
    let rows = named(report, "instruments", "arrivals")?["rows"].as_array().ok_or("no rows")?;
    let row = |row: &Value| Some((row[0].as_f64()?, (row[1].as_f64()?, row[2].as_f64()?)));
    Ok(rows.iter().filter_map(row).filter(|(end, _)| *end > STEADY).map(|(_, counts)| counts).collect())
}

/// The longest queue in packets: what arrived and was not sent yet.
fn longest_queue(arrivals: &[(f64, f64)]) -> f64 {
    let mut queued: f64 = 0.0;
    let after = arrivals.iter().map(|(_, bytes)| {
        queued = (queued + bytes - INTERVAL).max(0.0);
        queued
    });
    after.fold(0.0, f64::max) / INTERVAL
}

/// Index of dispersion of the packets in windows (Cox and Lewis, 1966).
fn dispersion(arrivals: &[(f64, f64)]) -> f64 {
    let counts: Vec<f64> = arrivals.chunks_exact(WINDOW).map(|w| w.iter().map(|(n, _)| n).sum()).collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|n| (n - mean) * (n - mean)).sum::<f64>() / counts.len() as f64 / mean
}

pub(super) fn jitter(_: &Setup, list: &mut List) -> Outcome {
    let sim = Simulator::build()?;
    for ip in ["4", "6"] {
        let (peak, _) = measure(&sim, &[("flows", "1"), ("ip", ip)]);
        list.figure(
            &format!("one sender with a rate, IPv{ip}: longest queue"),
            peak,
            Bound::Most(3.0),
            COUNT,
        );
        let (peak, index) = measure(&sim, &[("ip", ip)]);
        let what = format!("50 of them, IPv{ip}: longest queue; at most 50, 20 with 1.5e-8 (nD/D/1)");
        list.figure(&what, peak, Bound::Most(20.0), COUNT);
        let what = "the same, index of dispersion of 10 packet times; 1 if independent";
        list.figure(what, index, Bound::Nothing, DISPERSION);
    }
    for tcp in ["cubic", "newreno"] {
        for flows in ["1", "50"] {
            let (peak, index) = measure(&sim, &[("encoding", "off"), ("tcp", tcp), ("flows", flows)]);
            let what = format!("{tcp} without signalling, {flows} of them: longest queue, room for 300");
            list.figure(&what, peak, Bound::Nothing, COUNT);
            list.figure("the same, index of dispersion", index, Bound::Nothing, DISPERSION);
        }
    }
    Ok(())
}

/// Medians of the longest queue and of the index of dispersion.
fn measure(sim: &Simulator, sets: &[(&str, &str)]) -> (Outcome<f64>, Outcome<f64>) {
    let run = |seed: u64| {
        let report = sim.run("rate-jitter", sets, seed)?;
        let link = named(&report, "links", "bottleneck")?;
        let arrived = arrivals(&report)?;
        // one flow is steady from the beginning, and what is dropped is no part of a queue
        let is_whole = sets.contains(&("flows", "1")) || drops(link)? > 0.0;
        let whole = link["queue_packets"]["peak"].as_f64().ok_or("no queue in the report")?;
        Ok((if is_whole { whole } else { longest_queue(&arrived) }, dispersion(&arrived)))
    };
    let all: Outcome<Vec<(f64, f64)>> = (1..=SEEDS).map(run).collect();
    let of = |part: fn(&(f64, f64)) -> f64| {
        all.as_deref().map(|all| median(&all.iter().map(part).collect::<Vec<_>>())).map_err(Clone::clone)
    };
    (of(|one| one.0), of(|one| one.1))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn equal_intervals_have_no_dispersion_and_bursts_a_queue() {
        let even = vec![(1.0, INTERVAL); 100];
        assert_eq!((longest_queue(&even), dispersion(&even)), (0.0, 0.0));
        let burst: Vec<(f64, f64)> =
            (0..100).map(|i| if i % 20 == 0 { (20.0, 20.0 * INTERVAL) } else { (0.0, 0.0) }).collect();
        assert_eq!((longest_queue(&burst), dispersion(&burst)), (19.0, 10.0));
    }
}
