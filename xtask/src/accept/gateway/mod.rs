//! The fifth issue: the gateway, live, with the kernel's TCP at both ends.
//!
//! `cargo xtask accept gateway window loss` does only these parts. Lines that take long are measured shorter without `--long`, and say so.

mod cost;
mod death;
mod exact;
mod firewall;
mod flood;
mod hostile;
mod loss;
mod readers;
mod window;

use super::List;
use super::place::Place;
use super::spine::{style, tests_item, whole_run};
use super::tests::Tests;

/// Parts of the list, by what stands on the command line.
const PARTS: [&str; 10] =
    ["window", "loss", "readers", "exact", "death", "cost", "flood", "hostile", "firewall", "tests"];

/// Prints the list, or the parts of it that `words` name; true when every line was met.
pub(super) fn check(words: &[String]) -> Result<bool, String> {
    let (place, parts) = Place::of("gateway", words, &PARTS)?;
    let mut list = List::new();
    for part in parts {
        match part {
            "window" => window::check(&place, &mut list),
            "loss" => loss::check(&place, &mut list),
            "readers" => readers::check(&place, &mut list),
            "exact" => exact::check(&place, &mut list),
            "death" => death::check(&place, &mut list),
            "cost" => cost::check(&place, &mut list),
            "flood" => flood::check(&place, &mut list),
            "hostile" => hostile::check(&place, &mut list),
            "firewall" => firewall::check(&place, &mut list)?,
            _ => tests(&mut list)?,
        }
    }
    Ok(list.met)
}

fn tests(list: &mut List) -> Result<(), String> {
    let run = Tests::run()?;
    let node = run.count(|t| t.program.starts_with("flow_") || t.program.starts_with("table_"));
    list.line(3, &tests_item("the flow and the flow table, tests", node, 20));
    list.line(9, &whole_run(&run));
    style()?.iter().for_each(|item| list.line(9, item));
    Ok(())
}
