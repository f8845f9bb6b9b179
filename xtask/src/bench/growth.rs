//! Cost of a packet and memory of a flow with many flows of 0.5 Mbit/s, each with 2.5 packets of buffer;
//! time and memory to the first event.

use super::{Bench, before, measure::Cost};
use crate::Outcome;
use crate::item::Item;
use lab::stats::median;
use std::path::Path;

/// Rounds, in which each number of flows has its turn. With few flows a run is short, and is repeated.
const ROUNDS: usize = 3;
const FEW: u32 = 20;
const REPEATED: usize = 9;
/// A packet's cost is that of the longer run less that of the shorter one, without building. s.
const DURATIONS: [u32; 2] = [20, 100];
/// Largest CPU time per packet relative to that with 20 flows.
const GROWTH: [(u32, f64); 2] = [(2000, 1.5), (10_000, 2.0)];
/// Largest memory of a flow with some 40 segments outstanding, bytes.
const BYTES_PER_FLOW: f64 = 16_000.0;
/// Numbers of flows whose time and memory to the first event are measured, the largest growth, and the
/// longest time of the larger number, s.
const BUILT: ([u32; 2], f64, f64) = ([10_000, 100_000], 11.0, 2.0);

/// What a number of flows costs.
#[derive(Clone, Copy)]
struct Figures {
    ns_per_packet: f64,
    peak_kb: u64,
}

pub(super) fn items(bench: &Bench) -> Outcome<Vec<Item>> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let few = (0..REPEATED).map(|_| figures(bench, &bench.bentpipe, FEW)).collect::<Outcome<Vec<_>>>()?;
        let ns = median(&few.iter().map(|f| f.ns_per_packet).collect::<Vec<_>>());
        let many = GROWTH.map(|(flows, _)| figures(bench, &bench.bentpipe, flows));
        let [two, ten] = many;
        rounds.push([Figures { ns_per_packet: ns, peak_kb: few[0].peak_kb }, two?, ten?]);
    }
    let before = before::program().and_then(|program| {
        let few = (0..REPEATED).map(|_| figures(bench, &program, FEW)).collect::<Outcome<Vec<_>>>()?;
        Ok(median(&few.iter().map(|f| f.ns_per_packet).collect::<Vec<_>>()))
    });
    let mut items = verdicts(&rounds, before.unwrap_or(f64::NAN));
    items.extend(building(bench)?);
    for item in &items {
        println!("{item}");
    }
    Ok(items)
}

