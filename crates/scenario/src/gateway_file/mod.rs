//! Gateway files: what `bentpipe gateway` is told. The same TOML, units and errors as scenario files.
//!
//! [`load`] turns the text of a file into a [`GatewayFile`], a value with nothing left to interpret. It knows
//! nothing of the machine: whether an interface is there is asked later.

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

/// What stands before the tables of the reference page.
const HEAD: &str = include_str!("reference.md");

/// Reads a gateway file.
///
/// # Errors
/// The first error in the file, pointing at the guilty characters. Any text is safe to pass.
pub fn load(source: &Source) -> Result<GatewayFile, Box<Diagnostic>> {
    read(source).map_err(|fault| fault.place(&Sources::new(source, &[])))
}

fn read(source: &Source) -> diagnostic::Result<GatewayFile> {
    let root = value::parse(source)?;
    let top = Span::file(0..0);
    // A file of another version is told so before its keys are judged.
    form::required::<crate::scalars::Version>(&root, "schema", "the file", top)
        .map_err(|fault| fault.help("help: a gateway file begins with schema = 1"))?;
    GatewayKeys::REF.check(&root, "the file", &[])?;
    let file =
        form::read_table::<GatewayKeys>(&value::Value { span: top, kind: value::Kind::Table(root) }, "file")?;
    resolve::file(file)
}

/// The JSON schema of gateway files, ending in a newline.
pub fn schema() -> String {
    crate::schema::document(GatewayKeys::REF, "bentpipe gateway, schema 1", false)
}

/// The reference page of gateway files in Markdown, ending in a newline.
pub fn reference() -> String {
    crate::reference::page(HEAD, GatewayKeys::REF)
}
