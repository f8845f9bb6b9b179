//! Parallel connections: Hacker, Noble, Athey, 2004.

use crate::prelude::*;

/// One transfer over several connections compared with a single connection.
pub static SECTION: Section = Section {
    title: "Parallel connections",
    intro: "A transfer over four connections beside one connection of somebody else, on 20 Mbit/s, in `scenarios/parallel.toml`. With a virtual round trip of \
        parts² real ones, N parts carry together what one connection does.",
    pictures: &[],
    tables: &[&RANDOM, &SHARED],
    checks: all,
};

const COLUMNS: &[&str] = &["connections", "parts"];

static RANDOM: CheckTable = CheckTable {
    title: "One of several connections over a single one, random loss",
    columns: COLUMNS,
    expected: "1 / parts",
    intro: "300 ms and a loss of 1e-4, the queue empty: mean goodput of a connection of the transfer over that of the single one. Tolerance 15 %: some sixty losses per run and \
        connection, ten runs.",
};

static SHARED: CheckTable = CheckTable {
    title: "One of several connections over a single one, congestion",
    columns: COLUMNS,
    expected: "",
    intro: "100 ms, and only the queue of 60 packets loses. A queue that overflows hits large windows more often than small ones, so parts end below their share: reported.",
};

fn all() -> Vec<Check> {
    let quantity = Quantity::Mean(Reading::FlowRatio("parallel", "single"));
    let mut checks = Vec::new();
    for (connections, parts, share) in [("1", "1", 1.0), ("4", "1", 1.0), ("4", "4", 0.25)] {
        let job = |sets: &[(&str, &str)]| {
            let common = [("connections", connections), ("parts", parts)];
            Job::new("scenarios/parallel.toml", &[&common[..], sets].concat())
        };
        let labels = [connections, parts];
        let random = job(&[("rtt", "300 ms"), ("loss", "1e-4")]).seeds(10);
        checks.push(Check::new(&RANDOM, &labels, quantity, random, share, Tolerance::Relative(0.15)));
        checks.push(Check::reported(&SHARED, &labels, quantity, job(&[]).seeds(5)));
    }
    checks
}
