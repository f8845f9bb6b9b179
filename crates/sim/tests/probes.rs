//! Probe segments in simulated networks: their effect on other flows, and their reports.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

#[path = "../../scenario/tests/support/mod.rs"]
#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use bentpipe_base::{Addr, Body, Dscp, Duration, Instant, Packet};
use bentpipe_scenario::Scenario;
use bentpipe_sim::{build, run};
use std::path::Path;
use support::loads;

fn file(name: &str, sets: &[(&str, &str)]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"));
    loads(&std::fs::read_to_string(path).unwrap(), sets)
}

/// Bytes that `flows` `NewReno` connections transfer through a bottleneck in 300 s, together with
/// low-priority packets at 40 % of its rate or none. There are no random losses, which the additional
/// packets would shift.
fn beside_probes(flows: &str, discipline: &str, probes: bool) -> f64 {
    let sets = [("tcp", "newreno"), ("flows", flows), ("loss", "0"), ("discipline", discipline)];
    let mut net = build::build(&file("swift-goodput", &sets));
    let port = net.sim.add_open_end();
    let bottleneck = net.links.iter().find(|l| *l.0 == *"bottleneck").unwrap().1;
    net.sim.wire(port, bottleneck);
    let end = Instant::ZERO + Duration::from_secs(300);
    let mut at = Instant::ZERO;
    while probes && at < end {
        net.sim.run_until(at, |_| false);
        let mut packet = Packet { dst: Addr(u32::MAX), dscp: Dscp::LE, hops: 64, ..Packet::default() };
        packet.body = Body { off: 0, len: 1000 };
        packet.seal();
        net.sim.inject(port, Box::new(packet));
        at += Duration::from_micros(2080);
    }
    net.sim.run_until(end, |_| false);
    let received = |flow: &build::FlowEnds| {
        let host = net.sim.peek_host(flow.to.0).unwrap();
        host.end(flow.to.2, (flow.from.1, flow.from.2)).unwrap().conn.received() as f64
    };
    net.flows.iter().map(received).sum()
}

/// One connection limited by its window, and eleven that almost fill the link, have the same throughput as
/// without probes. If the queue ignores priority, the same packets cost the eleven a third of theirs.
#[test]
fn low_priority_packets_cost_others_less_than_one_percent() {
    for flows in ["1", "11"] {
        let alone = beside_probes(flows, "pushout", false);
        assert!(
            (alone - beside_probes(flows, "threshold", false)).abs() < 1.0,
            "without marks all are alike"
        );
        for discipline in ["pushout", "threshold"] {
            let ratio = beside_probes(flows, discipline, true) / alone;
            assert!((ratio - 1.0).abs() < 0.01, "{flows} {discipline}: {ratio}");
        }
    }
    let ratio = beside_probes("11", "fifo", true) / beside_probes("11", "fifo", false);
    assert!(ratio < 0.8, "fifo: {ratio}");
}

/// One flow of 100 kB over a dumbbell without losses.
fn report(tcp: &str, more: &str, queue: &str) -> serde_json::Value {
    let text = format!(
        "schema = 1\ntitle = \"t\"\nduration = \"60 s\"\nstop = \"finished\"\n\
         [dumbbell]\nrtt = \"550 ms\"\nrate = \"10 Mbit/s\"\nbuffer = \"50 packets\"\n{queue}\n\
         access = {{ rate = \"100 Mbit/s\", delay = \"1 ms\", buffer = \"1000 packets\" }}\n\
         [host]\ntcp = {tcp}\n{more}\n[[flows]]\nname = \"f\"\nfrom = \"src1\"\nto = \"dst1\"\napp = {{ transfer = \"100 kB\" }}\n"
    );
    let report = run(&loads(&text, &[]));
    let mut value = serde_json::to_value(&report).unwrap();
    value["words"] = report.to_text().into();
    value
}

/// If a scheme cannot work as intended, the report says what it does instead and why.
#[test]
fn a_fallback_is_named() {
    const SWIFT: &str = "\"swift-sat\"";
    let of = |tcp, more, queue| report(tcp, more, queue)["flows"][0]["probes"].clone();
    let fine = of(SWIFT, "", "discipline = \"pushout\"");
    assert_eq!(
        (fine["known_by"].as_str(), &fine["fallback"], &fine["note"]),
        (Some("option"), &().into(), &().into())
    );
    assert!(fine["sent"].as_u64() > Some(20) && fine["sent"] == fine["acknowledged"], "{fine}");
    let dsack = of(SWIFT, "probe_option = false", "discipline = \"pushout\"");
    assert_eq!((dsack["known_by"].as_str(), &dsack["acknowledged"]), (Some("dsack"), &fine["acknowledged"]));

    let stamps = of(SWIFT, "probe_option = false\nsack = false", "discipline = \"pushout\"");
    assert_eq!((stamps["known_by"].as_str(), stamps["acknowledged"].as_u64()), (Some("timestamps"), Some(0)));
    assert!(stamps["fallback"].as_str().unwrap().contains("slow start if none"), "{stamps}");

    let without = report(SWIFT, "probe_option = false\nsack = false\ntimestamps = false", "");
    let probes = &without["flows"][0]["probes"];
    assert_eq!((probes["known_by"].as_str(), probes["sent"].as_u64()), (Some("none"), Some(0)));
    let fallback = probes["fallback"].as_str().unwrap();
    assert!(
        fallback.starts_with("slow start") && fallback.contains("the ends agreed on neither"),
        "{probes}"
    );
    assert!(without["words"].as_str().unwrap().contains("no probes; slow start"), "{without}");

    assert!(of("\"newreno\"", "", "").is_null());
}

