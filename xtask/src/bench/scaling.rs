//! CPU cost of a data packet in the simplest network, and cost per flow and packet with many flows:
//! 0.5 Mbit/s and 2.5 packets of buffer for each flow.

use super::Bench;
use super::measure::Cost;
use crate::Outcome;
use crate::item::Item;
use lab::stats::median;

/// A number of flows, with duration and number of runs. Small runs need repetition to use measurable CPU
/// time; large ones are limited by elapsed time.
struct Step {
    flows: u32,
    duration_s: u32,
    runs: usize,
}

const STEPS: [Step; 4] = [
    Step { flows: 20, duration_s: 2000, runs: 5 },
    Step { flows: 200, duration_s: 200, runs: 5 },
    Step { flows: 2000, duration_s: 60, runs: 1 },
    Step { flows: 10_000, duration_s: 40, runs: 1 },
];

/// Largest CPU time per packet relative to that with 20 flows.
const GROWTH: [(u32, f64); 2] = [(2000, 1.5), (10_000, 2.0)];
/// Largest peak memory per flow, bytes.
const BYTES_PER_FLOW: f64 = 25_000.0;
/// Runs of the simplest network, and the limit of the CPU time per data packet in it, ns, including both TCP
/// ends and the acknowledgment.
const SIMPLEST: (usize, f64) = (5, 300.0);

/// The simplest network: two hosts, one link, one Reno connection.
pub(super) fn simplest(bench: &Bench) -> Outcome<Item> {
    let mut ns = Vec::new();
    for _ in 0..SIMPLEST.0 {
        let (cost, report) = bench.simulate::<&str>("bench/spine.toml", &[])?;
        ns.push(cost.cpu_s * 1e9 / report.segments as f64);
    }
    Ok(verdict(median(&ns)))
}

fn verdict(ns: f64) -> Item {
    let what = format!("CPU per data packet, two hosts and one link, at most {} ns", SIMPLEST.1);
    Item::new(what, format!("{ns:.0} ns"), ns <= SIMPLEST.1)
}

struct Figures {
    flows: u32,
    ns_per_packet: f64,
    bytes_per_flow: f64,
}

pub(super) fn items(bench: &Bench) -> Outcome<Vec<Item>> {
    println!();
    println!("{:>6} {:>9} {:>10} {:>10} {:>14}", "flows", "packets", "CPU", "ns/packet", "bytes per flow");
    // peak memory of a run with one flow: the fixed part
    let floor_kb = run(bench, 1, 40)?.0.peak_kb;
    let figures = STEPS.iter().map(|s| step(bench, s, floor_kb)).collect::<Outcome<Vec<_>>>()?;
    Ok(verdicts(&figures))
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

fn run(bench: &Bench, flows: u32, duration_s: u32) -> Outcome<(Cost, u64)> {
    let (cost, report) = bench.simulate("bench/many.toml", &parameters(flows, duration_s))?;
    Ok((cost, report.segments))
}

fn step(bench: &Bench, step: &Step, floor_kb: u64) -> Outcome<Figures> {
    let (mut cpu, mut peak_kb, mut packets) = (Vec::new(), 0, 0);
    for _ in 0..step.runs {
        let (cost, segments) = run(bench, step.flows, step.duration_s)?;
        cpu.push(cost.cpu_s);
        peak_kb = peak_kb.max(cost.peak_kb);
        packets = segments;
    }
    let cpu = median(&cpu);
    let ns_per_packet = cpu * 1e9 / packets as f64;
    let bytes_per_flow = peak_kb.saturating_sub(floor_kb) as f64 * 1024.0 / f64::from(step.flows - 1);
    println!("{:>6} {packets:>9} {cpu:>8.3} s {ns_per_packet:>10.0} {bytes_per_flow:>14.0}", step.flows);
    Ok(Figures { flows: step.flows, ns_per_packet, bytes_per_flow })
}

fn verdicts(figures: &[Figures]) -> Vec<Item> {
    let per_packet =
        |flows: u32| figures.iter().find(|f| f.flows == flows).map_or(f64::NAN, |f| f.ns_per_packet);
    let mut items = Vec::new();
    for (flows, limit) in GROWTH {
        let growth = per_packet(flows) / per_packet(20);
        let figure = format!("{growth:.2} times ({:.0} ns, {:.0} ns)", per_packet(20), per_packet(flows));
        let what = format!("CPU per packet, {flows} flows to 20, at most {limit} times");
        items.push(Item::new(what, figure, growth <= limit));
    }
    // With few flows the program itself determines the peak.
    let many = figures.iter().filter(|f| f.flows >= 2000);
    let worst = many.max_by(|a, b| a.bytes_per_flow.total_cmp(&b.bytes_per_flow));
    if let Some(Figures { flows, bytes_per_flow, .. }) = worst {
        let figure = format!("{:.1} KB, with {flows} flows", bytes_per_flow / 1e3);
        let what = format!("memory per flow at most {} KB", BYTES_PER_FLOW / 1e3);
        items.push(Item::new(what, figure, *bytes_per_flow <= BYTES_PER_FLOW));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Verdict;

    fn verdicts_of(ns: [f64; 4], bytes: f64) -> Vec<Verdict> {
        let figures: Vec<Figures> = STEPS
            .iter()
            .zip(ns)
            .map(|(s, ns_per_packet)| Figures { flows: s.flows, ns_per_packet, bytes_per_flow: bytes })
            .collect();
        verdicts(&figures).into_iter().map(|i| i.verdict).collect()
    }

    #[test]
    fn the_limit_is_a_limit() {
        assert_eq!(verdict(299.0).verdict, Verdict::Pass);
        assert_eq!(verdict(301.0).verdict, Verdict::Miss);
        assert_eq!(verdict(f64::NAN).verdict, Verdict::Miss);
    }

    #[test]
    fn limits_are_limits() {
        use Verdict::{Miss, Pass};
        assert_eq!(verdicts_of([100.0, 100.0, 149.0, 199.0], 24_999.0), [Pass, Pass, Pass]);
        assert_eq!(verdicts_of([100.0, 100.0, 151.0, 199.0], 24_999.0), [Miss, Pass, Pass]);
        assert_eq!(verdicts_of([100.0, 100.0, 149.0, 201.0], 25_001.0), [Pass, Miss, Miss]);
        assert_eq!(verdicts_of([0.0, 0.0, 0.0, 0.0], f64::NAN), [Miss, Miss, Miss]);
    }

    #[test]
    fn the_network_grows_with_the_flows() {
        let [flows, _, rate, buffer, _] = parameters(200, 10);
        assert_eq!((flows.1.as_str(), rate.1.as_str()), ("200", "100000 kbit/s"));
        assert_eq!(buffer.1, "500 packets");
    }
}
