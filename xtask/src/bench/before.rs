//! bentpipe before its simulator was made faster, built from its revision with the same profile.

use crate::{Outcome, metadata};
use lab::once::output;
use std::path::PathBuf;
use std::process::Command;

/// The last revision before.
const REVISION: &str = "948111ec";

/// Its program: the one that the variable `BENTPIPE_BEFORE` names, or one that is built here once.
pub(super) fn program() -> Outcome<PathBuf> {
    if let Some(path) = std::env::var_os("BENTPIPE_BEFORE") {
        return Ok(path.into());
    }
    let root = metadata::root();
    let folder = root.join("target/before").join(REVISION);
    let program = folder.join("target/release/bentpipe");
    if program.exists() {
        return Ok(program);
    }
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let archive = folder.join("sources.tar");
    let mut git = Command::new("git");
    git.args(["archive", "--output"]).arg(&archive).arg(REVISION).current_dir(&root);
    output(&format!("revision {REVISION}"), &mut git)?;
    output("tar", Command::new("tar").arg("--extract").arg("--file").arg(&archive).current_dir(&folder))?;
    let mut cargo = Command::new(metadata::cargo());
    cargo.args(["build", "--release", "--quiet", "--locked", "--package", "bentpipe-cli"]);
    output("cargo build", cargo.env("CARGO_TARGET_DIR", folder.join("target")).current_dir(&folder))?;
    Ok(program)
}
