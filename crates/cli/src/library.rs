//! What the Python package shares with the commands: reading scenarios, searches, and lists of what there is.

pub use crate::find::Unfound;
pub use crate::input::{Beside, resolve};
use crate::{find, input, links, shipped};
use bentpipe_scenario::Source;
use serde_json::Value;
use std::path::PathBuf;

/// A search in the words of `bentpipe find`.
#[derive(Clone, Debug)]
pub struct Question {
    /// The scenario.
    pub source: Source,
    /// The path of its file: trace files are beside it.
    pub path: PathBuf,
    /// Parameters and their values, as `--set` takes them.
    pub sets: Vec<(String, String)>,
    /// Seed of the first run of each value; `None` for the file's.
    pub seed: Option<u64>,
    /// The parameter and its range, as in `ber=1e-9..1e-4`.
    pub vary: String,
    /// The condition, as in `goodput < 1 Mbit/s`.
    pub until: String,
    /// Number of runs of each value; `None` for the file's, or 5.
    pub seeds: Option<u32>,
    /// Folder for the runs, a page, a picture and a table.
    pub out: Option<PathBuf>,
}

/// Returns the answer as `bentpipe find --json` prints it, and as text. `go_on` is called at times,
/// also during runs; once it returns false the search is abandoned.
///
/// # Errors
/// The first error in the input, a file that cannot be read or written, or that it was abandoned.
pub fn find(question: &Question, go_on: &(dyn Fn() -> bool + Sync)) -> Result<(Value, String), Unfound> {
    let Question { source, path, sets, seed, vary, until, seeds, out } = question.clone();
    let input = input::Input { file: path.clone(), seed, sets };
    let args = find::Find { input, vary, until, seeds, json: true, out, threads: 0 };
    find::search(&args, &source, &Beside(&path), go_on)
}

/// Returns the named links as JSON, as `bentpipe links --json` prints them.
pub fn links_json() -> String {
    links::list(true)
}

/// Returns the scenario of this name that comes with the program.
pub fn shipped_scenario(name: &str) -> Option<Source> {
    shipped::scenario(name).ok()
}

/// Returns the names of the scenarios that come with the program.
pub fn shipped_names() -> impl Iterator<Item = &'static str> + Clone {
    shipped::names()
}
