//! `accept`: the acceptance list of an issue, one line per item with its figure and verdict.

mod emulate;
mod engine;
mod field;
mod gateway;
mod links;
mod place;
mod properties;
mod senders;
mod spine;
mod tests;
mod worlds;

use crate::Outcome;
use crate::item::Verdict;

/// Checks the issue named on the command line.
pub(crate) fn command(args: &[String]) -> Outcome {
    let met = match args {
        [issue] if issue == "spine" => spine::check()?,
        [issue] if issue == "worlds" => worlds::check()?,
        [issue, words @ ..] if issue == "emulate" || issue == "emulation" => emulate::check(words)?,
        [issue, words @ ..] if issue == "gateway" => gateway::check(words)?,
        [issue, words @ ..] if issue == "senders" => senders::check(words)?,
        [issue, words @ ..] if issue == "field" => field::check(words)?,
        [issue, words @ ..] if issue == "engine" => engine::check(words)?,
        [issue] if issue == "links" => links::check()?,
        _ => {
            return Err(
                "usage: cargo xtask accept <issue>, with issue one of: spine, worlds, emulate (or emulation) [PARTS] [--long], engine [PARTS], links, gateway [PARTS] [--long], senders [PARTS] [--long], field [PARTS] [--long]"
                    .to_owned(),
            );
        }
    };
    if met { Ok(()) } else { Err("accept: not everything was met".to_owned()) }
}

/// Prints lines as they come and remembers whether all were met.
struct List {
    met: bool,
}

impl List {
    const fn new() -> Self {
        Self { met: true }
    }

    /// One line: the item's number, what was asked, the figure, the verdict.
    fn line(&mut self, number: u32, item: &crate::item::Item) {
        self.met &= item.verdict == Verdict::Pass;
        println!("{number}  {item}");
    }
}
