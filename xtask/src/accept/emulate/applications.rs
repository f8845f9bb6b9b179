//! What users of applications wait for, simulated and with the kernel.

use crate::accept::List;
use crate::accept::place::{Place, judge};
use lab::agreement::{Pair, medians};
use lab::{Outcome, Rig, Who, stats};

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

/// Medians over the seeds; and the seed on which the two differ most.
fn figure(pairs: &[Pair]) -> (String, bool) {
    let median = |side: fn(&Pair) -> f64| stats::median(&pairs.iter().map(side).collect::<Vec<_>>());
    let all = Pair { simulated: median(|p| p.simulated), emulated: median(|p| p.emulated) };
    let worst = pairs.iter().map(Pair::difference).max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let text = format!(
        "{:.4} and {:.4} s: {:+.2} % ({} seeds, worst {:+.2} %)",
        all.simulated,
        all.emulated,
        all.difference() * 100.0,
        pairs.len(),
        worst.unwrap_or(f64::NAN) * 100.0
    );
    (text, all.difference().abs() <= LIMIT)
}
