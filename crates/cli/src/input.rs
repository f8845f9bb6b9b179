//! Loads scenarios from files.

use crate::options::{faulty_range, in_file, message_and_help};
use crate::outcome::Failure;
use crate::shipped;
use bentpipe_base::names::nearest;
use bentpipe_scenario::{Diagnostic, Files, MAX_FILE, ReferenceSpec, Scenario, Source, profiles};
use bentpipe_sim::reference;
use clap::Args;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A scenario and its changes on the command line.
#[derive(Debug, Args)]
pub(crate) struct Input {
    /// Scenario file, or the name of a scenario that comes with the program.
    pub(crate) file: PathBuf,
    /// Seed of every random stream, replacing the file's.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Change a parameter of the file; may be repeated.
    ///
    /// The value is written as in the file but without quotes: loss=1e-3, window='64 segments',
    /// delayed_ack=on.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) sets: Vec<(String, String)>,
}

pub(crate) fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

/// Reads a scenario file or a gateway file.
pub(crate) fn file(path: &Path) -> Result<Source, Failure> {
    let name = path.display().to_string();
    let bytes = read(path, MAX_FILE).map_err(|error| {
        let why = if error.kind() == io::ErrorKind::NotFound {
            "there is no such file"
        } else {
            &*error.to_string()
        };
        Failure::input(format!("{name}: {why}"))
    })?;
    Ok(Source::from_bytes(name, &bytes)?)
}

/// Reads a scenario file, or takes the scenario of this name that comes with the program: `sharing`. A
/// file of that name comes first.
pub(crate) fn scenario(path: &Path) -> Result<Source, Failure> {
    let name = path.to_str().unwrap_or_default();
    if path.exists() {
        return file(path);
    }
    shipped::scenario(name).or_else(|_| match missing(name) {
        Some(why) => Err(Failure::input(why)),
        None => file(path),
    })
}

/// Says what a name that is neither a file nor a scenario of the program may have meant.
fn missing(name: &str) -> Option<String> {
    if profiles().iter().any(|link| link.name == name) {
        return Some(format!(
            "`{name}` is a link, not a scenario\n\
             help: real programs over it: bentpipe emulate {name} -- COMMAND\n\
             help: in a scenario: profile = \"{name}\", as bentpipe links says"
        ));
    }
    if let Some(stem) = name.strip_suffix(".toml") {
        let stem = stem.strip_prefix("scenarios/").unwrap_or(stem);
        shipped::scenario(stem).ok()?;
        return Some(format!(
            "{name}: there is no such file\nhelp: the scenario that comes with the program is called `{stem}`"
        ));
    }
    let plain = !name.is_empty() && !name.contains(['/', '.']);
    plain.then(|| {
        let near =
            nearest(name, shipped::names()).map_or_else(String::new, |n| format!(": did you mean `{n}`?"));
        format!(
            "there is neither a file nor a scenario `{name}`{near}\n\
             help: bentpipe scenarios lists those that come with the program"
        )
    })
}

/// Reads, checks and resolves the scenario that the command line names.
pub(crate) fn load(input: &Input) -> Result<Scenario, Failure> {
    let source = scenario(&input.file)?;
    let resolved = resolve(&source, &Beside(&input.file), &input.sets, input.seed);
    Ok(resolved.map_err(|mut fault| {
        fault.help.extend(
            other_kind(source.text())
                .map(|command| format!("help: this is no scenario: {command} {}", input.file.display())),
        );
        fault
    })?)
}

/// Returns the command for files of another kind than scenarios, known by a table that only they have.
fn other_kind(text: &str) -> Option<&'static str> {
    let has = |table: &str| text.lines().any(|line| line.trim_end() == table);
    match (has("[deploy]"), has("[satellite]"), has("[[curves]]")) {
        (true, true, _) => Some("a gateway file is for bentpipe gateway check"),
        (true, false, _) => Some("an agent file is for bentpipe agent check"),
        (_, _, true) => Some("a figure file is for bentpipe figure"),
        _ => None,
    }
}

/// Checks and resolves a scenario. `sets` are names and values as of `--set`; trace files are read by
/// `files`.
///
/// # Errors
/// The first error, with its place.
pub fn resolve(
    source: &Source,
    files: &dyn Files,
    sets: &[(String, String)],
    seed: Option<u64>,
) -> Result<Scenario, Box<Diagnostic>> {
    let scenario = bentpipe_scenario::load_with(source, sets, seed, files)?;
    reference::check(&scenario).map_err(|(spec, fault)| misplaced(source, spec, &fault))?;
    Ok(scenario)
}

/// Returns the name of a scenario: the file name without its extension.
pub(crate) fn title(file: &Path) -> String {
    file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// Diagnoses a reference to something that the run will not have, at its place in the file.
fn misplaced(source: &Source, spec: &ReferenceSpec, fault: &reference::ReferenceError) -> Box<Diagnostic> {
    let (text, guilty, said) = match fault {
        reference::ReferenceError::Metric(error) => {
            (&spec.metric, faulty_range(&spec.metric, error), message_and_help(error))
        }
        reference::ReferenceError::Unit { wanted, .. } => {
            (&spec.written, 0..spec.written.len(), (fault.to_string(), vec![format!("help: write {wanted}")]))
        }
    };
    let list = source.text().find("references").unwrap_or(0);
    in_file(source, (list, text.as_str()), &guilty, said)
}

const MAX_TRACE: usize = 64 << 20;

/// Reads trace files, whose paths are relative to the scenario file.
#[derive(Debug)]
pub struct Beside<'a>(pub &'a Path);

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

/// Reads at most `most + 1` bytes of a file, since the path may lead to a device.
fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
