//! Requirements on flows with reserved rates, simulated: datagrams beside TCP that fills the link, in the
//! scenario `rate-udp`; TCP with reserved rates; rates asked for in both directions; classes.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod rate_support;

use bentpipe_base::trace::{Event, Mask, Sink};
use bentpipe_base::{Instant, NodeId, Proto};
use bentpipe_report::{FlowReport, RateReport, Report};
use bentpipe_scenario::Scenario;
use bentpipe_sim::run;
use rate_support::{Watches, loaded, metric, scenario, watched};

fn rate_udp(sets: &[(&str, &str)]) -> Scenario {
    scenario("rate-udp", sets, 1)
}

fn flow<'a>(report: &'a Report, name: &str) -> &'a FlowReport {
    report.flows.iter().find(|flow| *flow.name == *name).unwrap()
}

fn rate_of<'a>(report: &'a Report, name: &str) -> &'a RateReport {
    flow(report, name).rate().unwrap_or_else(|| panic!("{name} asks for no rate"))
}

fn lost(report: &Report, name: &str) -> u64 {
    flow(report, name).udp().unwrap().lost
}

/// Datagrams with signalling that entered a link: for each whether it has data.
#[derive(Default)]
struct Signals {
    link: NodeId,
    have_data: Vec<bool>,
}

impl Watches for Signals {
    fn watch(&mut self, link: NodeId) {
        self.link = link;
    }
}

impl Sink for Signals {
    fn mask(&self) -> Mask {
        Mask::PACKETS
    }

    fn event(&mut self, _: Instant, node: NodeId, event: &Event<'_>) {
        if let Event::Sent(packet) = *event
            && (node, packet.proto) == (self.link, Proto::Udp)
            && packet.signal.is_some()
        {
            self.have_data.push(packet.body.len > 0 || packet.datagram().is_some());
        }
    }
}

/// Reserved rates are kept however much TCP wants, the lowest priority is refused first and preempted second.
#[test]
fn reserved_rates_are_kept_and_the_lowest_priority_gives_way() {
    for ip in ["4", "6"] {
        let (report, signals) = watched::<Signals>(&rate_udp(&[("ip", ip)]), "bottleneck");
        let state = |name: &str| rate_of(&report, name).state.as_str();
        // film and alarm keep their rates, of payload
        for (name, payload) in [("film", 2e6), ("alarm", 3e6)] {
            let goodput = metric(&report, &format!("goodput[{name}]"));
            assert!((goodput / payload - 1.0).abs() < 0.002, "IPv{ip}: {name} gets {goodput}");
            assert_eq!((lost(&report, name), state(name)), (0, "granted"), "IPv{ip}: {name}");
        }
        assert_eq!((lost(&report, "voice"), state("voice")), (0, "granted"), "IPv{ip}");
        let spoken = flow(&report, "voice").udp().unwrap();
        assert!(spoken.sent > 400 && spoken.received == spoken.sent, "IPv{ip}: {}", spoken.sent);
        // the trailer comes when there is no room, the series gives way to the alarm
        assert_eq!((state("trailer"), flow(&report, "trailer").udp().unwrap().sent), ("refused", 0));
        assert_eq!(state("series"), "refused", "IPv{ip}");
        let changes = &rate_of(&report, "series").changes;
        assert_eq!(changes.len(), 1, "IPv{ip}: {changes:?}");
        let series = flow(&report, "series").udp().unwrap();
        assert!(
            (series.sent as f64 / 250.0 - 16.0).abs() < 0.2,
            "IPv{ip}: from 4 s to 20 s, {}",
            series.sent
        );
        assert_eq!((series.lost, series.received), (0, series.sent), "IPv{ip}");
        assert_eq!([metric(&report, "refused"), metric(&report, "preempted")].map(|n| n as u64), [1, 1]);
        // all but nothing is reserved after the end: each has given its rate back
        assert!(metric(&report, "reserved[edge]") < 0.5, "IPv{ip}");
        // what they do not use is lent: the link is full
        assert!(metric(&report, "carried[bottleneck]") > 9.8e6, "IPv{ip}");
        // no structure is in a datagram of an application
        assert!(signals.have_data.iter().all(|has_data| !has_data) && signals.have_data.len() > 8);
    }
}

