use super::*;
use crate::application::Quantiles;
use crate::flow::{FlowKind, TcpReport};
use crate::rate::{RateChangeReport, RateReport};

fn flow(name: &str, goodput_bps: f64, finished_s: Option<f64>, p50: Option<f64>, idle: f64) -> FlowReport {
    let tcp = TcpReport {
        finished_s,
        rtt_ms: Quantiles { p50, ..Quantiles::default() },
        limited_by: LimitedBy { application: idle, ..LimitedBy::default() },
        ..TcpReport::default()
    };
    FlowReport { name: name.into(), goodput_bps, kind: FlowKind::from(tcp), ..FlowReport::default() }
}

fn flow_router(name: &str, reductions: u64, given_bps: u64) -> FlowRouterReport {
    FlowRouterReport { name: name.into(), reductions, given_bps, ..FlowRouterReport::default() }
}

fn report() -> Report {
    let drops = [("queue_full".to_owned(), 3), ("bit_error".to_owned(), 4)].into();
    Report {
        simulated_s: 9.0,
        flows: vec![
            flow("x1", 1e6, Some(3.0), Some(10.0), 0.25),
            flow("x2", 2e6, None, None, 0.75),
            flow("y1", 4e6, Some(5.0), Some(30.0), 0.5),
        ],
        links: vec![LinkReport { name: "b".into(), utilisation: 0.5, drops, ..LinkReport::default() }],
        flow_routers: vec![flow_router("r1", 7, 1_000_000), flow_router("r2", 2, 2_000_000)],
        ..Report::default()
    }
}

fn value(text: &str) -> Option<f64> {
    Metric::parse(text).unwrap().of(&report()).unwrap()
}

#[test]
fn figures_are_read_and_put_together() {
    for (text, wanted) in [
        ("goodput", Some(7e6)),
        ("goodput[x1]", Some(1e6)),
        ("goodput[x*]", Some(3e6)),
        ("finished", None),
        ("finished[y1]", Some(5.0)),
        ("rtt_p50", Some(20.0)),
        ("rtt_p50[x2]", None),
        ("jain", None),
        ("simulated", Some(9.0)),
        ("drops[b]", Some(7.0)),
        ("drops.bit_error", Some(4.0)),
        ("drops[b].burst", Some(0.0)),
        ("limited_by[x*].application", Some(0.5)),
        ("lost", None),
        ("granted", None),
        ("rate_changes[x1]", None),
        ("reductions", Some(9.0)),
        ("given[r2]", Some(2e6)),
    ] {
        assert_eq!(value(text), wanted, "{text}");
    }
}

#[test]
fn granted_rates_are_those_of_the_flows_that_asked() {
    let change = RateChangeReport { at_s: 0.1, bps: 2_000_000, cause: "granted".into() };
    let mut report = report();
    let FlowKind::Tcp(tcp) = &mut report.flows[0].kind else { panic!("the first flow is TCP") };
    tcp.rate = Some(Box::new(RateReport {
        granted_bps: Some(2_000_000),
        changes: vec![change.clone(), change],
        ..RateReport::default()
    }));
    let value = |text: &str| Metric::parse(text).unwrap().of(&report).unwrap();
    assert_eq!((value("granted"), value("granted[x2]")), (Some(2e6), None));
    assert_eq!((value("rate_changes"), value("rate_changes[y1]")), (Some(2.0), None));
}

#[test]
fn slips_are_answered() {
    for (text, words) in [
        ("godput", "did you mean `goodput`?"),
        ("", "help: metrics: goodput"),
        ("goodput[x1", "not closed"),
        ("goodput[]", "name something"),
        ("jain[x1]", "whole run"),
        ("goodput.x", "write it as"),
        ("limited_by", "name the cause"),
    ] {
        let error = Metric::parse(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    for (text, words) in [
        ("goodput[z]", "no flow `z`\nhelp: it has x1, x2, y1"),
        ("goodput[x*z]", "no flow `x*z`"),
        ("drops[c]", "no link `c`"),
        ("drops[b].rain", "no cause `rain`\nhelp: it has queue_full, "),
        ("policed[r]", "no flow router `r`: did you mean `r1`?\nhelp: it has r1, r2"),
        ("limited_by.windo", "no cause `windo`\nhelp: it has handshake, "),
    ] {
        let error = Metric::parse(text).unwrap().of(&report()).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn columns_and_labels_say_the_unit() {
    let metric = Metric::parse("goodput[x1]").unwrap();
    assert_eq!(
        (metric.column().as_str(), metric.label().as_str()),
        ("goodput[x1]_bps", "goodput of x1, bit/s")
    );
}

/// The table in the documentation lists every metric.
#[test]
fn the_documentation_has_them_all() {
    let page = include_str!("../../../docs/src/sweeps.md");
    for row in METRICS {
        let line = format!("| `{}` | {} |", row.name, row.description);
        assert!(page.contains(&line), "docs/src/sweeps.md lacks: {line}");
    }
}
