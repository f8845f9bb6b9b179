//! From a path to a scenario.

use crate::Failure;
use crate::args::Input;
use bentpipe_scenario::{Diagnostic, MAX_FILE, Scenario, Source};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Reads, checks and resolves the scenario that the command line names.
pub(crate) fn load(input: &Input) -> Result<Scenario, Failure> {
    let name = input.file.display().to_string();
    let bytes = read(&input.file).map_err(|error| Failure::Input(format!("error: {name}: {error}")))?;
    Source::from_bytes(name, &bytes)
        .and_then(|source| bentpipe_scenario::load(&source, &input.sets, input.seed))
        .map_err(|diagnostic: Box<Diagnostic>| Failure::Input(diagnostic.to_string()))
}

/// The file's bytes, but not many more than a scenario may have: the path may lead anywhere.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