/// Without signalling the same calls lose packets, and all of them are sent.
#[test]
fn without_signalling_the_calls_lose_packets() {
    let report = run(&rate_udp(&[("encoding", "off"), ("discipline", "fifo")]));
    assert!(flow(&report, "film").rate().is_none() && report.flow_routers[0].requests == 0);
    assert!(flow(&report, "trailer").udp().unwrap().sent > 7000);
    // which of them does depends on which sends first: they send at the same times
    let losses = ["film", "series", "trailer", "alarm"].map(|call| lost(&report, call));
    assert!(losses.iter().sum::<u64>() > 500, "{losses:?}");
}

/// A reserved flow that was idle waits for the packet in service alone, although TCP fills the queue.
#[test]
fn lent_capacity_is_given_back_within_one_packet_time() {
    let scenario = rate_udp(&[]);
    let report = run(&scenario);
    let delay = flow(&report, "voice").udp().unwrap().delay_ms;
    // one way: 20 ms, its own 200 B on the link and at both ends, and one packet of 1500 B before it
    let (own, other) = (200.0 * 8.0 / 10e6 * 1e3, 1500.0 * 8.0 / 10e6 * 1e3);
    let least = delay.quantiles.min.unwrap();
    assert!((least - 20.0 - own).abs() < 0.05, "{least}");
    let most = delay.quantiles.p99.unwrap();
    assert!(most <= 20.0 + own + other + 0.1, "{most} ms");
    // in a fifo queue it waits for all of them
    let fifo = run(&rate_udp(&[("discipline", "fifo")]));
    let fifo = flow(&fifo, "voice").udp().unwrap().delay_ms.quantiles.p50.unwrap();
    assert!(fifo > 20.0 + 10.0 * other, "{fifo} ms");
}

const PAIR: &str = r#"
schema = 1
title = "two senders"
duration = "20 s"
measure = { from = "5 s", to = "20 s", links = true }

[dumbbell]
pairs = 2
rtt = "40 ms"
rate = "20 Mbit/s"
buffer = "200 packets"
discipline = "flow-priority"
access = { rate = "1 Gbit/s", delay = "0 s", buffer = "10000 packets" }

[[flow_routers]]
name = "there"
link = "bottleneck"
classes = [{ name = "basic", weight = 1 }, { name = "premium", weight = 3, reservable = 0.5 }]
rules = [{ from = "10.55.0.1", class = "premium", guaranteed = "8 Mbit/s", delay = 9 }]

[[flow_routers]]
name = "back"
link = "bottleneck-return"

[host]
encoding = "tia-1039"
window = "4 MiB"

[[flows]]
name = "a"
from = "src1"
to = "dst1"

[[flows]]
name = "b"
from = "src2"
to = "dst2"
"#;

fn pair(edit: (&str, &str)) -> Report {
    assert!(PAIR.contains(edit.0));
    run(&loaded(&PAIR.replacen(edit.0, edit.1, 1), &[], 1))
}

/// 95 % of 20 Mbit/s, 3 : 1.
#[test]
fn classes_divide_by_weight() {
    let report = run(&loaded(PAIR, &[], 1));
    let [a, b] = ["goodput[a]", "goodput[b]"].map(|name| metric(&report, name));
    assert!((a / b - 3.0).abs() < 0.02, "{a} {b}");
    assert!(metric(&report, "carried[bottleneck]") > 0.94 * 20e6);
}

