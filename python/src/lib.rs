//! The Python package's native part: scenarios, runs, sweeps and the command, as `bentpipe._native`.
//!
//! The classes that users see are written in Python (`python/lib/bentpipe`), with types. Here is what
//! needs the engine. Nothing here holds Python's lock while a scenario runs.

#![allow(clippy::needless_pass_by_value, reason = "Python hands over values of its own")]

mod error;
mod events;
mod find;
mod gym;
mod json;
mod lists;
mod run;
mod scenario;
mod scheme;
mod sweep;
mod table;
mod watch;

#[pyo3::pymodule]
mod _native {
    use pyo3::{pyfunction, types::PyModule, types::PyModuleMethods as _};
    use std::ffi::OsString;

    #[pymodule_export]
    use super::events::{Ack, Loss, Path, Start};
    #[pymodule_export]
    use super::find::find;
    #[pymodule_export]
    use super::gym::{Episode, Step};
    #[pymodule_export]
    use super::lists::schemes;
    #[pymodule_export]
    use super::run::{Report, run};
    #[pymodule_export]
    use super::scenario::{Scenario, shipped};
    #[pymodule_export]
    use super::scheme::SchemeObject;
    #[pymodule_export]
    use super::sweep::Sweep;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::watch::Stop;

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, PyModule>) -> pyo3::PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("SEMANTICS", bentpipe_sweep::batch::semantics())?;
        module.add("SHIPPED", bentpipe_cli::library::shipped_names().collect::<Vec<_>>())
    }

    /// The named links as JSON.
    #[pyfunction]
    fn links_json() -> String {
        bentpipe_cli::library::links_json()
    }

    /// Executes a command line, its first word being the program's name; returns the exit status. The words
    /// `again` start the same command in another process.
    #[pyfunction]
    fn command(py: pyo3::Python<'_>, words: Vec<OsString>, again: Vec<OsString>) -> pyo3::PyResult<u8> {
        super::watch::engine(py, || bentpipe_cli::execute(&words, again))
    }

    /// Fails as a bug of the engine would: for the test that this is an exception.
    #[pyfunction]
    fn fail(py: pyo3::Python<'_>, why: String) -> pyo3::PyResult<()> {
        super::watch::engine(py, move || panic!("{why}"))
    }
}
