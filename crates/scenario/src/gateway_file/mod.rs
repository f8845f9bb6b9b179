//! Gateway files, the configuration of `bentpipe gateway`. Syntax, units and errors are those of scenario
//! files.
//!
//! [`load`] parses the text of a file into a fully resolved [`GatewayFile`]. It does not look at the
//! machine: whether interfaces exist is checked later.

mod keys;
mod rate;
mod resolve;
mod scalars;
mod types;

pub(crate) use keys::{DeployKeys, RuleKeys};
pub(crate) use rate::EncodingList;
pub(crate) use resolve::{deploy as resolve_deploy, rules};
pub(crate) use scalars::{DscpClass, Interface, MAX_ITEMS, OneOrList};
pub use types::*;

use crate::diagnostic::{self, Diagnostic};
use crate::form::{self, Keys as _};
use crate::source::{Source, Sources};
use crate::value;
use keys::GatewayKeys;

const HEAD: &str = include_str!("reference.md");

/// Loads a gateway file.
///
/// # Errors
/// The first error in the file, with its position. Any text is safe to pass.
pub fn load(source: &Source) -> Result<GatewayFile, Box<Diagnostic>> {
    read(source).map_err(|fault| fault.into_diagnostic(&Sources::new(source, &[])))
}

fn read(source: &Source) -> diagnostic::Result<GatewayFile> {
    let root = value::parse(source)?;
    crate::scalars::check_file::<GatewayKeys>(&root, "gateway")?;
    resolve::file(form::read_file(root)?)
}

/// Returns the JSON schema of gateway files, ending in a newline.
pub fn schema() -> String {
    crate::schema::document(GatewayKeys::REF, "bentpipe gateway, schema 1", false)
}

/// Returns the reference page of gateway files in Markdown, ending in a newline.
pub fn reference() -> String {
    crate::reference::page(HEAD, GatewayKeys::REF)
}