/// Priority is assumed by default if a queue serves probes last; an explicit setting overrides it, with a
/// note.
#[test]
fn priority_is_assumed_where_a_queue_serves_probes_last() {
    let of = |tcp: &str, queue: &str| report(tcp, "", queue)["flows"][0]["probes"].clone();
    for scheme in ["peach", "peach-plus", "swift-sat", "swift-faithful"] {
        let careful = of(&format!("\"{scheme}\""), "");
        assert!(careful["fallback"].as_str().unwrap().contains("a quarter"), "{careful}");
        assert_eq!(
            (careful["sent"].as_u64(), &careful["note"]),
            (Some(0), &().into()),
            "no start, and no loss"
        );
        for discipline in ["pushout", "threshold", "wred"] {
            let fine = of(&format!("\"{scheme}\""), &format!("discipline = \"{discipline}\""));
            assert!(fine["sent"].as_u64() > Some(20) && fine["fallback"].is_null(), "{scheme}: {fine}");
        }
    }
    let told = of("{ scheme = \"swift-sat\", assume_priority = true }", "");
    assert!(told["note"].as_str().unwrap().contains("no queue of this network"), "{told}");
    assert!(told["sent"].as_u64() > Some(20) && told["fallback"].is_null(), "{told}");
    let careful = of("{ scheme = \"swift-sat\", assume_priority = false }", "discipline = \"pushout\"");
    assert_eq!((careful["sent"].as_u64(), &careful["note"]), (Some(0), &().into()), "{careful}");

    // disciplines recognise LE only
    let other = of("{ scheme = \"swift-sat\", probe_dscp = 8 }", "discipline = \"pushout\"");
    assert!(other["note"].as_str().unwrap().contains("code point 8 last"), "{other}");
    assert!(other["fallback"].as_str().unwrap().contains("a quarter"), "{other}");
}

/// The window of a SYN has no scale, so a fast start sends 64 KB at most, and `probe_cap` may be lower. The
/// rest follows in slow start, whatever the receiver's window.
#[test]
fn a_start_that_ended_early_goes_on_in_slow_start() {
    let seconds = |tcp: &str, window: &str| {
        let text = format!(
            "schema = 1\ntitle = \"t\"\nduration = \"200 s\"\nstop = \"finished\"\n\
             [dumbbell]\nrtt = \"550 ms\"\nrate = \"200 Mbit/s\"\nbuffer = \"20000 packets\"\ndiscipline = \"pushout\"\n\
             access = {{ rate = \"1 Gbit/s\", delay = \"1 ms\", buffer = \"100000 packets\" }}\n\
             [host]\ntcp = {tcp}\n{window}\n[[flows]]\nname = \"f\"\nfrom = \"src1\"\nto = \"dst1\"\napp = {{ transfer = \"20 MB\" }}\n"
        );
        run(&loads(&text, &[])).flows[0].tcp().unwrap().finished_s.unwrap()
    };
    for window in ["window = \"64 MiB\"", ""] {
        let sack = seconds("\"sack\"", window);
        for tcp in ["\"peach\"", "\"swift-sat\"", "{ scheme = \"swift-sat\", probe_cap = 16 }"] {
            let swift = seconds(tcp, window);
            // a round trip: how rounds end depends on which segments the receiver acknowledges together
            assert!(swift < sack + 0.55, "{tcp} {window}: {swift} s, sack {sack} s");
        }
    }
}

/// The data-centre protocol of 2020 has the same name.
#[test]
fn swift_is_accepted_with_a_note() {
    let (short, long) = (report("\"swift\"", "", ""), report("\"swift-sat\"", "", ""));
    assert_eq!(short["flows"][0]["finished_s"], long["flows"][0]["finished_s"]);
    assert!(short["words"].as_str().unwrap().contains("not the data-centre protocol of 2020"), "{short}");
    assert!(!long["words"].as_str().unwrap().contains("2020"), "{long}");
}

/// Five connections beside five of `NewReno`, equal RTTs, no losses, windows that together exceed path and
/// queue. Returns their throughput relative to a fair share.
fn share(tcp: &str, discipline: &str, seed: u64) -> f64 {
    let sets = [("loss", "0"), ("ground", "273 ms"), ("window", "128 segments"), ("duration", "300 s")];
    let mut scenario =
        file("swift-fairness", &[&[("tcp_x", tcp), ("discipline", discipline)], &sets[..]].concat());
    scenario.seed = seed;
    let report = run(&scenario);
    let lost = report.links.iter().map(|l| l.drops.get("queue_full").copied().unwrap_or(0));
    assert!(lost.sum::<u64>() > 100, "it is congested");
    let sum = |name: &str| {
        report.flows.iter().filter(|f| f.name.starts_with(name)).map(|f| f.goodput_bps).sum::<f64>()
    };
    2.0 * sum("x") / (sum("x") + sum("y"))
}

/// Ten seeds that were not used for tuning. Within 15 % of a fair share, whether or not probes are served
/// last; the paper's Swift takes one and a half times its fair share.
#[test]
fn gated_swift_takes_a_fair_share_of_a_congested_link() {
    for discipline in ["pushout", "fifo"] {
        let shares: Vec<f64> = (5001..=5010).map(|seed| share("swift-sat", discipline, seed)).collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((mean - 1.0).abs() < 0.15, "{discipline}: {mean}, {shares:?}");
        assert!(share("swift-faithful", discipline, 5001) > 1.3, "{discipline}");
    }
}
