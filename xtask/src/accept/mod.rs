//! `accept`: checks the acceptance list of an area and prints one line per item with figure and verdict.
//!
//! `cargo xtask accept gateway window loss` runs only these parts. Without `--long`, measurements that take
//! hours are shortened, and their lines say so.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures programs by the clock")]
#![allow(clippy::unnecessary_wraps, reason = "the checks of all parts have the same signature")]

mod emulation;
mod engine;
mod field;
mod gateway;
mod links;
mod list;
mod papers;
mod rate;
mod reach;
mod senders;
mod setup;
mod speed;
mod table;
mod tests;
mod validation;

use crate::Outcome;
use list::List;
use setup::Setup;

/// A part of a list: its name on the command line, and its check.
type Part = (&'static str, fn(&Setup, &mut List) -> Outcome);

const AREAS: [(&str, &[Part]); 10] = [
    ("engine", &engine::PARTS),
    ("links", &links::PARTS),
    ("emulation", &emulation::PARTS),
    ("gateway", &gateway::PARTS),
    ("senders", &senders::PARTS),
    ("field", &field::PARTS),
    ("rate", &rate::PARTS),
    ("papers", &papers::PARTS),
    ("reach", &reach::PARTS),
    ("speed", &speed::PARTS),
];

/// Checks the area named first, or only the parts named after it.
pub(crate) fn command(args: &[String]) -> Outcome {
    let Some((area, words)) = args.split_first() else { return Err(usage()) };
    let (_, parts) = AREAS.iter().find(|(name, _)| name == area).ok_or_else(usage)?;
    let (options, named): (Vec<_>, Vec<_>) = words.iter().partition(|w| *w == "--long");
    if let Some(unknown) = named.iter().find(|word| !parts.iter().any(|(name, _)| name == *word)) {
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        return Err(format!("accept {area}: no part `{unknown}`; there are {}", names.join(", ")));
    }
    let setup = Setup::new(!options.is_empty());
    let mut list = List::default();
    for (name, check) in parts.iter().filter(|(name, _)| named.is_empty() || named.iter().any(|w| w == name))
    {
        list.part = name;
        if let Err(why) = check(&setup, &mut list) {
            list.miss(format!("{name}: could not be measured"), &why);
        }
    }
    if list.missed == 0 { Ok(()) } else { Err(format!("accept: {} lines were not met", list.missed)) }
}

fn usage() -> String {
    let areas = AREAS.map(|(name, parts)| {
        let parts: Vec<&str> = parts.iter().map(|(part, _)| *part).collect();
        format!("\n  {name:<10} {}", parts.join(", "))
    });
    let areas = areas.concat();
    format!("usage: cargo xtask accept AREA [PARTS] [--long], with the areas and their parts{areas}")
}
