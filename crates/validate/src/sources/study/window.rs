//! Experiment 1: the effect of window size and number of connections.

use super::{RTT, T1};
use crate::prelude::*;

/// Least goodput of a link that counts as full, B/s.
const NEARLY_FULL: Tolerance = Tolerance::AtLeast(0.95 * T1 / 8.0);
/// BER that gives a packet loss of 1e-3 with packets of 1040 B.
const BIT_ERRORS: &str = "1.2025e-7";

pub(crate) static WINDOWS: CheckTable = CheckTable {
    title: "Throughput over window",
    columns: &["window"],
    expected: "W / RTT",
    intro: "Larger windows carry more, up to the link: 64 KB in 585 ms are 112 kB/s, or 896 kbit/s. One connection, \
        500 s, in `scenarios/window.toml`. Tolerance 3 %: the formula leaves out serialisation, 1.2 % of the \
        round trip, and the run includes its slow start. A window of 128 packets is larger than the network \
        holds, and must reach 95 % of the link. Bytes are sequence numbers: at that rate all 2^32 are used up in \
        6.5 hours.",
};

pub(crate) static CONNECTIONS: CheckTable = CheckTable {
    title: "Connections with windows of 40 KB",
    columns: &["connections"],
    expected: "n W / RTT",
    intro: "Three windows of 40 KB nearly fill the link: 3 × 40 960 B in 585 ms are 1.68 Mbit/s. A window of 40 KB \
        lets 40 whole packets go, which is what is run and expected. 500 s in `scenarios/window.toml`. Tolerance \
        3 % below the link's rate, as above; three must reach 95 % of it.",
};

pub(super) static MULTIPLE_LOSSES: CheckTable = CheckTable {
    title: "More than one loss in a window",
    columns: &["window, packets"],
    expected: "expected",
    intro: "With larger windows more losses share a window. Share of losses that are followed by another within a \
        round trip, at a packet loss of 1e-3, five runs of 20 000 s in `scenarios/window.toml`, SACK. A loss at \
        a window of W is followed by another with probability 1 − (1 − p)^W, but W packets are in flight only \
        where losses leave the window that large. Judged is the statement: the share for 128 packets is larger \
        than that for 16.",
};

pub(super) fn all() -> Vec<Check> {
    let mut checks: Vec<Check> =
        ["16 segments", "32 segments", "64 segments", "64 KiB", "128 segments"].map(window).into();
    checks.extend(["1", "2", "3", "4"].map(connections));
    for window in ["16", "32", "64", "128"] {
        let share = Quantity::Mean(MULTIPLE);
        checks.push(Check::reported(&MULTIPLE_LOSSES, &[window], share, lossy(window)));
    }
    let (jobs, more) = ([lossy("128"), lossy("16")].concat(), Tolerance::AtLeast(1.0));
    let ratio = Quantity::Ratio(MULTIPLE);
    checks.push(Check::new(&MULTIPLE_LOSSES, &["128 over 16"], ratio, jobs, f64::NAN, more));
    checks
}

const MULTIPLE: Reading = Reading::MultipleLosses(RTT);

fn window(window: &'static str) -> Check {
    let (bytes, label) = match window {
        "64 KiB" => (65_536.0, "64 KB".to_owned()),
        segments => {
            let n = segments.trim_end_matches(" segments");
            (1000.0 * number(n), format!("{n} packets"))
        }
    };
    let tolerance = if window == "128 segments" { NEARLY_FULL } else { Tolerance::Relative(0.03) };
    let job = Job::new("scenarios/window.toml", &[("window", window)]);
    Check::new(&WINDOWS, &[&label], Quantity::GOODPUT, vec![job], bytes / RTT, tolerance)
}

fn connections(n: &'static str) -> Check {
    let job = Job::new("scenarios/window.toml", &[("window", "40 segments"), ("flows", n)]);
    let all = number(n) * 40_000.0 / RTT;
    let tolerance = if all < T1 / 8.0 { Tolerance::Relative(0.03) } else { NEARLY_FULL };
    Check::new(&CONNECTIONS, &[n], Quantity::GOODPUT, vec![job], all, tolerance)
}

fn lossy(window: &str) -> Vec<Job> {
    let sets = [
        ("tcp", "sack"),
        ("window", &*format!("{window} segments")),
        ("ber", BIT_ERRORS),
        ("duration", "20000 s"),
    ];
    Job::new("scenarios/window.toml", &sets).recorded().seeds(5)
}
