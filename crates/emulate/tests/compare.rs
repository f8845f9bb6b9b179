//! Comparing two reports.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail")]

use bentpipe_emulate::compare::Comparison;
use bentpipe_report::FlowKind;
use bentpipe_scenario::{Scenario, Source, load};

fn scenario(pairs: u32, loss: &str) -> Scenario {
    let text = format!(
        "schema = 1\ntitle = \"two\"\nduration = \"20 s\"\n[dumbbell]\npairs = {pairs}\nrtt = \"100 ms\"\nrate = \"2 Mbit/s\"\nbuffer = \"20 packets\"\nloss = {loss}\naccess = {{ rate = \"10 Mbit/s\", delay = \"1 ms\", buffer = \"1000 packets\" }}\n[[flows]]\nname = \"f\"\ncount = {pairs}\nfrom = \"src\"\nto = \"dst\"\n"
    );
    load(&Source::from_bytes("t", text.as_bytes()).unwrap(), &[], None).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn equal_reports_differ_by_nothing() {
    let report = bentpipe_sim::run(&scenario(2, "1e-3"));
    let both = Comparison::new(report.clone(), report);
    assert!(both.rows.iter().all(|r| r.difference_percent == Some(0.0)), "{:?}", both.rows);
    let named: Vec<(&str, &str)> = both.rows.iter().map(|r| (r.of.as_str(), r.figure.as_str())).collect();
    for row in [
        ("all flows", "goodput_bps"),
        ("all flows", "jain"),
        ("flow f1", "rtt_median_ms"),
        ("flow f2", "segments_resent"),
        ("link bottleneck", "queue_peak_packets"),
        ("link bottleneck", "dropped_by_packet_loss"),
    ] {
        assert!(named.contains(&row), "{row:?} in {named:?}");
    }
}

#[test]
fn a_difference_is_per_cent_of_the_simulated_one() {
    let (slow, mut fast) = (bentpipe_sim::run(&scenario(1, "0")), bentpipe_sim::run(&scenario(1, "0")));
    fast.total.goodput_bps = slow.total.goodput_bps * 1.1;
    fast.links[0].drops.insert("queue".into(), 7);
    if let FlowKind::Tcp(tcp) = &mut fast.flows[0].kind {
        tcp.rtt_ms.p50 = None;
    }
    let both = Comparison::new(slow, fast);
    let row = |of: &str, figure: &str| both.rows.iter().find(|r| r.of == of && r.figure == figure).unwrap();
    let difference = row("the flow", "goodput_bps").difference_percent.unwrap();
    assert!((difference - 10.0).abs() < 1e-6, "{difference}");
    assert_eq!(row("flow f1", "rtt_median_ms").difference_percent, None);
    let text = both.to_text();
    assert!(text.contains("goodput, Mbit/s") && text.contains("+10.0 %"), "{text}");
    assert!(text.contains("RTT median, ms"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&both.to_json()).unwrap();
    assert!(json["simulated"]["total"]["goodput_bps"].is_f64() && json["emulated"]["flows"].is_array());
    assert_eq!(json["rows"][0]["of"], "the flow");
}

#[test]
fn many_flows_are_taken_together() {
    let report = bentpipe_sim::run(&scenario(12, "1e-3"));
    let resent: u64 = report.flows.iter().map(|f| f.tcp().unwrap().retransmits).sum();
    let both = Comparison::new(report.clone(), report);
    assert!(both.rows.iter().all(|r| !r.of.starts_with("flow ")), "{:?}", both.rows);
    let row = both.rows.iter().find(|r| r.figure == "segments_resent").unwrap();
    assert_eq!(row.simulated, Some(resent as f64));
}
