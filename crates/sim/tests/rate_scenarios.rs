//! Requirements on ends that ask for a rate and on the routers that answer them, simulated: the scenarios
//! `rate-*`, and a trunk that loses most of its rate.
//!
//! Rates and times of the figures are those of Roberts' paper on explicit-rate TCP (TIA-1039).

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod rate_support;

use bentpipe_base::trace::{DropCause, Event, Mask, Sink};
use bentpipe_base::{Instant, NodeId};
use bentpipe_report::{RateReport, Report};
use bentpipe_scenario::Scenario;
use bentpipe_sim::run;
use rate_support::{Watches, loaded, metric, scenario, watched};

/// 30 Mbit/s as the rate field holds it: 512 steps for each power of two, rounded down.
const LAST: u64 = 29_984_000;

fn rate_of(report: &Report, flow: usize) -> &RateReport {
    report.flows[flow].tcp().unwrap().rate.as_ref().unwrap()
}

const fn at(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

/// Shortens a run, and measures from `from` to its end.
fn shortened(mut scenario: Scenario, from: Instant, end: Instant) -> Scenario {
    scenario.duration = end.since(Instant::ZERO);
    scenario.measure = Some((from, end));
    scenario
}

/// What one link direction saw.
#[derive(Default)]
struct Seen {
    link: NodeId,
    /// When data packets entered it, with their lengths on the wire.
    data: Vec<(Instant, u64)>,
    /// When its queue was full.
    drops: Vec<Instant>,
}

impl Watches for Seen {
    fn watch(&mut self, link: NodeId) {
        self.link = link;
    }
}

impl Sink for Seen {
    fn mask(&self) -> Mask {
        Mask::PACKETS
    }

    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>) {
        if node != self.link {
            return;
        }
        match *event {
            Event::Sent(packet) if packet.body.len > 0 => self.data.push((now, packet.wire_len().0)),
            Event::Dropped(_, DropCause::QueueFull) => self.drops.push(now),
            _ => {}
        }
    }
}

/// Figure 1: 100 Mbit/s are asked for, the first router gives 35, the core is silent, the last gives 30.
#[test]
fn a_sender_starts_at_the_lowest_rate_on_its_path() {
    for ip in ["4", "6"] {
        let (report, access) = watched::<Seen>(&scenario("rate-negotiation", &[("ip", ip)], 1), "access");
        let rate = rate_of(&report, 0);
        assert_eq!((rate.encoding.as_str(), rate.asked_bps), ("tia-1039", 100_000_000), "IPv{ip}");
        assert_eq!((rate.granted_bps, rate.state.as_str()), (Some(LAST), "granted"), "IPv{ip}");
        let first = &rate.changes[0];
        assert_eq!((first.bps, first.cause.as_str()), (LAST, "granted"), "IPv{ip}");
        assert!((first.at_s - 0.04).abs() < 0.001, "IPv{ip}: after one round trip, not at {} s", first.at_s);
        let tcp = report.flows[0].tcp().unwrap();
        assert!(tcp.fallback.is_none() && tcp.retransmits == 0, "IPv{ip}");
        // the first round trip of data; the first few packets may leave at once
        let first = access.data[0].0;
        assert!(first < at(42), "IPv{ip}: {first:?}");
        let round: Vec<_> = access.data.iter().filter(|(at, _)| at.since(first).0 < 40_000_000).collect();
        let (from, paced) = (round[5].0, &round[6..]);
        let bits: u64 = paced.iter().map(|(_, bytes)| bytes * 8).sum();
        let bps = bits as f64 / paced.last().unwrap().0.since(from).as_secs_f64();
        assert!(paced.len() > 30, "IPv{ip}: {} packets", round.len());
        assert!((bps / LAST as f64 - 1.0).abs() < 0.03, "IPv{ip}: {bps} bit/s in the first round trip");
        assert!(round.windows(4).all(|w| w[3].0 > w[0].0), "IPv{ip}: a burst");
        for (router, given) in [("first", 35e6), ("last", 30e6)] {
            assert!(metric(&report, &format!("rate_requests[{router}]")) >= 1.0, "IPv{ip}: {router}");
            let now = metric(&report, &format!("given[{router}]"));
            assert!(now > 0.0 && now <= given, "IPv{ip}: {router} gives {now}");
        }
    }
}

