//! Same scenario, seed and version: identical bytes, in debug and release builds and on any machine.
//!
//! The committed fingerprints are those of whole JSON reports. `make test` runs this in both profiles. A
//! change of the engine's behaviour changes them: check the difference, then update them with `BLESS=1
//! cargo test -p bentpipe-sim --test golden`. They are also part of the name under which sweeps store a run
//! (`bentpipe_sim::FINGERPRINTS`), so that old and new runs are never mixed.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

// Provides a scenario with all dynamics and applications.
#[path = "../../scenario/tests/support/mod.rs"]
mod support;

use bentpipe_report::Report;
use bentpipe_scenario::{Source, load};
use std::fmt::Write as _;
use std::path::Path;

/// Scenario file, overrides, seed.
type Run = (&'static str, &'static [(&'static str, &'static str)], u64);

const RUNS: [Run; 19] = [
    ("window", &[("duration", "60 s"), ("ber", "1e-6"), ("tcp", "rate-halving")], 1),
    ("transfer", &[("iw", "4")], 1),
    ("burst", &[("tcp", "sack"), ("delayed_ack", "on")], 2),
    ("sharing", &[("duration", "60 s"), ("loss", "1e-3")], 3),
    ("sharing", &[("duration", "60 s"), ("loss", "1e-2"), ("tcp", "cubic")], 4),
    ("sharing", &[("duration", "60 s"), ("loss", "1e-3"), ("tcp", "vegas"), ("jitter", "0 ms")], 5),
    ("sharing", &[("duration", "30 s"), ("loss", "1e-2"), ("tcp", "reno")], 6),
    ("demo", &[], 1),
    ("faded", &[("ber", "1e-6")], 7),
    ("fairness", &[("loss", "1e-3")], 8),
    ("onboard", &[], 1),
    ("onboard", &[("topology", "star"), ("delayed_ack", "on")], 1),
    ("leo", &[], 9),
    ("dama", &[], 10),
    ("winds", &[], 1),
    ("asymmetry", &[("k", "4")], 11),
    ("supercharger", &[("loss", "1e-4")], 13),
    ("supercharger-loss", &[("loss", "1e-3")], 14),
    (EVERYTHING, &[], 12),
];

/// Stands for the scenario `RICH` of the tests' support code instead of a file.
const EVERYTHING: &str = "everything";

fn report(name: &str, sets: &[(&str, &str)], seed: u64) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"));
    let text =
        if name == EVERYTHING { support::RICH.to_owned() } else { std::fs::read_to_string(&path).unwrap() };
    let scenario =
        load(&Source::new(name, text), &support::sets(sets), Some(seed)).unwrap_or_else(|e| panic!("{e}"));
    bentpipe_sim::run(&scenario).to_json()
}

/// 64-bit FNV-1a, sufficient to detect differences.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn reports_are_the_same_bytes_everywhere() {
    let mut lines = format!("semantics {}\n", bentpipe_sim::SEMANTICS);
    for (name, sets, seed) in RUNS {
        let json = report(name, sets, seed);
        assert_eq!(json, report(name, sets, seed), "a second run of {name} differs from the first");
        let read = Report::from_json(&json).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(json, read.to_json(), "{name}, read and written again");
        let _ = writeln!(lines, "{:016x} {name} {sets:?} seed {seed}", fingerprint(&json));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &lines).unwrap();
    }
    assert_eq!(lines, std::fs::read_to_string(&file).unwrap(), "see the head of this test");
}

/// The fingerprints in the names of stored runs are those checked above.
#[test]
fn other_results_have_other_names_in_a_store() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.txt")).unwrap();
    assert_eq!(bentpipe_sim::FINGERPRINTS, text);
    assert_eq!(text.lines().count(), 1 + RUNS.len());
}

/// Another seed gives another run.
#[test]
fn another_seed_is_another_run() {
    let sets: &[(&str, &str)] = &[("duration", "20 s"), ("loss", "1e-2")];
    assert_ne!(report("sharing", sets, 1), report("sharing", sets, 2));
}

/// An additional flow does not change the random numbers of the others: their start times are the same.
#[test]
fn a_flow_more_shifts_nothing_else() {
    let starts = |flows: &str| {
        let json = report("sharing", &[("duration", "2 s"), ("flows", flows)], 1);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let flows = value["flows"].as_array().unwrap().clone();
        flows.iter().map(|f| f["start_s"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let (few, more) = (starts("5"), starts("6"));
    assert_eq!(few, more[..5]);
}
