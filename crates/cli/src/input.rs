//! From a path to a scenario.

use crate::Failure;
use crate::args::Input;
use bentpipe_scenario::{Diagnostic, Files, MAX_FILE, Scenario, Source};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Reads the file that the command line names.
pub(crate) fn source(input: &Input) -> Result<Source, Failure> {
    file(&input.file)
}

/// Reads a scenario file.
pub(crate) fn file(path: &Path) -> Result<Source, Failure> {
    let name = path.display().to_string();
    let bytes = read(path, MAX_FILE).map_err(|error| Failure::Input(format!("error: {name}: {error}")))?;
    Source::from_bytes(name, &bytes).map_err(|diagnostic| Failure::Input(diagnostic.to_string()))
}

/// Reads, checks and resolves the scenario that the command line names.
pub(crate) fn load(input: &Input) -> Result<Scenario, Failure> {
    let name = input.file.display().to_string();
    let bytes =
        read(&input.file, MAX_FILE).map_err(|error| Failure::Input(format!("error: {name}: {error}")))?;
    Source::from_bytes(name, &bytes)
        .and_then(|source| {
            bentpipe_scenario::load_with(&source, &input.sets, input.seed, &Beside(&input.file))
        })
        .map_err(|diagnostic: Box<Diagnostic>| Failure::Input(diagnostic.to_string()))
}

/// Longest trace file.
const MAX_TRACE: usize = 64 << 20;

/// Trace files: paths are relative to the scenario file.
pub(crate) struct Beside<'a>(pub(crate) &'a Path);

impl Files for Beside<'_> {
    fn read(&self, path: &str) -> Result<String, String> {
        let path = self.0.parent().unwrap_or(Path::new("")).join(path);
        let bytes = read(&path, MAX_TRACE).map_err(|error| error.to_string())?;
        if bytes.len() > MAX_TRACE {
            return Err(format!("it is longer than {} MiB", MAX_TRACE >> 20));
        }
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
    }
}

/// The file's bytes, but not many more than `most`: the path may lead anywhere.
fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
