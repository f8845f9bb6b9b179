//! Agent files, the configuration of `bentpipe agent`. Syntax, units and errors are those of scenario files.
//!
//! [`load`] parses the text of a file into a fully resolved [`AgentFile`]. It does not look at the machine:
//! whether interfaces exist is checked later.

mod datagrams;
mod keys;
mod resolve;
mod types;

pub use types::*;

use crate::diagnostic::{self, Diagnostic};
use crate::form::{self, Keys as _};
use crate::source::{Source, Sources};
use crate::value;
use keys::AgentKeys;

const HEAD: &str = include_str!("reference.md");

/// Loads an agent file.
///
/// # Errors
/// The first error in the file, with its position. Any text is safe to pass.
pub fn load(source: &Source) -> Result<AgentFile, Box<Diagnostic>> {
    read(source).map_err(|fault| fault.into_diagnostic(&Sources::new(source, &[])))
}

fn read(source: &Source) -> diagnostic::Result<AgentFile> {
    let root = value::parse(source)?;
    crate::scalars::check_file::<AgentKeys>(&root, "agent")?;
    resolve::file(form::read_file(root)?)
}

/// Returns the JSON schema of agent files, ending in a newline.
pub fn schema() -> String {
    crate::schema::document(AgentKeys::REF, "bentpipe agent, schema 1", false)
}

/// Returns the reference page of agent files in Markdown, ending in a newline.
pub fn reference() -> String {
    crate::reference::page(HEAD, AgentKeys::REF)
}
