//! Resolves `start` of flows: one time for all, a random time for each, or one after another.

use super::check_order;
use crate::diagnostic::{Fault, Result, bail};
use crate::form::{At, OrTable};
use crate::keys::{FlowKeys, StartKeys};
use crate::types::Start;
use bentpipe_base::{Duration, Instant};

/// Start times of the flows of a group.
#[derive(Clone, Copy)]
pub(super) struct Starts {
    first: Start,
    /// Time from one flow to the next; zero for a random start.
    every: Duration,
}

impl Starts {
    /// Returns the start of flow `n` of the group, counted from 0.
    pub(super) fn of(self, n: u64) -> Start {
        match self.first {
            Start::At(at) => Start::At(at + self.every * n),
            Start::Uniform(from, to) => Start::Uniform(from, to),
        }
    }
}

/// Resolves the start of a group. Every flow of it starts before the end of the run.
pub(super) fn resolve(keys: &FlowKeys, duration: Duration) -> Result<Starts> {
    let Some(given) = &keys.start else {
        return Ok(Starts { first: Start::At(Instant::ZERO), every: Duration::ZERO });
    };
    if let OrTable::Table(table) = &given.value
        && let Some(every) = table.every
    {
        return one_by_one(keys, table, every, duration);
    }
    let (first, is_late, span) = match &given.value {
        OrTable::Plain(at) => (Start::At(*at), at.0 >= duration.0, given.span),
        OrTable::Table(table) => {
            let missing = |key: &str| Fault::missing(given.span, "`start`", key);
            let from = table.from.ok_or_else(|| missing("from"))?;
            let to = table.to.ok_or_else(|| missing("to"))?;
            check_order("start", from, to)?;
            // A random start is before `to`, so `to` may be the end of the run.
            (Start::Uniform(from.value, to.value), to.value.0 > duration.0, to.span)
        }
    };
    if is_late {
        bail!(span, "the flow starts after the run", "the run lasts {duration}");
    }
    Ok(Starts { first, every: Duration::ZERO })
}

/// Resolves `start = { every = ... }`: equal intervals between the flows of a `count`.
fn one_by_one(keys: &FlowKeys, table: &StartKeys, every: At<Duration>, duration: Duration) -> Result<Starts> {
    if let Some(to) = table.to {
        let label = "`every` and `from` say all starts: drop one of the two";
        return Err(Fault::new(to.span, "`to` and `every` exclude each other", label));
    }
    let Some(count) = keys.count else {
        bail!(every.span, "`every` is between the flows of a `count`", "this is one flow: give `count`");
    };
    let step = every.positive("every")?;
    let first = table.from.map_or(Instant::ZERO, |from| from.value);
    let last = first + step * (count.value.0 - 1);
    if last.0 >= duration.0 {
        let span = table.from.filter(|_| first.0 >= duration.0).map_or(every.span, |from| from.span);
        let label = format!("that would be at {}, and the run lasts {duration}", Duration(last.0));
        return Err(Fault::new(span, "the last of these flows starts after the run", label));
    }
    Ok(Starts { first: Start::At(first), every: step })
}
