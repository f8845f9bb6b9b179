//! Trace files to which directions refer. Those of capacity are read once, however many directions use them.

use crate::diagnostic::{Fault, Result};
use crate::form::At;
use crate::lists::Path;
use crate::trace::{self, Files, LineError};
use bentpipe_base::{Duration, Instant, Rate};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) type Steps = Arc<[(Instant, Option<Rate>)]>;

/// Reads the trace files of a scenario and keeps the contents of those of capacity.
pub(super) struct TraceFiles<'a> {
    files: &'a dyn Files,
    steps: RefCell<BTreeMap<String, Steps>>,
    traces: RefCell<BTreeMap<String, Arc<[Duration]>>>,
}

impl<'a> TraceFiles<'a> {
    pub(super) const fn new(files: &'a dyn Files) -> Self {
        Self { files, steps: RefCell::new(BTreeMap::new()), traces: RefCell::new(BTreeMap::new()) }
    }

    /// Returns the rates of a CSV file.
    pub(super) fn steps(&self, path: &At<Path>) -> Result<Steps> {
        self.cached(&self.steps, path, |text| trace::rates(text).map(Arc::from))
    }

    /// Returns the opportunities of a mahimahi trace.
    pub(super) fn trace(&self, path: &At<Path>) -> Result<Arc<[Duration]>> {
        self.cached(&self.traces, path, |text| trace::mahimahi(text).map(Arc::from))
    }

    pub(super) fn text(&self, path: &At<Path>) -> Result<String> {
        let name = &path.value.0;
        self.files.read(name).map_err(|why| {
            Fault::new(path.span, format!("{name} cannot be read"), why)
                .help("help: paths are relative to the folder of the scenario file")
        })
    }

    fn cached<T: Clone>(
        &self,
        cache: &RefCell<BTreeMap<String, T>>,
        path: &At<Path>,
        parse: impl Fn(&str) -> core::result::Result<T, LineError>,
    ) -> Result<T> {
        let name = &path.value.0;
        if let Some(known) = cache.borrow().get(name) {
            return Ok(known.clone());
        }
        let parsed = parse(&self.text(path)?).map_err(|wrong| trace_fault(path, wrong))?;
        cache.borrow_mut().insert(name.clone(), parsed.clone());
        Ok(parsed)
    }
}

/// Returns the error of a trace file at the key that names the file.
pub(super) fn trace_fault(path: &At<Path>, wrong: LineError) -> Fault {
    Fault::new(path.span, format!("{}:{}: {}", path.value.0, wrong.line, wrong.message), wrong.label)
}
