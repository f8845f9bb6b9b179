//! Runs, and their reports.

use crate::error;
use crate::json::to_python;
use crate::scenario::Scenario;
use crate::table::{Table, series};
use crate::watch::{Watch, engine};
use bentpipe_os::Clock;
use bentpipe_report::Metric;
use bentpipe_results::{limits_in_lines, record_for_lines};
use bentpipe_sim::{Record, RecordOptions, run_while};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration as Time;

/// The results of a run.
#[pyclass(frozen, module = "bentpipe._native")]
pub(crate) struct Report {
    scenario: Arc<bentpipe_scenario::Scenario>,
    results: bentpipe_report::Report,
    /// The course of the run; recorded when it is first needed.
    record: OnceLock<Record>,
    /// The lines of what limited the flows; made when they are first needed.
    lines: OnceLock<String>,
    /// Time that the engine took.
    took: Time,
}

/// Runs a scenario. `signals` says that this is Python's main thread.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    seed: Option<u64>,
    record: bool,
    signals: bool,
) -> PyResult<Report> {
    let mut resolved = Arc::clone(&scenario.resolved);
    if let Some(seed) = seed.filter(|seed| *seed != resolved.seed) {
        Arc::make_mut(&mut resolved).seed = seed;
    }
    let ((results, course), took) = course(py, &resolved, record.then(RecordOptions::default), signals)?;
    let record = OnceLock::new();
    if let Some(course) = course {
        // it is new, and so it is empty
        let _ = record.set(course);
    }
    Ok(Report { scenario: resolved, results, record, lines: OnceLock::new(), took })
}

fn course(
    py: Python<'_>,
    scenario: &bentpipe_scenario::Scenario,
    record: Option<RecordOptions>,
    signals: bool,
) -> PyResult<((bentpipe_report::Report, Option<Record>), Time)> {
    let mut watch = Watch::new(signals, None);
    let (done, took) = engine(py, || {
        let clock = Clock::start();
        let done = run_while(scenario, record.as_ref(), &mut || watch.go_on());
        (done, Time::from_nanos(clock.now().0))
    })?;
    let done =
        done.ok_or_else(|| watch.error().unwrap_or_else(|| error::bug(py, "a run ended without a report")))?;
    Ok((done, took))
}

#[pymethods]
impl Report {
    /// Time that the engine took, in seconds.
    #[getter]
    fn engine_s(&self) -> f64 {
        self.took.as_secs_f64()
    }

    /// The report as JSON, as `bentpipe sim --json` prints it.
    fn to_json(&self) -> String {
        self.results.to_json()
    }

    /// The report as dicts and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &serde_json::to_value(&self.results).unwrap_or_default())
    }

    /// The report as text, as `bentpipe sim` prints it. For the lines of what limited the flows, a run that
    /// was not recorded is made again.
    fn to_text(&self, py: Python<'_>, signals: bool) -> PyResult<String> {
        if self.lines.get().is_none() {
            let lines = if let Some(record) = self.record.get() {
                limits_in_lines(record, false)
            } else {
                let options = Some(record_for_lines(&self.scenario));
                let ((_, record), _) = course(py, &self.scenario, options, signals)?;
                limits_in_lines(&record.unwrap_or_default(), false)
            };
            // another thread may have made the same lines
            let _ = self.lines.set(lines);
        }
        Ok(self.results.to_text_with(self.lines.get().map_or("", String::as_str)))
    }

    /// The value of a metric, and its unit in symbols; no value if the run has none.
    fn metric(&self, py: Python<'_>, name: &str) -> PyResult<Option<f64>> {
        Metric::parse(name).and_then(|m| m.of(&self.results)).map_err(|e| error::metric(py, &e))
    }

    /// The course of the run, as in `series.csv`.
    fn series(&self, py: Python<'_>, signals: bool) -> PyResult<Table> {
        series(py, self.recorded(py, signals)?)
    }

    /// The page with pictures and tables, as HTML.
    fn page(&self, py: Python<'_>, signals: bool) -> PyResult<String> {
        let record = self.recorded(py, signals)?;
        let outcome = bentpipe_results::Outcome {
            scenario: &self.scenario,
            report: &self.results,
            record,
            captures: &[],
        };
        engine(py, || bentpipe_results::page(&outcome))
    }

    /// Writes the files of `bentpipe sim --out` into a folder, and returns their paths.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
        let written = engine(py, || bentpipe_results::run(&folder, &self.scenario))?;
        written.map(|(_, paths)| paths).map_err(|e| error::system(&e.to_string()))
    }
}

impl Report {
    /// The course of the run. A run that was not recorded is made again: it is the same.
    pub(crate) fn recorded(&self, py: Python<'_>, signals: bool) -> PyResult<&Record> {
        if let Some(record) = self.record.get() {
            return Ok(record);
        }
        let ((_, record), _) = course(py, &self.scenario, Some(RecordOptions::default()), signals)?;
        Ok(self.record.get_or_init(|| record.unwrap_or_default()))
    }
}
