//! What users of applications wait for, simulated and with the kernel.

use crate::accept::List;
use crate::accept::place::{Place, judge};
use lab::agreement::{Pair, medians};
use lab::{Outcome, Rig, Who};

const FILE: &str = "scenarios/applications.toml";
/// How long a run of it takes, s.
const SECONDS: u64 = 90;
const SEEDS: u64 = 5;
/// Largest difference of a median.
const LIMIT: f64 = 0.02;
/// What the names of the flows of a pattern begin with, and what is timed.
const PATTERNS: [(&str, &str); 5] = [
    ("page", "60 kB asked for again and again: answer"),
    ("typing", "a key 5 times a second: acknowledgment"),
    ("upload", "150 kB sent up again and again: answer"),
    ("file", "20 transfers of 100 kB: completion"),
    ("voice", "datagrams, on and off: one-way delay"),
];

pub(super) fn check(place: &Place, list: &mut List) {
    let seeds = if place.long { SEEDS * 4 } else { SEEDS };
    let measured = place.rig(Who::Ourselves).and_then(|rig| runs(&rig, seeds));
    for (i, (_, what)) in PATTERNS.iter().enumerate() {
        let of_one = measured.as_ref().map_err(Clone::clone);
        let pairs = of_one.map(|runs| runs.iter().map(|run| run[i]).collect::<Vec<_>>());
        list.line(3, &judge(&format!("compare {what}, median within 2 %"), pairs, |p| figure(&p)));
    }
}

fn runs(rig: &Rig, seeds: u64) -> Outcome<Vec<Vec<Pair>>> {
    let patterns = PATTERNS.map(|(name, _)| name);
    let run = |seed: u64| medians(rig, FILE, &[&format!("--seed {seed}")], &patterns, SECONDS);
    (1..=seeds).map(run).collect()
}

/// The seed on which the two differ most.
fn figure(pairs: &[Pair]) -> (String, bool) {
    let worst = pairs.iter().max_by(|a, b| a.difference().abs().total_cmp(&b.difference().abs()));
    let Some(worst) = worst else { return ("no run".to_owned(), false) };
    let text = format!(
        "worst of {} seeds: {:.4} and {:.4} s: {:+.2} %",
        pairs.len(),
        worst.simulated,
        worst.emulated,
        worst.difference() * 100.0
    );
    (text, worst.difference().abs() <= LIMIT)
}
