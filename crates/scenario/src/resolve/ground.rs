//! What resolving a direction needs besides its keys.

use crate::diagnostic::{Fault, Result};
use crate::form::At;
use crate::lists::Path;
use crate::trace::{self, Files, Wrong};
use bentpipe_base::{Duration, Instant, Rate};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rates over time.
pub(super) type Steps = Arc<[(Instant, Option<Rate>)]>;

/// The files of a scenario, each read once.
pub(super) struct Ground<'a> {
    files: &'a dyn Files,
    steps: RefCell<BTreeMap<String, Steps>>,
    traces: RefCell<BTreeMap<String, Arc<[Duration]>>>,
}

impl<'a> Ground<'a> {
    pub(super) const fn new(files: &'a dyn Files) -> Self {
        Self { files, steps: RefCell::new(BTreeMap::new()), traces: RefCell::new(BTreeMap::new()) }
    }

    /// Rates from a CSV file.
    pub(super) fn steps(&self, path: &At<Path>) -> Result<Steps> {
        self.cached(&self.steps, path, |text| trace::rates(text).map(Arc::from))
    }

    /// A mahimahi trace.
    pub(super) fn trace(&self, path: &At<Path>) -> Result<Arc<[Duration]>> {
        self.cached(&self.traces, path, |text| trace::mahimahi(text).map(Arc::from))
    }

    fn cached<T: Clone>(
        &self,
        cache: &RefCell<BTreeMap<String, T>>,
        path: &At<Path>,
        parse: impl Fn(&str) -> core::result::Result<T, Wrong>,
    ) -> Result<T> {
        let name = &path.value.0;
        if let Some(known) = cache.borrow().get(name) {
            return Ok(known.clone());
        }
        let text = self.files.read(name).map_err(|why| {
            Fault::new(path.span, format!("{name} cannot be read"), why)
                .help("help: paths are relative to the folder of the scenario file")
        })?;
        let parsed = parse(&text).map_err(|wrong| {
            Fault::new(path.span, format!("{name}:{}: {}", wrong.line, wrong.message), wrong.label)
        })?;
        cache.borrow_mut().insert(name.clone(), parsed.clone());
        Ok(parsed)
    }
}
