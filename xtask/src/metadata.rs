//! Cargo's metadata of the workspace.

use crate::Outcome;
use cargo_metadata::{MetadataCommand, Package};
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// The cargo that runs this program, or the one on the path.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

pub(crate) fn packages() -> Outcome<Vec<Package>> {
    let metadata = MetadataCommand::new().cargo_path(cargo()).current_dir(root()).no_deps().exec();
    metadata.map(|all| all.packages).map_err(|e| format!("cargo metadata: {e}"))
}