/// A TCP flow with a composite rate: GR, and its part of what is left.
#[test]
fn a_tcp_flow_has_its_guaranteed_rate_and_a_share() {
    let ask = "ask = { available = \"10 Gbit/s\", guaranteed = \"4 Mbit/s\", delay = 9 }";
    let report = pair(("to = \"dst1\"", &format!("to = \"dst1\"\n{ask}")));
    let rate = rate_of(&report, "a");
    assert_eq!((rate.state.as_str(), rate.asked_bps / 1_000_000), ("reduced", 10_004));
    // (19 - 4) * 3 / 4 + 4
    let granted = rate.granted_bps.unwrap() as f64;
    assert!((granted / 15.25e6 - 1.0).abs() < 0.005, "{granted}");
    assert!((metric(&report, "reserved[there]") / 4e6 - 1.0).abs() < 0.003);
    assert_eq!(metric(&report, "drops[bottleneck]") as u64, 0);
}

/// One with a guaranteed rate alone, which the router marks down to what its rule allows.
#[test]
fn a_tcp_flow_gets_no_more_than_its_rule_allows() {
    for (asked, state, got) in [("guaranteed", "granted", 8e6), ("maximum", "granted", 8e6)] {
        let ask = format!("to = \"dst1\"\nask = {{ {asked} = \"12 Mbit/s\" }}");
        let report = pair(("to = \"dst1\"", &ask));
        let rate = rate_of(&report, "a");
        assert_eq!(rate.state, state);
        assert!((rate.granted_bps.unwrap() as f64 / got - 1.0).abs() < 0.003);
        // payload of 1448 in packets of 1500 B, less 16 for structures
        let goodput = metric(&report, "goodput[a]") / got;
        assert!((0.94..0.966).contains(&goodput), "{goodput}");
    }
    // a source without a rule gets none, and goes on as an ordinary TCP
    let report = pair(("to = \"dst2\"", "to = \"dst2\"\nask = { guaranteed = \"1 Mbit/s\" }"));
    assert_eq!((rate_of(&report, "b").state.as_str(), metric(&report, "refused") as u64), ("refused", 1));
    assert!(flow(&report, "b").tcp().unwrap().fallback.is_some());
}

/// One handshake agrees on a rate in each direction; two routers say two rates.
#[test]
fn a_handshake_settles_a_rate_each_way() {
    let text =
        PAIR.replacen("link = \"bottleneck-return\"", "link = \"bottleneck-return\"\nrate = \"6 Mbit/s\"", 1);
    let both = "to = \"dst1\"\nreceiver = { ask = \"10 Gbit/s\" }\napp = { requests = { response = \"2 MB\", request = \"500 kB\" } }";
    let scenario = loaded(&text.replacen("to = \"dst1\"", both, 1), &[], 1);
    let report = run(&scenario);
    let routers = &report.flow_routers;
    assert!(routers.iter().all(|router| router.requests > 0), "{routers:?}");
    // requests go there, responses come back: the sender of the responses was granted 95 % of 6 Mbit/s
    let granted = rate_of(&report, "a").granted_bps.unwrap() as f64;
    assert!((granted / 5.7e6 - 1.0).abs() < 0.003, "{granted}");
    assert!(routers[0].given_bps > 14_000_000, "{routers:?}");
}

/// Who pays is in the report, by rule.
#[test]
fn bytes_are_charged_to_the_payer() {
    let ask = "to = \"dst1\"\nask = { guaranteed = \"4 Mbit/s\", charge = \"receiver\" }";
    let rule =
        ("rules = [{ from = \"10.55.0.1\"", "rules = [{ from = \"10.55.0.3\" }, { from = \"10.55.0.1\"");
    let text = PAIR.replacen("to = \"dst1\"", ask, 1).replacen(rule.0, rule.1, 1);
    let report = run(&loaded(&text, &[], 1));
    let charges = &report.flow_routers[0].charges;
    let payers: Vec<&str> = charges.iter().map(|c| c.payer.as_str()).collect();
    assert_eq!(payers, ["others", "10.55.0.3/32", "10.55.0.1/32"]);
    let rate = |bytes: u64| bytes as f64 * 8.0 / 20.0;
    assert!((rate(charges[1].received_bytes) / 4e6 - 1.0).abs() < 0.02, "{charges:?}");
    assert!(charges[0].sent_bytes > 20_000_000 && charges[2].sent_bytes == 0, "{charges:?}");
}
