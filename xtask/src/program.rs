//! Finds programs of other projects that a check needs, or installs them if possible.

use crate::Outcome;
use lab::{once::output, rig};
use std::path::PathBuf;
use std::process::Command;

/// Returns the first of `names` that runs; otherwise installs Debian's `package`, if permitted.
pub(crate) fn find(names: &[&str], package: &str) -> Outcome<PathBuf> {
    let there = || names.iter().find_map(|name| rig::find(name));
    if let Some(found) = there() {
        return Ok(found);
    }
    let hint = format!("{} is not installed (apt-get install {package})", names.join(" or "));
    if !rig::is_root() || !rig::has("apt-get") {
        return Err(hint);
    }
    println!("installing {package} (apt-get install {package})");
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        output("apt-get", command.env("DEBIAN_FRONTEND", "noninteractive").args(args)).is_ok()
    };
    if apt(&["update"]) && apt(&["install", "--yes", "--no-install-recommends", package]) {
        return there().ok_or(hint);
    }
    Err(format!("{hint}; it could not be installed"))
}
