//! The board for Grafana shows what gateways and links export, by the names and labels that they have.

use bentpipe_accelerate::status::{Comparison, GatewayCounters, Groups, Status, WindowStats, metrics};
use bentpipe_live::control::{FlowState, LinkState, State};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const BOARD: &str = include_str!("../../../packaging/grafana/bentpipe.json");

/// Names of metrics, each with the names of its labels.
type Exported = BTreeMap<String, BTreeSet<String>>;

/// Everything that a gateway and a link may export: all that is optional is there.
fn exported() -> Exported {
    let some = || vec![("x".to_owned(), 1)];
    let figures = GatewayCounters {
        passing_why: some(),
        not_forwarded: some(),
        port_drops: some(),
        data_path: some(),
        windows: vec![WindowStats { window_bytes: 65_535, ..WindowStats::default() }],
        ..GatewayCounters::default()
    };
    let gain = Comparison { ratio: Some(2.0), interval: Some((1.5, 2.5)), ..Groups::default().compare() };
    let status = Status { rate_bps: Some(1), figures, sample: Some(gain), ..Status::default() };
    let link = LinkState {
        rate_bps: Some(1),
        fade_db: Some(1.0),
        limit_packets: Some(1),
        limit_bytes: Some(1),
        drops: some(),
        ..LinkState::default()
    };
    let mut state = State { links: vec![link], flows: vec![FlowState::default()], ..State::default() };
    state.timing.p50_us = Some(1.0);
    let mut all = Exported::new();
    for line in [metrics(&status), bentpipe_emulate::metrics::metrics(&state)].iter().flat_map(|t| t.lines())
    {
        if let Some((name, rest)) = line.split_once('{').filter(|_| !line.starts_with('#')) {
            let labels = rest.split('}').next().unwrap_or_default().split(',');
            let labels = labels.filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()));
            all.entry(name.to_owned()).or_default().extend(labels);
        }
    }
    all
}

/// The metrics in an expression.
fn named(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("bentpipe_"))
}

#[test]
fn every_metric_and_label_of_the_board_is_exported() {
    let (all, board): (_, Value) = (exported(), serde_json::from_str(BOARD).expect("JSON"));
    let mut shown = BTreeSet::new();
    let panels = board["panels"].as_array().expect("panels");
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten()) {
        let expression = target["expr"].as_str().expect("an expression");
        let metrics: Vec<&str> = named(expression).collect();
        assert_eq!(metrics.len(), 1, "{expression}");
        let labels = all.get(metrics[0]).unwrap_or_else(|| panic!("{expression}: not exported"));
        let legend = target["legendFormat"].as_str().expect("a legend");
        for label in legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()) {
            assert!(labels.contains(label), "{expression}: {label} is none of {labels:?}");
        }
        let own = if metrics[0].starts_with("bentpipe_link_") { "session" } else { "gateway" };
        assert!(expression.contains(&format!("{own}=~\"${own}\"")), "{expression}");
        shown.insert(metrics[0]);
    }
    for variable in board["templating"]["list"].as_array().expect("variables") {
        let query = variable["definition"].as_str().unwrap_or_default();
        assert!(named(query).all(|metric| all.contains_key(metric)), "{query}");
    }
    assert!(panels.len() > 15 && shown.len() > 25, "{} panels, {} metrics", panels.len(), shown.len());
}

/// Panels do not lie on each other, and each has a number of its own.
#[test]
fn panels_have_places_of_their_own() {
    let board: Value = serde_json::from_str(BOARD).expect("JSON");
    let mut taken = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in board["panels"].as_array().expect("panels") {
        assert!(ids.insert(panel["id"].as_u64()), "{}", panel["title"]);
        let at = |key: &str| panel["gridPos"][key].as_u64().expect("a place");
        assert!(at("x") + at("w") <= 24, "{}", panel["title"]);
        for (x, y) in
            (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y)))
        {
            assert!(taken.insert((x, y)), "{} lies on another panel", panel["title"]);
        }
    }
}
