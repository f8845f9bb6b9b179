//! Figure files: a figure or table of a paper, or one's own, as data for `bentpipe figure`. Syntax, units and
//! errors are those of scenario files.
//!
//! [`load`] parses the text of a file into a [`FigureFile`]. Whether the scenario has the parameters and the
//! metrics that it names is checked later, by whoever has the scenario; a [`Located`] value keeps its place
//! for that.

mod axis;
mod keys;
mod live;
mod resolve;
mod scalars;
mod statements;
mod types;

pub use types::*;

use crate::diagnostic::{self, Diagnostic};
use crate::form::{self, Keys as _};
use crate::source::{Source, Sources};
use crate::value;
use keys::FigureKeys;

const HEAD: &str = include_str!("reference.md");

/// Loads a figure file.
///
/// # Errors
/// The first error in the file, with its position. Any text is safe to pass.
pub fn load(source: &Source) -> Result<FigureFile, Box<Diagnostic>> {
    let sources = Sources::new(source, &[]);
    read(source, &sources).map_err(|fault| fault.into_diagnostic(&sources))
}

fn read(source: &Source, sources: &Sources<'_>) -> diagnostic::Result<FigureFile> {
    let root = value::parse(source)?;
    crate::scalars::check_file::<FigureKeys>(&root, "figure")?;
    resolve::file(form::read_file(root)?, source, sources)
}

/// Returns the JSON schema of figure files, ending in a newline.
pub fn schema() -> String {
    crate::schema::document(FigureKeys::REF, "bentpipe figure, schema 1", false)
}

/// Returns the reference page of figure files in Markdown, ending in a newline.
pub fn reference() -> String {
    crate::reference::page(HEAD, FigureKeys::REF)
}
