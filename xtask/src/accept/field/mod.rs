//! The gateway in a bed that was not made for it (`crates/field`): other emulator, kernel hosts, captures matched packet by packet.
//!
//! `cargo xtask accept field modern old` does only these parts. Without `--long` fewer seeds are run, and the lines say how many. `docs/src/field.md` describes bed
//! and metrics.

mod beside;
mod disturbed;
mod modern;
mod old;
mod ratios;
mod readers;
mod run;
mod start;
mod untouched;

use super::List;
use super::place::Place;
use super::spine::tests_item;
use super::tests::Tests;
use run::Bed;

/// Parts of the list, by what stands on the command line. They are lines 1 to 3, 3, 1, 2 and 4, 5, 6, and 7 to 8 of the issue.
const PARTS: [&str; 10] = [
    "modern",
    "start",
    "old",
    "readers",
    "disturbed",
    "matrix",
    "transfers",
    "mixed",
    "senders",
    "untouched",
];

/// Prints the list, or the parts of it that `words` name; true when every line was met.
pub(super) fn check(words: &[String]) -> Result<bool, String> {
    let (place, parts) = Place::of("field", words, &PARTS)?;
    let bed = Bed::build(&place)?;
    let mut list = List::new();
    let all = parts.len() == PARTS.len();
    for part in parts {
        match part {
            "modern" => modern::check(&bed, &mut list),
            "start" => start::check(&bed, &mut list),
            "old" => old::check(&bed, &mut list),
            "readers" => readers::check(&bed, &mut list),
            "disturbed" => disturbed::check(&bed, &mut list),
            "matrix" => ratios::matrix(&bed, &mut list)?,
            "transfers" => ratios::transfers(&bed, &mut list),
            "mixed" => beside::check(&bed, &mut list),
            "senders" => ratios::senders(&bed, &mut list),
            _ => untouched::check(&bed, &mut list),
        }
    }
    if all {
        let run = Tests::of(&["--package", "bentpipe-field"])?;
        let count = run.count(|t| t.program.starts_with("bentpipe_field"));
        list.line(0, &tests_item("what measures is itself tested", count, 25));
    }
    Ok(list.met)
}
