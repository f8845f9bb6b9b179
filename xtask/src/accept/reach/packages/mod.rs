//! Packages: the Debian package on a machine of its own, the static program, reproducible builds, first
//! steps.

mod builds;
mod deb;
mod first_steps;
mod machine;
mod upgrade;

use crate::accept::Part;
use crate::{Outcome, metadata};
use lab::once::output;
use std::process::Command;

pub(super) const PARTS: [Part; 4] = [
    ("deb", deb::check),
    ("static", builds::empty_root),
    ("reproducible", builds::reproducible),
    ("first-screen", first_steps::check),
];

/// Runs `make` with these words; returns its standard output.
fn make(words: &[&str]) -> Outcome<String> {
    let name = format!("make {}", words.join(" "));
    output(&name, Command::new("make").arg("--no-print-directory").args(words).current_dir(metadata::root()))
}
