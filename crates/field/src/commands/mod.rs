//! The subcommands of `field`.

pub(crate) mod matrix;
pub(crate) mod once;
pub(crate) mod readers;
pub(crate) mod recognise;
pub(crate) mod untouched;

pub(crate) use bentpipe_field::cell::options;
use std::path::PathBuf;

/// The `bentpipe` program in the directory of this one.
pub(crate) fn bentpipe() -> Result<PathBuf, String> {
    Ok(std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("bentpipe"))
}

/// Parses a whole number.
pub(crate) fn whole(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name} {value}: a whole number is needed"))
}
