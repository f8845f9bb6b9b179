//! The sixth issue: satellite senders, simulated and on real paths.
//!
//! `cargo xtask accept senders rate cells` does only these parts. Lines that take long are measured shorter without `--long`, and say so.

mod cells;
mod cpu;
mod figures;
mod live;
mod probes;
mod proofs;
mod rate;
mod table;

use super::List;
use super::place::Place;

/// Parts of the list, by what stands on the command line: tests by their names (1, 2, 3, 4, 6, 8, 9), cells of other simulators (1), sweeps (2, 3), explicit
/// rate simulated (5), transfers over emulated links (6: case L, case W, probes, all kinds) and what a sender costs (7).
const PARTS: [&str; 9] = ["proofs", "cells", "figures", "rate", "case-l", "case-w", "probes", "mixed", "cpu"];

/// Prints the list, or the parts of it that `words` name; true when every line was met.
pub(super) fn check(words: &[String]) -> Result<bool, String> {
    let (place, parts) = Place::of("senders", words, &PARTS)?;
    let mut list = List::new();
    for part in parts {
        match part {
            "proofs" => proofs::check(&place, &mut list),
            "figures" => figures::check(&place, &mut list),
            "cells" => cells::check(&place, &mut list),
            "rate" => rate::check(&place, &mut list),
            "case-l" => live::short(&place, &mut list),
            "case-w" => live::long(&place, &mut list),
            "probes" => probes::check(&place, &mut list),
            "mixed" => live::mixed(&place, &mut list),
            _ => cpu::check(&place, &mut list),
        }
    }
    Ok(list.met)
}
