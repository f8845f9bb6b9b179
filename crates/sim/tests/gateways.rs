//! Gateways in simulated networks: their positions, and that they do not affect anything else.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

#[path = "../../scenario/tests/support/mod.rs"]
mod support;

use bentpipe_base::{Addr, Body, Duration, Instant};
use bentpipe_report::{Metric, Report};
use bentpipe_scenario::Scenario;
use bentpipe_sim::{Record, RecordOptions, reference, run, run_recorded};
use std::path::Path;
use support::{DUMBBELL, GRAPH, SATELLITE, edit, loads};

fn file(name: &str, sets: &[(&str, &str)]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"));
    loads(&std::fs::read_to_string(path).unwrap(), sets)
}

/// Gateways on these directions that pass everything and do not shape.
fn passing(text: &str, before: &[&str]) -> String {
    let gateway = |link: &&str| {
        format!(
            "\n[[gateways]]\nname = \"at-{link}\"\nlink = \"{link}\"\nrate = \"none\"\naccelerate = false\n"
        )
    };
    text.to_owned() + &before.iter().map(gateway).collect::<String>()
}

/// Flows and links of a report: everything that a gateway could affect.
fn moved(report: &Report) -> String {
    let value = serde_json::to_value(report).unwrap();
    format!("{}{}", value["flows"], value["links"])
}

/// Beside a host, beside a router, at both ends of a link, on the path of the data and of the ACKs: a
/// gateway that passes everything does not change arrival times.
#[test]
fn a_gateway_that_passes_everything_changes_nothing() {
    let graph = edit(GRAPH, "duration = \"100 s\"", "duration = \"20 s\"");
    let mesh = edit(SATELLITE, "duration = \"100 s\"", "duration = \"20 s\"");
    let dumbbell = edit(DUMBBELL, "duration = \"100 s\"", "duration = \"20 s\"");
    let cases: [(&str, &[&str]); 6] = [
        (&dumbbell, &["bottleneck"]),
        (&dumbbell, &["bottleneck", "bottleneck-return"]),
        (&dumbbell, &["src1-access", "dst2-access-return", "dst1-access"]),
        (&graph, &["r12"]),
        (&graph, &["r12-return", "a1", "b2-return"]),
        (&mesh, &["station1-uplink", "station3-downlink"]),
    ];
    for (text, before) in cases {
        let (without, with) = (run(&loads(text, &[])), run(&loads(&passing(text, before), &[])));
        assert!(without.total.goodput_bps > 0.0 && without.gateways.is_empty());
        assert_eq!(moved(&with), moved(&without), "{before:?}");
        let names: Vec<String> = with.gateways.iter().map(|g| g.name.clone()).collect();
        assert_eq!(names, before.iter().map(|link| format!("at-{link}")).collect::<Vec<_>>());
    }
}

/// A packet that only the driver can parse passes in both directions.
#[test]
fn a_live_network_passes_through_its_gateways() {
    let scenario = loads(&passing(DUMBBELL, &["bottleneck"]), &[("loss", "0")]);
    let mut net = bentpipe_sim::build::build_open(&scenario);
    let host = |name: &str| scenario.nodes.iter().position(|n| *n.name == *name).unwrap();
    let (src, dst) = (host("src1"), host("dst2"));
    for (from, to, handle) in [(src, dst, 7), (dst, src, 8)] {
        let mut packet = bentpipe_base::Pkt::default();
        packet.set_opaque(0, Body::kept(handle, 0, 1500), 0);
        packet.dst = Addr(to as u32);
        net.sim.inject(net.ports[from].unwrap(), packet);
        net.sim.run_until(bentpipe_base::Instant(net.sim.now().0 + 2_000_000_000), |_| false);
        let (_, at, arrived) = net.sim.take_arrived().expect("it has arrived");
        assert_eq!((Some(at), arrived.body.slot()), (net.ports[to], handle));
        assert!(net.sim.take_arrived().is_none());
    }
}

/// The course of the first seconds of the paper's test bed.
fn recorded(sets: &[(&str, &str)]) -> Record {
    let mut scenario = file("supercharger", sets);
    (scenario.duration, scenario.measure) = (Duration::from_secs(3), None);
    run_recorded(&scenario, &RecordOptions::default(), |_| None).1
}

