//! The fourth issue: real programs over a live link.
//!
//! Everything is measured from outside, by programs that know nothing of us. Lines that take long are measured shorter without `--long`, and say so.
//! `cargo xtask accept emulate truth users` does only these parts.

mod agreement;
mod applications;
mod kernel;
mod lasting;
mod truth;
mod users;

use super::List;
use super::place::Place;
use super::spine::{cargo, style, tests_item, whole_run};
use super::tests::Tests;
use crate::bench;
use crate::item::{Item, Verdict};

/// Parts of the list, by what stands on the command line.
const PARTS: [&str; 9] =
    ["truth", "speed", "agreement", "applications", "kernel", "users", "lasting", "engine", "tests"];

/// Prints the list, or the parts of it that `words` name; true when every line was met.
pub(super) fn check(words: &[String]) -> Result<bool, String> {
    let (place, parts) = Place::of("emulate", words, &PARTS)?;
    let mut list = List::new();
    for part in parts {
        match part {
            "truth" => truth::check(&place, &mut list),
            "speed" => bench::live::items()?.iter().for_each(|item| list.line(2, item)),
            "agreement" => agreement::check(&place, &mut list),
            "applications" => applications::check(&place, &mut list),
            "kernel" => kernel::check(&place, &mut list),
            "users" => users::check(&place, &mut list),
            "lasting" => lasting::check(&place, &mut list),
            "engine" => list.line(7, &engine()),
            _ => tests(&mut list)?,
        }
    }
    Ok(list.met)
}

/// The engine against the kernel's TCP with as many bytes as the issue asks for: in a release build the tests take 20 MB each way.
fn engine() -> Item {
    let test = [
        "test",
        "--release",
        "--package",
        "bentpipe-live",
        "--test",
        "endpoint_kernel",
        "--",
        "--show-output",
    ];
    let (text, ok) = cargo(&test);
    let skipped = text.lines().find(|l| l.starts_with("SKIPPED "));
    // the last: the program runs itself again as an ordinary user, which has a result of its own
    let mut results = text.lines().filter_map(|l| l.strip_prefix("test result: "));
    let result = results.next_back().unwrap_or("no test ran");
    let figure = skipped.unwrap_or(result);
    Item::new(
        "the engine against the kernel's TCP, 20 MB each way",
        figure,
        Verdict::of(ok && skipped.is_none()),
    )
}

fn tests(list: &mut List) -> Result<(), String> {
    let run = Tests::run()?;
    let endpoint = run.count(|t| t.program.starts_with("endpoint"));
    list.line(7, &tests_item("the engine as a real endpoint, tests", endpoint, 4));
    let offload = run.count(|t| t.name.contains("checksum") || t.name.contains("offload"));
    list.line(1, &tests_item("checksums in all combinations, tests", offload, 4));
    list.line(8, &whole_run(&run));
    style()?.iter().for_each(|item| list.line(8, item));
    Ok(())
}
