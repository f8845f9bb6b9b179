//! Gateway files, the configuration of `bentpipe gateway`. Syntax, units and errors are those of scenario
//! files.
//!
//! [`load`] parses the text of a file into a fully resolved [`GatewayFile`]. It does not look at the
//! machine: whether interfaces exist is checked later.

mod keys;
mod resolve;
mod scalars;
mod types;

pub(crate) use keys::RuleKeys;
pub(crate) use resolve::rules;
pub(crate) use scalars::MAX_ITEMS;
pub use types::*;

use crate::diagnostic::{self, Diagnostic};
use crate::form::{self, Keys as _};
use crate::source::{Source, Sources, Span};
use crate::value;
use keys::GatewayKeys;

/// Text before the tables of the reference page.
const HEAD: &str = include_str!("reference.md");

/// Loads a gateway file.
///
/// # Errors
/// The first error in the file, with its position. Any text is safe to pass.
pub fn load(source: &Source) -> Result<GatewayFile, Box<Diagnostic>> {
    read(source).map_err(|fault| fault.place(&Sources::new(source, &[])))
}

fn read(source: &Source) -> diagnostic::Result<GatewayFile> {
    let root = value::parse(source)?;
    let top = Span::file(0..0);
    // Check the version first: the keys of another version would give misleading errors.
    form::required::<crate::scalars::Version>(&root, "schema", "the file", top)
        .map_err(|fault| fault.help("help: a gateway file begins with schema = 1"))?;
    GatewayKeys::REF.check(&root, "the file", &[])?;
    let file =
        form::read_table::<GatewayKeys>(&value::Value { span: top, kind: value::Kind::Table(root) }, "file")?;
    resolve::file(file)
}

/// Returns the JSON schema of gateway files, ending in a newline.
pub fn schema() -> String {
    crate::schema::document(GatewayKeys::REF, "bentpipe gateway, schema 1", false)
}

/// Returns the reference page of gateway files in Markdown, ending in a newline.
pub fn reference() -> String {
    crate::reference::page(HEAD, GatewayKeys::REF)
}
