//! What the parts of a list that is measured live share: the program under test, and how long may be taken.

use crate::item::{Item, Verdict};
use crate::{bench, metadata, program};
use lab::{Outcome, Rig, Who};
use std::path::PathBuf;

/// What every part needs.
pub(super) struct Place {
    pub(super) bentpipe: PathBuf,
    /// Take the time that the issue asks for.
    pub(super) long: bool,
}

impl Place {
    /// Builds the program and finds what measures it: what the list needs, and the parts of `parts` that `words` name, or all.
    pub(super) fn of<const N: usize>(
        issue: &str,
        words: &[String],
        parts: &[&'static str; N],
    ) -> Result<(Self, Vec<&'static str>), String> {
        let chosen = chosen(issue, words, parts)?;
        for (name, package) in [
            ("iperf3", "iperf3"),
            ("ping", "iputils-ping"),
            ("tcpdump", "tcpdump"),
            ("ip", "iproute2"),
            ("nft", "nftables"),
        ] {
            program::find(&[name], package)?;
        }
        let long = words.iter().any(|w| w == "--long");
        Ok((Self { bentpipe: bench::build(&metadata::root())?, long }, chosen))
    }

    pub(super) fn rig(&self, who: Who) -> Outcome<Rig> {
        Rig::new(&self.bentpipe, who)
    }
}

/// The parts of `parts` that `words` name, or all.
pub(super) fn chosen(
    issue: &str,
    words: &[String],
    parts: &[&'static str],
) -> Result<Vec<&'static str>, String> {
    if let Some(unknown) = words.iter().find(|w| *w != "--long" && !parts.contains(&w.as_str())) {
        return Err(format!(
            "accept {issue}: {unknown}? There are --long and the parts {}",
            parts.join(", ")
        ));
    }
    let all = words.iter().all(|w| w == "--long");
    Ok(parts.iter().copied().filter(|p| all || words.iter().any(|w| w == p)).collect())
}

/// An item from a measurement: a fault is a miss and says what went wrong.
pub(super) fn judge<T>(what: &str, measured: Outcome<T>, verdict: impl FnOnce(T) -> (String, bool)) -> Item {
    match measured {
        Ok(value) => {
            let (figure, met) = verdict(value);
            Item::new(what, figure, Verdict::of(met))
        }
        Err(why) => Item::new(what, why.lines().next().unwrap_or_default(), Verdict::Miss),
    }
}
