//! Trace files that directions refer to, each read once.

use crate::diagnostic::{Fault, Result};
use crate::form::At;
use crate::lists::Path;
use crate::scalars::Name;
use crate::source::Span;
use crate::trace::series::{self, Recording};
use crate::trace::{self, Files, LineError};
use bentpipe_base::{Duration, Instant, Probability, Rate};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) type Steps = Arc<[(Instant, Option<Rate>)]>;

type Series<T> = Arc<[(Instant, T)]>;

/// Reads the trace files of a scenario and keeps their contents.
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

    /// Returns delays over time, and the length of the recording. `column` selects a column of a table,
    /// `every` is the time that a line covers; both with their positions.
    pub(super) fn delays(
        &self,
        path: &At<Path>,
        column: (Option<&At<Name>>, &str),
        every: (Option<Span>, Duration),
    ) -> Result<(Series<Duration>, Duration)> {
        let text = self.text(path)?;
        let recording = if series::is_table(&text) {
            table(&text, path, column.1, every.0)?
        } else {
            refuse_column(column.0)?;
            series::delays(&text, every.1).map_err(|wrong| trace_fault(path, wrong))?
        };
        let delays = recording.delays().ok_or_else(|| {
            let message = format!("{} holds no delay", path.value.0);
            Fault::new(path.span, message, "all packets were lost")
        })?;
        Ok((delays.into(), recording.length))
    }

    /// Returns losses over time, and the length of the recording.
    pub(super) fn losses(
        &self,
        path: &At<Path>,
        column: (Option<&At<Name>>, &str),
        every: (Option<Span>, Duration),
    ) -> Result<(Series<Probability>, Duration)> {
        let text = self.text(path)?;
        if series::is_table(&text) {
            let recording = table(&text, path, column.1, every.0)?;
            return Ok((recording.losses().into(), recording.length));
        }
        refuse_column(column.0)?;
        let (points, length) = series::losses(&text, every.1).map_err(|wrong| trace_fault(path, wrong))?;
        Ok((series::without_repeats(points.into_iter()).into(), length))
    }

    fn text(&self, path: &At<Path>) -> Result<String> {
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

/// Error in a trace file, at the key that names it.
fn trace_fault(path: &At<Path>, wrong: LineError) -> Fault {
    Fault::new(path.span, format!("{}:{}: {}", path.value.0, wrong.line, wrong.message), wrong.label)
}

fn table(text: &str, path: &At<Path>, column: &str, every: Option<Span>) -> Result<Recording> {
    if let Some(span) = every {
        let label = format!("{} is a table with times of its own", path.value.0);
        return Err(Fault::new(span, "`every` does not go with a table", label));
    }
    series::table(text, column).map_err(|wrong| trace_fault(path, wrong))
}

/// Returns an error if `column` is given for a file without columns.
fn refuse_column(column: Option<&At<Name>>) -> Result<()> {
    column.map_or(Ok(()), |column| {
        Err(Fault::new(column.span, "`column` goes with a table", "this file has a number in each line"))
    })
}
