//! Scenario files: TOML with units and parameters. Errors point at the wrong characters.
//!
//! [`load`] parses the text of a file into a fully resolved [`Scenario`]. [`to_toml`] writes one back with
//! every default explicit. This crate does no I/O: the caller supplies the text of all files.
//!
//! Stages: `value` (TOML with positions) -> `parameters` (`--set`, `"$name"`) -> `keys` (types and units)
//! -> `resolve` (names, counts, limits).

mod addresses;
pub mod agent_file;
mod amount;
mod change;
mod custom;
mod diagnostic;
pub mod figure_file;
mod form;
pub mod gateway_file;
mod keys;
mod lists;
mod measure;
mod parameters;
mod profile;
mod quantity;
mod reference;
mod resolve;
mod scalars;
mod schema;
mod source;
mod sweep;
mod trace;
pub mod types;
mod value;
mod write;

pub use addresses::host_addresses;
pub use amount::{Amount, amount_parts, parse_amount};
pub use change::{parse_change, parse_outage_length};
pub use custom::{CustomNode, CustomSpec, Registry, SettingError, Settings, register};
pub use diagnostic::{Diagnostic, Place};
pub use profile::{Profile, profiles};
pub use quantity::Dimension;
pub use reference::reference;
pub use schema::schema;
pub use source::{MAX_FILE, Source};
pub use sweep::{DEFAULT_SEEDS, Precision, SweepSpec, sweep};
pub use trace::{Files, NoFiles};
pub use types::*;
pub use write::to_toml;

/// Loads a scenario.
///
/// `sets` are the names and values of the `--set` options, in order; the last one of a name wins. `seed`
/// replaces that of the file. A scenario that refers to trace files needs [`load_with`].
///
/// # Errors
/// The first error in the file or in `sets`, with its position. Any text is safe to pass.
pub fn load(
    source: &Source,
    sets: &[(String, String)],
    seed: Option<u64>,
) -> Result<Scenario, Box<Diagnostic>> {
    load_with(source, sets, seed, &trace::NoFiles)
}

/// Loads a scenario that may refer to other files, which `files` reads. It gets each path as the scenario
/// gives it.
///
/// # Errors
/// Those of [`load`], and files that cannot be read or have an invalid line.
pub fn load_with(
    source: &Source,
    sets: &[(String, String)],
    seed: Option<u64>,
    files: &dyn Files,
) -> Result<Scenario, Box<Diagnostic>> {
    let read = || {
        let mut root = value::parse(source)?;
        scalars::check_file::<keys::FileKeys>(&root, "scenario")?;
        let mut parameters = parameters::Parameters::read(&root, sets)?;
        parameters.substitute(&mut root)?;
        let file: keys::FileKeys = form::read_file(root)?;
        parameters.check_used()?;
        file.sweep.as_ref().map(|s| sweep::resolve(s, &parameters)).transpose()?;
        resolve::scenario(file, parameters.resolved(), seed, files)
    };
    read().map_err(|fault| fault.into_diagnostic(&source::Sources::new(source, sets)))
}