/// Parameters of a run with `flows` flows.
fn parameters(flows: u32, duration_s: u32) -> [(&'static str, String); 5] {
    [
        ("flows", flows.to_string()),
        ("window", "64 segments".to_owned()),
        ("rate", format!("{} kbit/s", flows * 500)),
        ("buffer", format!("{} packets", flows * 5 / 2)),
        ("duration", format!("{duration_s} s")),
    ]
}

fn figures(bench: &Bench, program: &Path, flows: u32) -> Outcome<Figures> {
    let [short, long] = DURATIONS
        .map(|duration_s| bench.simulate_with(program, "bench/many.toml", &parameters(flows, duration_s)));
    let ((short, few), (long, many)) = (short?, long?);
    let packets = many.segments.saturating_sub(few.segments) as f64;
    Ok(Figures { ns_per_packet: (long.cpu_s - short.cpu_s) * 1e9 / packets, peak_kb: long.peak_kb })
}

fn verdicts(rounds: &[[Figures; 3]], before_ns: f64) -> Vec<Item> {
    let ns = |i: usize| median(&rounds.iter().map(|r| r[i].ns_per_packet).collect::<Vec<_>>());
    let mut items = Vec::new();
    for (i, (flows, most)) in GROWTH.into_iter().enumerate() {
        let ratios: Vec<f64> = rounds.iter().map(|r| r[i + 1].ns_per_packet / r[0].ns_per_packet).collect();
        let growth = median(&ratios);
        let met = growth <= most || ns(i + 1) <= before_ns;
        let what =
            format!("CPU per packet, {flows} flows: {most} times that of {FEW}, or that of {FEW} before");
        let figure =
            format!("{growth:.2} times: {:.0} ns, {:.0} ns; before {before_ns:.0} ns", ns(0), ns(i + 1));
        items.push(Item::new(what, figure, met));
    }
    let peak_kb = |i: usize| rounds.iter().map(|r| r[i].peak_kb).max().unwrap_or(0) as f64;
    let flows = GROWTH[1].0 - FEW;
    let each = (peak_kb(2) - peak_kb(0)) * 1024.0 / f64::from(flows);
    let what = format!("memory per flow, 10 000 flows: at most {} KB", BYTES_PER_FLOW / 1e3);
    items.push(Item::new(what, format!("{:.1} KB", each / 1e3), each <= BYTES_PER_FLOW));
    items
}

/// Runs whose flows all start in their one millisecond: what they cost is reading, building and the report.
fn building(bench: &Bench) -> Outcome<Vec<Item>> {
    let (flows, most, longest_s) = BUILT;
    let mut runs: Vec<[Cost; 2]> = Vec::new();
    for _ in 0..REPEATED {
        let [few, many] = flows.map(|flows| {
            let mut set = parameters(flows, 1).to_vec();
            set.retain(|(name, _)| *name != "duration");
            set.extend([("duration", "1 ms".to_owned()), ("spread", "1 ms".to_owned())]);
            Ok::<_, String>(bench.simulate("bench/many.toml", &set)?.0)
        });
        runs.push([few?, many?]);
    }
    let time = median(&runs.iter().map(|[few, many]| many.cpu_s / few.cpu_s).collect::<Vec<_>>());
    let memory =
        median(&runs.iter().map(|[few, many]| many.peak_kb as f64 / few.peak_kb as f64).collect::<Vec<_>>());
    let cpu_s = median(&runs.iter().map(|[_, many]| many.cpu_s).collect::<Vec<_>>());
    let growth = format!("to the first event, 100 000 flows: {most} times that of 10 000");
    Ok(vec![
        Item::new(format!("time {growth}"), format!("{time:.1} times"), time <= most),
        Item::new(format!("memory {growth}"), format!("{memory:.1} times"), memory <= most),
        Item::new(
            format!("time to the first event, 100 000 flows, with the report: at most {longest_s} s"),
            format!("{cpu_s:.2} s of CPU"),
            cpu_s <= longest_s,
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Verdict;

    fn verdicts_of(ns: [f64; 3], peak_kb: u64, before_ns: f64) -> Vec<Verdict> {
        let round = ns.map(|ns_per_packet| Figures { ns_per_packet, peak_kb: 0 });
        let [few, two, ten] = round;
        verdicts(&[[few, two, Figures { peak_kb, ..ten }]; ROUNDS], before_ns)
            .into_iter()
            .map(|i| i.verdict)
            .collect()
    }

    #[test]
    fn limits_are_limits() {
        use Verdict::{Miss, Pass};
        assert_eq!(verdicts_of([100.0, 149.0, 199.0], 150_000, f64::NAN), [Pass, Pass, Pass]);
        assert_eq!(verdicts_of([100.0, 151.0, 201.0], 160_000, f64::NAN), [Miss, Miss, Miss]);
        assert_eq!(verdicts_of([100.0, 151.0, 201.0], 150_000, 200.0), [Pass, Miss, Pass]);
        assert_eq!(verdicts_of([f64::NAN; 3], 0, f64::NAN), [Miss, Miss, Pass]);
    }

    #[test]
    fn the_network_grows_with_the_flows() {
        let [flows, _, rate, buffer, _] = parameters(200, 10);
        assert_eq!((flows.1.as_str(), rate.1.as_str()), ("200", "100000 kbit/s"));
        assert_eq!(buffer.1, "500 packets");
    }
}
