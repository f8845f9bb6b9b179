//! Resolves `delay` and `loss` over time: steps, or a recording.

use super::dynamics::{check_times_increase, interval_or, repeat};
use super::exactly_one;
use super::trace_files::{TraceFiles, trace_fault};
use crate::diagnostic::{Fault, Result, bail};
use crate::form::At;
use crate::keys::{DelayKeys, LossKeys};
use crate::lists::{Pairs, Path};
use crate::scalars::Name;
use crate::source::Span;
use crate::trace::LineError;
use crate::trace::series::{self, Recording};
use bentpipe_base::{Duration, Instant, Probability};
use bentpipe_link::{Recorded, SHORTEST_STEP};
use std::sync::Arc;

/// Default time that each line of a recording covers.
const EVERY: Duration = Duration::from_millis(10);
const COLUMN: &str = "rtt";

/// Keys that delay and loss have in common.
struct Source<'a, T> {
    key: &'a str,
    span: Span,
    steps: Option<&'a At<Pairs<Instant, T>>>,
    trace: Option<&'a At<Path>>,
    column: Option<&'a At<Name>>,
    every: Option<At<Duration>>,
    repeat: Option<At<Duration>>,
}

macro_rules! source {
    ($key:literal, $keys:ident, $span:ident) => {
        Source {
            key: $key,
            span: $span,
            steps: $keys.steps.as_ref(),
            trace: $keys.trace.as_ref(),
            column: $keys.column.as_ref(),
            every: $keys.every,
            repeat: $keys.repeat,
        }
    };
}

pub(super) fn delay(keys: &DelayKeys, span: Span, files: &TraceFiles<'_>) -> Result<Recorded<Duration>> {
    source!("delay", keys, span).resolve(files, series::delays, |recording, path| {
        recording.delays().ok_or_else(|| {
            let message = format!("{} holds no delay", path.value.0);
            Fault::new(path.span, message, "all packets were lost")
        })
    })
}

pub(super) fn loss(keys: &LossKeys, span: Span, files: &TraceFiles<'_>) -> Result<Recorded<Probability>> {
    source!("loss", keys, span).resolve(files, series::losses, |recording, _| Ok(recording.losses()))
}

/// Function that parses a file with one sample per line, each for the given time.
type ReadLines = fn(&str, Duration) -> core::result::Result<Recording, LineError>;

impl<T: Copy> Source<'_, T> {
    fn resolve(
        &self,
        files: &TraceFiles<'_>,
        read_lines: ReadLines,
        points: impl Fn(&Recording, &At<Path>) -> Result<Vec<(Instant, T)>>,
    ) -> Result<Recorded<T>> {
        match (self.steps, self.trace) {
            (Some(steps), None) => self.steps(&steps.value),
            (None, Some(path)) => {
                if let Some(wrong) = self.repeat {
                    bail!(wrong.span, "`repeat` goes with `steps`", "a recording starts over when it ends");
                }
                let recording = self.recording(path, files, read_lines)?;
                Ok(Recorded { points: points(&recording, path)?.into(), repeat: Some(recording.length) })
            }
            _ => Err(exactly_one(self.span, self.key, "steps, trace")),
        }
    }

    fn recording(&self, path: &At<Path>, files: &TraceFiles<'_>, lines: ReadLines) -> Result<Recording> {
        let every = interval_or("every", self.every, EVERY)?;
        let text = files.text(path)?;
        let recording = if series::is_table(&text) {
            if let Some(every) = self.every {
                let label = format!("{} is a table with times of its own", path.value.0);
                return Err(Fault::new(every.span, "`every` does not go with a table", label));
            }
            series::table(&text, self.column.map_or(COLUMN, |c| c.value.0.as_str()))
        } else {
            if let Some(column) = self.column {
                bail!(column.span, "`column` goes with a table", "this file has a number in each line");
            }
            lines(&text, every)
        };
        recording.map_err(|wrong| trace_fault(path, wrong))
    }

    fn steps(&self, steps: &Pairs<Instant, T>) -> Result<Recorded<T>> {
        for (key, given) in [("column", self.column.map(|c| c.span)), ("every", self.every.map(|e| e.span))] {
            if let Some(span) = given {
                bail!(span, "`{key}` goes with `trace`", "steps say their times");
            }
        }
        check_times_increase("steps", steps)?;
        if let Some(two) = steps.0.windows(2).find(|two| two[1].0.value.since(two[0].0.value) < SHORTEST_STEP)
        {
            bail!(two[1].0.span, "this step comes too soon", "at least {SHORTEST_STEP} after the one before");
        }
        let points: Arc<[_]> = steps.0.iter().map(|(at, value)| (at.value, value.value)).collect();
        let repeat = self.repeat.map(|r| repeat(r, &points)).transpose()?;
        Ok(Recorded { points, repeat })
    }
}

/// Returns the mean of a series over its length; without `repeat` it ends at the last point.
pub(super) fn mean(series: &Recorded<Duration>) -> Duration {
    let end = series.repeat.or_else(|| series.points.last().map(|p| Duration(p.0.0))).unwrap_or_default();
    let (mut sum, mut time) = (0_u128, 0_u128);
    let mut from = Instant::ZERO;
    for (i, &(_, value)) in series.points.iter().enumerate() {
        // the first value holds from time zero
        let to = series.points.get(i + 1).map_or(Instant(end.0), |p| p.0);
        let length = u128::from(to.since(from).0);
        (sum, time) = (sum + length * u128::from(value.0), time + length);
        from = to;
    }
    let single = || series.points.first().map_or(Duration::ZERO, |p| p.1);
    sum.checked_div(time).map_or_else(single, |mean| Duration(mean as u64))
}
