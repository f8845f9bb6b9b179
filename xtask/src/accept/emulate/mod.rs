//! The fourth issue: real programs over a live link.
//!
//! Everything is measured from outside, by programs that know nothing of us. Lines that take long are measured shorter without `--long`, and say so.

mod agreement;
mod lasting;
mod truth;
mod users;

use super::List;
use super::spine::{style, tests_item, whole_run};
use super::tests::Tests;
use crate::item::{Item, Verdict};
use crate::{bench, metadata, program};
use lab::{Outcome, Rig, Who};
use std::path::PathBuf;

/// What every part needs.
struct Place {
    bentpipe: PathBuf,
    /// Take the time that the issue asks for.
    long: bool,
}

impl Place {
    fn rig(&self, who: Who) -> Outcome<Rig> {
        Rig::new(&self.bentpipe, who)
    }
}

/// Prints the whole list; true when every line was met.
pub(super) fn check(long: bool) -> Result<bool, String> {
    for (name, package) in [
        ("iperf3", "iperf3"),
        ("ping", "iputils-ping"),
        ("tcpdump", "tcpdump"),
        ("ip", "iproute2"),
        ("nft", "nftables"),
    ] {
        program::find(&[name], package)?;
    }
    let place = Place { bentpipe: bench::build(&metadata::root())?, long };
    let mut list = List::new();
    truth::check(&place, &mut list);
    for item in bench::live::items()? {
        list.line(2, &item);
    }
    agreement::check(&place, &mut list);
    users::check(&place, &mut list);
    lasting::check(&place, &mut list);
    let run = Tests::run()?;
    let endpoint = run.count(|t| t.program.starts_with("endpoint"));
    list.line(7, &tests_item("the engine against the kernel's TCP, tests", endpoint, 4));
    let offload = run.count(|t| t.name.contains("checksum") || t.name.contains("offload"));
    list.line(1, &tests_item("checksums in all combinations, tests", offload, 4));
    list.line(8, &whole_run(&run));
    for item in style()? {
        list.line(8, &item);
    }
    Ok(list.met)
}

/// An item from a measurement: a fault is a miss and says what went wrong.
fn judge<T>(what: &str, measured: Outcome<T>, verdict: impl FnOnce(T) -> (String, bool)) -> Item {
    match measured {
        Ok(value) => {
            let (figure, met) = verdict(value);
            Item::new(what, figure, Verdict::of(met))
        }
        Err(why) => Item::new(what, why.lines().next().unwrap_or_default(), Verdict::Miss),
    }
}
