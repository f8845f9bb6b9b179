//! Scenarios: a text, values of parameters, and what they resolve to.

use crate::error;
use crate::watch::engine;
use bentpipe_cli::library::{Beside, resolve, shipped_scenario};
use bentpipe_scenario::{Source, to_toml};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A checked scenario.
#[pyclass(frozen, module = "bentpipe._native")]
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) source: Source,
    /// The path of the file: trace files are beside it.
    pub(crate) path: PathBuf,
    /// Parameters and their values, as `--set` takes them.
    #[pyo3(get)]
    pub(crate) sets: Vec<(String, String)>,
    pub(crate) resolved: Arc<bentpipe_scenario::Scenario>,
}

#[pymethods]
impl Scenario {
    /// Reads the bytes of a scenario file. `name` is for messages, `path` says where trace files are.
    #[new]
    fn new(
        py: Python<'_>,
        name: String,
        text: &[u8],
        path: PathBuf,
        sets: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let source = Source::from_bytes(name, text).map_err(|e| error::diagnostic(py, &e))?;
        Self::resolved(py, source, path, sets)
    }

    /// The same scenario with other values of parameters.
    fn with_sets(&self, py: Python<'_>, sets: Vec<(String, String)>) -> PyResult<Self> {
        Self::resolved(py, self.source.clone(), self.path.clone(), sets)
    }

    /// The scenario as TOML, with all defaults.
    fn to_toml(&self, py: Python<'_>) -> PyResult<String> {
        engine(py, || to_toml(&self.resolved))
    }

    /// The title.
    #[getter]
    fn title(&self) -> &str {
        &self.resolved.title
    }

    /// The seed of a run without another one.
    #[getter]
    fn seed(&self) -> u64 {
        self.resolved.seed
    }

    /// The longest time that is simulated, in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.resolved.duration.as_secs_f64()
    }

    /// The parameters and their values.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::json::to_python(py, &bentpipe_sim::report::parameters(&self.resolved).into())
    }

    /// What the scenario is made from: name, text, path and values of parameters.
    fn parts(&self) -> (&str, &[u8], &PathBuf, Vec<(String, String)>) {
        (self.source.name(), self.source.text().as_bytes(), &self.path, self.sets.clone())
    }
}

impl Scenario {
    fn resolved(
        py: Python<'_>,
        source: Source,
        path: PathBuf,
        sets: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let resolved = engine(py, || resolve(&source, &Beside(&path), &sets, None))?;
        let resolved = resolved.map_err(|e| error::diagnostic(py, &e))?;
        Ok(Self { source, path, sets, resolved: Arc::new(resolved) })
    }
}

/// Name and text of a scenario that comes with bentpipe; `None` if there is none of this name.
#[pyfunction]
pub(crate) fn shipped(name: &str) -> Option<(String, String)> {
    shipped_scenario(name).map(|source| (source.name().to_owned(), source.text().to_owned()))
}
