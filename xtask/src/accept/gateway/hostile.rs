//! Fuzzing, and bad input (7, 9).

use crate::accept::List;
use crate::accept::place::Place;
use crate::accept::spine::{cargo, last_line, tests_item};
use crate::accept::tests::Tests;
use crate::item::{Item, Verdict};

/// Packages and their fuzzers, each of which runs for half the time.
const FUZZERS: [(&str, &str, &str); 2] = [
    ("bentpipe-wire", "fuzz", "60 s of random packets against the header code"),
    ("bentpipe-accelerate", "fuzz_gateway", "60 s of random conversations through the gateway"),
];
const SECONDS: &str = "60";

pub(super) fn check(_: &Place, list: &mut List) {
    for (package, example, what) in FUZZERS {
        let words = [
            "run",
            "--quiet",
            "--release",
            "--package",
            package,
            "--example",
            example,
            "--",
            "--seconds",
            SECONDS,
        ];
        let (text, ok) = cargo(&words);
        list.line(7, &Item::new(what, last_line(&text), Verdict::of(ok)));
    }
    list.line(9, &bad_input());
}

/// Tests of refused input: gateway files and rules, and what the program says to them on a router.
fn bad_input() -> Item {
    let what = "bad input, missing parts and running twice are refused, tests";
    let programs = ["gateway_file", "gateways", "robust", "gateway"];
    let mut chosen = vec!["--package", "bentpipe-scenario", "--package", "bentpipe-cli"];
    chosen.extend(programs.iter().flat_map(|program| ["--test", program]));
    match Tests::of(&chosen) {
        Ok(run) => {
            let mut item = tests_item(what, run.count(|_| true), 1);
            if !run.skipped.is_empty() {
                item.figure = format!("{}, {} skipped", item.figure, run.skipped.len());
                item.verdict = Verdict::Miss;
            }
            item
        }
        Err(why) => Item::new(what, why.lines().next().unwrap_or_default(), Verdict::Miss),
    }
}
