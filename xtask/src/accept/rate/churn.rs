//! Flows that come and go: one after another, and many at once.

use super::course::lowest_jain;
use super::simulator::{Simulator, drops, named};
use super::{COUNT, PERCENT, SEEDS};
use crate::accept::list::{Bound, List, Outcome, Setup, Unit};
use lab::stats::median;

/// The link, its rate in bit/s, and what the flow router shares out of it.
const LINK: &str = "bottleneck";
const RATE: f64 = 100e6;
const SHARED_OUT: f64 = 0.95;
/// Bits of a full packet.
const PACKET: f64 = 12_000.0;
/// Interval in which the number of flows is steady, s.
const STEADY: (f64, f64) = (50.0, 100.0);
/// Flows before the step of `rate-step`, and how many come.
const STEP: (u64, u64) = (10, 40);
/// Packets that a sender may send at once when it begins.
const FIRST_BURST: f64 = 3.0;

/// Drops, utilisation, and the lowest index of fairness.
type Run = (f64, f64, f64);

const INDEX: Unit = Unit("", 1.0, 4);

pub(super) fn churn(_: &Setup, list: &mut List) -> Outcome {
    let sim = Simulator::build()?;
    for ip in ["4", "6"] {
        come_and_go(&sim, list, ip);
    }
    let off = sim.run("rate-churn", &[("encoding", "off"), ("tcp", "cubic")], 1).and_then(|report| {
        let link = named(&report, "links", LINK)?;
        Ok((drops(link)?, link["carried_bps"].as_f64().ok_or("no carried_bps in the report")? / RATE))
    });
    list.judge("the same, cubic without signalling (reported)", off, |(drops, used)| {
        (format!("{drops} drops, {:.2} %", used * 100.0), true)
    });
    for (rtt, buffer) in [("40 ms", "300 packets"), ("500 ms", "5000 packets")] {
        step(&sim, list, (rtt, buffer));
    }
    Ok(())
}

/// Every instant counts: a flow comes every 0.4 s and one goes, so hardly any time would be left outside of
/// windows of 128 packets and two round trips after them.
fn come_and_go(sim: &Simulator, list: &mut List, ip: &str) {
    let run = |seed: u64| -> Outcome<Run> {
        let report = sim.run("rate-churn", &[("ip", ip)], seed)?;
        let link = named(&report, "links", LINK)?;
        let carried = link["carried_bps"].as_f64().ok_or("no carried_bps in the report")?;
        Ok((drops(link)?, carried / RATE, lowest_jain(&report, STEADY)?))
    };
    let all: Outcome<Vec<_>> = (1..=SEEDS).map(run).collect();
    let of = |figure: &dyn Fn(&[Run]) -> f64| all.as_deref().map(figure).map_err(Clone::clone);
    let sum = of(&|all| all.iter().map(|(drops, _, _)| drops).sum());
    list.figure(
        &format!("50 flows that come and go, IPv{ip}, drops in {SEEDS} seeds"),
        sum,
        Bound::Most(0.0),
        COUNT,
    );
    let least = of(&|all| all.iter().map(|(_, used, _)| *used).fold(f64::INFINITY, f64::min));
    list.figure("the same, utilisation, the least of them", least, Bound::Least(0.93), PERCENT);
    let fair = of(&|all| median(&all.iter().map(|(_, _, index)| *index).collect::<Vec<_>>()));
    let what = "the same, Jain's index of the granted rates, the lowest at any instant, median";
    list.figure(what, fair, Bound::Least(0.99), INDEX);
}

/// A new flow sends at what its request found until it hears, a round trip after its first data, of those
/// that came after it. Those before it have made room for as many as they are themselves: for the others only
/// after their responses. The excess of all is largest if they come within a round trip, and waits in its own
/// queue.
fn longest_queue(rtt_s: f64) -> f64 {
    let sum = |n: u64| (1..=n).map(|i| 1.0 / i as f64).sum::<f64>();
    let (before, more) = STEP;
    // those before give up half of what there is, whatever their number and that of the new ones
    let excess = sum(before + more) - sum(before) - 0.5;
    let bursts = FIRST_BURST * more as f64;
    excess * (SHARED_OUT * RATE * rtt_s / PACKET + bursts) + bursts + (before + more) as f64
}

fn step(sim: &Simulator, list: &mut List, (rtt, buffer): (&str, &str)) {
    let run = |seed: u64| -> Outcome<(f64, f64)> {
        let report = sim.run("rate-step", &[("rtt", rtt), ("buffer", buffer)], seed)?;
        let link = named(&report, "links", LINK)?;
        let peak = link["queue_packets"]["peak"].as_f64().ok_or("no queue in the report")?;
        Ok((drops(link)?, peak))
    };
    let all: Outcome<Vec<_>> = (1..=SEEDS).map(run).collect();
    let what = format!("40 flows come to 10 within 100 ms, and go, {rtt}, {buffer}: drops in {SEEDS} seeds");
    let sum = all.as_deref().map(|all| all.iter().map(|(drops, _)| drops).sum()).map_err(Clone::clone);
    list.figure(&what, sum, Bound::Most(0.0), COUNT);
    let ms: f64 = rtt.trim_end_matches(" ms").parse().unwrap_or(0.0);
    let peak = all.map(|all| all.iter().map(|(_, peak)| *peak).fold(0.0, f64::max));
    let what = "the same, longest queue, beside its bound if they come within one round trip";
    list.figure(what, peak, Bound::Most(longest_queue(ms / 1000.0).round()), COUNT);
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_bound_grows_with_the_round_trip() {
        assert!((longest_queue(0.0) - 298.0).abs() < 1.0, "{}", longest_queue(0.0));
        assert!((longest_queue(0.5) - longest_queue(0.0) - 4236.0).abs() < 1.0);
    }
}