/// Figure 9 of TCP-SuperCharger: the receiver announces its 64 KB throughout, while the sender is shown what
/// the hop needs.
#[test]
fn the_window_that_the_receiver_announces_is_recorded_beside_the_one_shown() {
    let record = recorded(&[]);
    let last = |flow: usize, key: &str| record.flows[flow].column(key).unwrap().last().copied().unwrap();
    assert_eq!(last(0, "announced_window_bytes") as u64, 65_535);
    assert!(last(0, "receive_window_bytes") > 2.9e6, "{}", last(0, "receive_window_bytes"));
    assert_eq!(
        last(1, "announced_window_bytes") as u64,
        last(1, "receive_window_bytes") as u64,
        "no gateway"
    );
}

/// Over WINDS every round trip of slow start finds the channel of the ACKs released, and waits 4.75 s for a
/// new one. A gateway that keeps the channel has a full hop after the round trips that slow start takes.
#[test]
fn keep_alives_of_a_gateway_keep_the_channel_of_the_acks() {
    let goodput = |every: &str| {
        let sets = [("gateway", "on"), ("gateway_keep_alive", every), ("rate", "2 Mbit/s")];
        let mut scenario = file("winds", &sets);
        scenario.duration = Duration::from_secs(60);
        scenario.measure = Some((Instant::ZERO + Duration::from_secs(30), Instant::ZERO + scenario.duration));
        let report = run(&scenario);
        (report.flows[0].goodput_bps / 1e6, report.gateways[0].keep_alives)
    };
    let ((without, none), (with, some)) = (goodput("none"), goodput("0.15 s"));
    assert!(with > 1.8 && without < 0.7 * with, "{with} and {without} Mbit/s");
    assert!(none.is_none() && some.is_some_and(|n| n > 10), "{none:?} {some:?}");
}

/// 655 Mbit/s over one second hold 82 MB, more than the memory for a flow of slower hops.
#[test]
fn the_window_shown_on_a_fast_hop_is_what_it_holds() {
    let record = recorded(&[("rate", "655 Mbit/s")]);
    let shown = record.flows[0].column("receive_window_bytes").unwrap().last().copied().unwrap();
    assert!(shown > 0.99 * 655e6 / 1514.0 * 1460.0 / 8.0, "{shown}");
}