/// A sender that asks for no more than there is cannot tell a router that agrees from none.
#[test]
fn a_rate_that_nobody_lowers_is_not_believed() {
    let report = run(&scenario("rate-negotiation", &[("ask", "20 Mbit/s")], 1));
    let rate = rate_of(&report, 0);
    assert_eq!((rate.granted_bps, rate.state.as_str()), (None, "plain"));
    assert!(metric(&report, "policed") < 0.5, "it is no flow with a rate");
    assert_eq!(report.flows[0].tcp().unwrap().fallback.as_ref().map(|f| f.to.as_str()), Some("cubic"));
}

/// Figure 2: 8 MB, 40 ms, 2 % loss both ways. The paper has 1 s instead of 28 s.
#[test]
fn a_transfer_under_loss_takes_what_its_packets_take() {
    let seconds =
        |sets: &[(&str, &str)], seed| metric(&run(&scenario("rate-transfer", sets, seed)), "finished");
    let mut times: Vec<f64> = (1..=5).map(|seed| seconds(&[("ack_loss", "0.02")], seed)).collect();
    times.sort_by(f64::total_cmp);
    assert!(times[2] <= 0.85, "{times:?}");
    let without = seconds(&[("encoding", "off"), ("tcp", "newreno"), ("window", "64 KiB")], 1);
    assert!(without > 15.0 * times[2], "{without} s");
}

#[test]
fn distance_does_not_matter() {
    let scenario = shortened(scenario("rate-fairness", &[], 1), at(10_000), at(30_000));
    let report = run(&scenario);
    let [near, far] = ["goodput[near]", "goodput[far]"].map(|name| metric(&report, name));
    assert!((far / near - 1.0).abs() <= 0.01, "{near} {far}");
    // half of 95 % of the link each, of which headers take less than 5 %
    assert!(near > 0.95 * 0.95 * 50e6 * 0.98, "{near}");
    assert!(metric(&report, "drops[shared]") < 0.5);
}

/// The paper: the network needs no discards to control the rate.
#[test]
fn flows_that_come_and_go_never_overflow_the_queue() {
    for seed in 1..=5 {
        let scenario = shortened(scenario("rate-churn", &[], seed), at(50_000), at(70_000));
        let report = run(&scenario);
        assert!(metric(&report, "drops[bottleneck]") < 0.5, "seed {seed}: {:?}", report.links[0].drops);
        let carried = metric(&report, "carried[bottleneck]") / 100e6;
        assert!(carried >= 0.93, "seed {seed}: {carried}");
        assert!(metric(&report, "reductions[edge]") > 100.0, "seed {seed}");
        // flows that are over have closed
        let over = report.flows.iter().filter(|f| f.name.starts_with('a') && f.start_s < 66.0);
        assert!(over.clone().count() > 20 && over.clone().all(|f| f.tcp_or_zeros().finished_s.is_some()));
    }
}

const TRUNK: &str = r#"
schema = 1
title = "a trunk breaks"
duration = "45 s"
measure = { from = "42 s", to = "45 s", links = true }

[parameters]
rtt = "40 ms"
every = "20 ms"

[dumbbell]
rtt = "$rtt"
rate = "100 Mbit/s"
buffer = "500 packets"
access = { rate = "10 Gbit/s", delay = "0 s", buffer = "100000 packets" }

[[flow_routers]]
name = "edge"
link = "bottleneck"

[host]
encoding = "tia-1039"
window = "16 MiB"

[[flows]]
name = "flow"
count = 50
from = "src1"
to = "dst1"
start = { every = "$every" }

[[timeline]]
at = "40 s"
link = "bottleneck"
rate = "20 Mbit/s"
"#;

/// The paper: when a trunk breaks, all users are told to slow down as far as necessary, and quickly.
#[test]
fn all_flows_slow_down_within_two_round_trips_of_a_break() {
    // flows that start within a round trip of each other know nothing of each other until their first data
    for (rtt_ms, every) in [(40, "20 ms"), (500, "600 ms")] {
        let sets = [("rtt", &*format!("{rtt_ms} ms")), ("every", every)];
        let (report, trunk) = watched::<Seen>(&loaded(TRUNK, &sets, 1), "bottleneck");
        let (broken, settled) = (at(40_000), at(40_000 + 2 * rtt_ms));
        assert!(!trunk.drops.iter().any(|t| *t < broken), "{:?}", trunk.drops.first());
        assert!(trunk.drops.iter().all(|t| *t <= settled), "{:?}", trunk.drops.last());
        for flow in 0..report.flows.len() {
            let rate = rate_of(&report, flow);
            let told = rate.changes.iter().find(|c| c.at_s > 40.0 && c.cause == "reduced").unwrap();
            assert!(told.at_s <= settled.as_secs_f64() + 0.3, "flow {flow} was told at {} s", told.at_s);
        }
        assert!(metric(&report, "reductions[edge]") >= 50.0);
        assert!(metric(&report, "rate_changes") >= 100.0);
        assert!(metric(&report, "granted") <= 20e6, "{}", metric(&report, "granted"));
        let carried = metric(&report, "carried[bottleneck]");
        assert!((0.9..=1.001).contains(&(carried / 20e6)), "{carried}");
    }
}

