//! A user-defined node in a scenario: packets it sees, its part of the report, errors of its keys.

#[path = "../../../examples/mark.rs"]
#[expect(dead_code, reason = "the example's main is the command line")]
mod mark;

use bentpipe::scheme::{RecoveryParams, reno};
use bentpipe::{Registry, Report, Source};

const SCENARIO: &str = r#"
schema = 1
title = "marked"
duration = "20 s"

[[hosts]]
name = "a"
[[hosts]]
name = "b"

[[links]]
name = "up"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "50 ms"
buffer = "100 packets"

[[flows]]
name = "file"
from = "a"
to = "b"
app = { transfer = "146 kB" }
"#;

fn load(node: &str) -> Result<bentpipe::Scenario, String> {
    let registry = Registry::default().with::<mark::Mark>();
    bentpipe::register(registry.with_scheme("mine", RecoveryParams::MODERN, &reno::ALGORITHM));
    let source = Source::new("marked.toml", format!("{SCENARIO}{node}"));
    bentpipe::load_text(&source).map_err(|e| e.to_string())
}

const NODE: &str = "\n[[nodes]]\nname = \"m\"\nkind = \"mark\"\nlink = \"up\"\nevery = 10\n";

#[test]
fn every_tenth_data_segment_is_marked_and_counted() {
    let report = bentpipe::run(&load(NODE).unwrap());
    let node = &report.nodes[0];
    assert_eq!((node.name.as_str(), node.kind.as_str()), ("m", "mark"));
    let sent = report.flows[0].tcp().unwrap().segments_sent;
    assert!(sent >= 100);
    let counters =
        [("data_forward", sent), ("data_backward", 0), ("marked_forward", sent / 10), ("marked_backward", 0)];
    assert_eq!(node.counters, counters.map(|(key, n)| (key.to_owned(), n)).into());
    assert!(report.to_text().contains(&format!("\nmark m: {sent} data forward, ")));
    assert_eq!(Report::from_json(&report.to_json()).unwrap().to_json(), report.to_json());
    assert_eq!(report.flows, bentpipe::run(&load("").unwrap()).flows, "nothing but the marks is different");
}

#[test]
fn a_scheme_of_ones_own_has_a_name() {
    let report = bentpipe::run(&load("\n[host]\ntcp = \"mine\"\n").unwrap());
    assert_eq!(report.flows[0].scheme(), "mine");
    assert!(report.flows[0].tcp().unwrap().finished_s.is_some());
    assert!(load("\n[host]\ntcp = \"mime\"\n").unwrap_err().contains("did you mean `mine`?"));
}

/// `check` prints a scenario that resolves to the same experiment.
#[test]
fn a_scenario_with_a_node_is_written_and_read_again() {
    let scenario = load(NODE).unwrap();
    let source = Source::new("again.toml", bentpipe::to_toml(&scenario));
    assert_eq!(bentpipe::load_text(&source).unwrap(), scenario);
}

#[test]
fn a_wrong_key_is_pointed_at() {
    for (from, to, said) in [
        ("every = 10", "every = 0", "`every` is a whole number from 1 to 1000000"),
        ("every = 10", "evry = 10", "^^^^ did you mean `every`?"),
        ("\"mark\"", "\"marc\"", "^^^^^^ did you mean `mark`?"),
        ("link = \"up\"\n", "", "[[nodes]] has no `link`"),
        ("link = \"up\"", "link = \"down\"", "there is no link `down`"),
    ] {
        let fault = load(&NODE.replace(from, to)).unwrap_err();
        assert!(fault.contains(said), "{fault}");
    }
}
