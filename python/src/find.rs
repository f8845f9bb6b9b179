//! Searches for the value of a parameter at which a metric crosses a threshold.

use crate::error;
use crate::json::to_python;
use crate::scenario::Scenario;
use crate::watch::interruptible;
use bentpipe_cli::library::{self, Question, Unfound};
use bentpipe_sweep::Error;
use pyo3::prelude::*;
use std::path::PathBuf;

/// What is asked: an object of Python with these attributes, which are those of the command.
#[derive(FromPyObject)]
pub(crate) struct Asked {
    vary: String,
    until: String,
    seeds: Option<u32>,
    seed: Option<u64>,
    out: Option<PathBuf>,
}

/// Searches; returns the answer as `bentpipe find --json` prints it, and as text. `signals` says that this is
/// Python's main thread.
#[pyfunction]
pub(crate) fn find<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    asked: Asked,
    signals: bool,
) -> PyResult<(Bound<'py, PyAny>, String)> {
    let Asked { vary, until, seeds, seed, out } = asked;
    let (source, path, sets) = (scenario.source.clone(), scenario.path.clone(), scenario.sets.clone());
    let question = Question { source, path, sets, seed, vary, until, seeds, out };
    let found = interruptible(py, signals, |go_on| library::find(&question, go_on))?;
    let (answer, text) = found.map_err(|unfound| match unfound {
        Unfound::Diagnostic(diagnostic) => error::diagnostic(py, &diagnostic),
        Unfound::Sweep(error @ Error::File { .. }) => error::system(&error.to_string()),
        Unfound::Sweep(error) => error::input(py, &error.to_string()),
    })?;
    Ok((to_python(py, &answer)?, text))
}
