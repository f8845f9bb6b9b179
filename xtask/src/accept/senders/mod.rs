//! The sixth issue: satellite senders, simulated and on real paths.
//!
//! `cargo xtask accept senders rate cells` does only these parts. Lines that take long are measured shorter without `--long`, and say so.

mod cells;
mod cpu;
mod live;
mod rate;

use super::List;
use super::place::Place;

/// Parts of the list, by what stands on the command line.
const PARTS: [&str; 4] = ["cells", "rate", "live", "cpu"];

/// Prints the list, or the parts of it that `words` name; true when every line was met.
pub(super) fn check(words: &[String]) -> Result<bool, String> {
    let (place, parts) = Place::of("senders", words, &PARTS)?;
    let mut list = List::new();
    for part in parts {
        match part {
            "cells" => cells::check(&place, &mut list),
            "rate" => rate::check(&place, &mut list),
            "live" => live::check(&place, &mut list),
            _ => cpu::check(&place, &mut list),
        }
    }
    Ok(list.met)
}