/// The router knows the rate of a link that fades: nothing is dropped, and what is there is used.
#[test]
fn senders_follow_a_fade() {
    let report = run(&scenario("rate-fade", &[], 1));
    assert!(metric(&report, "drops[bottleneck]") < 0.5, "{:?}", report.links[0].drops);
    // mean rate of the timeline: 6200 Mbit in 180 s
    let share = metric(&report, "goodput") / (6.2e9 / 180.0);
    assert!(share >= 0.85, "{share}");
    for flow in 0..report.flows.len() {
        let rate = rate_of(&report, flow);
        for cause in ["reduced", "raised"] {
            assert!(rate.changes.iter().any(|c| c.cause == cause), "flow {flow} was never {cause}");
        }
    }
    assert!(metric(&report, "reductions[gateway]") >= 16.0);
}

/// A box on some hop clears or maps code points, or translates ports, perhaps while transfers have a rate.
#[test]
fn no_byte_is_lost_where_code_points_or_ports_change() {
    for (what, hop, from, ip) in [
        ("zero", "first", "0 s", "4"),
        ("zero", "middle", "5 s", "4"),
        ("zero", "first-back", "5 s", "6"),
        // data looks like structures then, and is dropped until the sender gives up its rate
        ("map", "access", "5 s", "4"),
        ("map", "last-back", "5 s", "4"),
        ("map", "access", "5 s", "6"),
        ("nat", "first", "0 s", "4"),
        ("nat", "delivery", "0 s", "6"),
    ] {
        let sets = [(what, "true"), ("hop", hop), ("from", from), ("ip", ip), ("long", "3")];
        let report = run(&scenario("rate-middleboxes", &sets, 1));
        assert_eq!(report.flows.len(), 43);
        for flow in &report.flows {
            let size = if flow.name.starts_with("short") { 100_000 } else { 5_000_000 };
            let tcp = flow.tcp().unwrap();
            let delivered = (flow.goodput_bps * report.simulated_s / 8.0).round();
            let found = (tcp.bytes_acked, delivered as u64, tcp.finished_s.is_some());
            assert_eq!(found, (size, size, true), "{what} on {hop} from {from}, IPv{ip}: {}", flow.name);
        }
    }
}

/// A firewall drops SYNs with a structure: that costs the first connection a timeout, and later ones nothing.
#[test]
fn a_host_remembers_where_structures_do_not_pass() {
    for ip in ["4", "6"] {
        let scenario = shortened(scenario("rate-mixed", &[("ip", ip)], 1), at(5_000), at(25_000));
        let report = run(&scenario);
        let handshake = |name: &str| {
            let flow = report.flows.iter().find(|flow| *flow.name == *name).unwrap();
            flow.tcp().unwrap().established_s.unwrap() - flow.start_s
        };
        assert!((1.0..3.2).contains(&handshake("able-guarded")), "IPv{ip}: {}", handshake("able-guarded"));
        for later in ["later1", "later2"] {
            assert!(handshake(later) < 0.2, "IPv{ip}: {later} after {} s", handshake(later));
        }
    }
}

/// A router changes the rates of all flows at nearly the same time; their packets must not gather. If their
/// phases are independent, the mean queue of n such flows stays below sqrt(pi n / 8) packets, what it would
/// be at full load (nD/D/1; the mean height of a Brownian bridge): 4.4 for 50.
#[test]
fn the_packets_of_many_flows_do_not_gather() {
    for seed in 1..=3 {
        let report = run(&scenario("rate-jitter", &[], seed));
        assert!(metric(&report, "drops[bottleneck]") < 0.5, "seed {seed}");
        let mean = metric(&report, "queue_mean[bottleneck]");
        assert!(mean < 4.5, "seed {seed}: {mean} packets on average");
    }
}