/// W/T, counted with the 54 B of headers of each 1460 B of payload, as in the paper: flows without a
/// gateway follow it within 3 %.
#[test]
fn the_cases_of_table_2_without_a_gateway_follow_the_model() {
    let report = run(&file("supercharger", &[]));
    let carried = |flow: &str| {
        let metric = Metric::parse(&format!("carried[hop-{flow}]")).unwrap();
        metric.of(&report).unwrap().unwrap() / 1e6
    };
    for (flow, window) in
        [("64k", 65_535.0), ("1024k", 1_048_576.0), ("2048k", 2_097_152.0), ("4096k", 4_194_304.0)]
    {
        let model = f64::min(24.0, window * 8e-6 * 1514.0 / 1460.0);
        let ratio = carried(flow) / model;
        assert!((0.97..=1.03).contains(&ratio), "{flow}: {} of {model} Mbit/s", carried(flow));
    }
    let rows: Vec<&str> = report.references.iter().map(|r| r.metric.as_str()).collect();
    let wanted = ["gateway", "64k", "1024k", "2048k", "4096k"].map(|flow| format!("carried[hop-{flow}]"));
    assert_eq!(rows, wanted);
    for row in &report.references[1..] {
        assert!(row.deviation.unwrap().abs() < 0.03, "{row:?}");
        assert!(row.source.contains("table 2") && row.unit == "bit/s", "{row:?}");
    }
    let text = report.to_text();
    for words in ["\ngateway gateway: ", "figure ", "23.67 Mbit/s", "TCP-SuperCharger, table 2: 4096 KB"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_links_carried_is_reported_where_it_was_asked_for() {
    let asked = edit(
        DUMBBELL,
        "duration = \"100 s\"",
        "duration = \"20 s\"\nmeasure = { from = \"5 s\", to = \"15 s\", links = true }",
    );
    let silent = asked.replace(", links = true", "");
    let (asked, silent) = (run(&loads(&asked, &[])), run(&loads(&silent, &[])));
    assert!(silent.links.iter().all(|l| l.carried_bps.is_none()));
    assert!(!silent.to_json().contains("carried") && asked.to_json().contains("\"carried_bps\""));
    // segments of 1000 B with 52 B of headers; the data in flight at both ends of the interval may differ
    // by a window
    let carried = asked.links[0].carried_bps.unwrap();
    let goodput = asked.total.goodput_bps;
    assert!((carried / (goodput * 1052.0 / 1000.0) - 1.0).abs() < 0.05, "{carried} {goodput}");
}

#[test]
fn a_run_with_gateways_is_the_same_bytes_again() {
    for name in ["supercharger", "supercharger-loss"] {
        let scenario = file(name, &[]);
        assert_eq!(run(&scenario).to_json(), run(&scenario).to_json(), "{name}");
    }
}

#[test]
fn references_to_what_a_run_will_not_have_are_refused() {
    let with = |metric: &str, value: &str| {
        loads(
            &format!(
                "{DUMBBELL}\n[[references]]\nmetric = \"{metric}\"\nvalue = \"{value}\"\nsource = \"s\"\n"
            ),
            &[],
        )
    };
    assert!(reference::check(&with("goodput[flow2]", "1 Mbit/s")).is_ok());
    for (metric, value, words) in [
        ("godput", "1 Mbit/s", "unknown metric `godput`: did you mean `goodput`?"),
        ("goodput[flow3]", "1 Mbit/s", "the run has no flow `flow3`"),
        ("repairs[gw]", "3", "the run has no gateway `gw`"),
        ("goodput", "1 s", "`1 s` does not fit `goodput`, which is a rate, as in 1 Mbit/s"),
    ] {
        let scenario = with(metric, value);
        let (spec, fault) = reference::check(&scenario).unwrap_err();
        assert!(spec.metric == metric && fault.to_string().contains(words), "{fault}");
    }
}

/// Number of flows that the gateway passes unchanged in twenty RTTs, and the goodput.
fn passed(keys: &str, receiver: &str) -> (u64, f64) {
    let text = format!(
        "schema = 1
title = \"a sender that may be paced by a model\"
duration = \"12.6 s\"
[[hosts]]
name = \"sender\"
[[hosts]]
name = \"receiver\"
[[links]]
name = \"hop\"
from = \"sender\"
to = \"receiver\"
rate = \"10 Mbit/s\"
delay = \"300 ms\"
buffer = \"750 kB\"
[[gateways]]
name = \"gateway\"
link = \"hop\"
[[flows]]
name = \"f\"
from = \"sender\"
to = \"receiver\"
{keys}
receiver = {{ {receiver} }}
"
    );
    let report = run(&loads(&text, &[]));
    let value = serde_json::to_value(&report).unwrap();
    let passed = &value["gateways"][0]["flows"]["passed"];
    assert!(passed.as_object().unwrap().keys().all(|why| why == "model_based"), "{passed}");
    (passed["model_based"].as_u64().unwrap_or(0), report.total.goodput_bps)
}

#[test]
fn a_sender_that_a_model_paces_is_passed_and_no_other() {
    let modern = "window = { initial = \"65535 B\", max = \"48 MiB\" }";
    for (keys, expected) in [
        ("tcp = \"bbr\"", 1),
        ("tcp = \"bbr3\"", 1),
        ("tcp = \"cubic\"\nstack = \"linux\"", 0),
        ("tcp = \"cubic\"\nstack = \"linux\"\npacing = true", 0),
        ("tcp = \"cubic\"\nstack = \"linux\"\npacing = true\napp = { rate = \"9.5 Mbit/s\" }", 0),
        ("tcp = \"sack\"\nstack = \"linux\"\npacing = true", 0),
    ] {
        assert_eq!(passed(keys, modern).0, expected, "{keys}");
    }
}

#[test]
fn a_window_of_64_kb_limits_bbr_too_and_it_stays_accelerated() {
    let (passed, goodput) = passed("tcp = \"bbr\"", "window = \"65535 B\", window_scale = false");
    assert_eq!(passed, 0);
    assert!(goodput > 4.0 * 65_535.0 * 8.0 / 0.6, "{goodput}");
}
