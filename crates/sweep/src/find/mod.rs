//! Finds the value of a parameter at which a metric crosses a threshold: runs a scenario with the values that
//! the search asks for, with the same seeds each, on all cores.
//!
//! Runs are those of a sweep: with a folder, finished ones are kept there, and are used again by the same
//! search, by one with another threshold and by sweeps. The answer does not depend on threads or on what was
//! kept.

mod condition;
mod page;
mod search;
mod vary;
mod words;

pub use condition::{Comparison, Condition};
pub use search::Crossing;
pub use vary::Vary;

use crate::error::{Error, metric_error};
use crate::plan::{Job, Plan, Run};
use crate::progress::{Tell, Tracker};
use crate::store::{Course, Store};
use crate::{Summary, planned, threads};
use bentpipe_report::Report;
use bentpipe_scenario::SweepSpec;
use bentpipe_sim::run_while;
use rayon::ThreadPool;
use rayon::prelude::*;
use search::{MAX_VALUES, Point, search};
use std::path::Path;

/// A search as requested.
pub struct Find<'a> {
    /// File, parameters, seeds and threads. Its axes, metrics, precision and shard are not used.
    pub job: Job<'a>,
    /// What is varied.
    pub vary: Vary,
    /// What is looked for.
    pub until: Condition,
    /// Asked at times, also during runs: the search is abandoned once it says no.
    pub go_on: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// What was found.
#[derive(Debug)]
pub struct Found {
    /// The crossing; `None` if none was found in the range.
    pub crossing: Option<Crossing>,
    /// True if only integers are values of the parameter.
    pub whole: bool,
    /// Number of runs of each value.
    pub seeds: usize,
    /// Number of runs that the answer is based on, also those kept from before.
    pub runs: usize,
    /// Numbers of runs made and kept.
    pub summary: Summary,
    title: String,
    points: Vec<Point>,
}

/// Runs `find`. Without `out` nothing is written. `tell` is called after every run.
///
/// # Errors
/// The first error in the input, or a file that cannot be read or written.
pub fn find(find: &mut Find<'_>, out: Option<&Path>, tell: Tell<'_>) -> Result<Found, Error> {
    check(find)?;
    let vary = &find.vary;
    // both bounds are known to be fine: what only a fraction breaks is a count
    let half = |vary: &Vary| find.job.load_with(&vary.name, &vary.text(vary.low + 0.5)).is_err();
    let whole = vary.may_be_whole() && (vary.counts_pieces() || half(vary));
    find.vary.whole = whole;
    let pool = threads(find.job.threads)?;
    let mut runner = Runner {
        find,
        tracker: Tracker::new(pool.current_num_threads(), true, tell),
        pool,
        store: out.map(Store::open).transpose()?,
        title: String::new(),
        summary: Summary { executed: 0, already_stored: 0 },
        values: 0,
    };
    let (points, crossing) = search(&find.vary, &find.until, &mut |values| runner.evaluate(values))?;
    let Runner { summary, title, .. } = runner;
    let seeds = find.job.spec.seeds as usize;
    let found = Found { crossing, whole, seeds, runs: points.len() * seeds, summary, title, points };
    if let Some(out) = out {
        page::write(&found, find, out)?;
    }
    Ok(found)
}

/// Checks both bounds before anything is run or written.
fn check(find: &Find<'_>) -> Result<(), Error> {
    let Vary { low, high, .. } = find.vary;
    let fault = |text: String| Err(Error::Input(text));
    if low.partial_cmp(&high) != Some(core::cmp::Ordering::Less) {
        return fault(format!(
            "the range from {low} to {high} is empty: the first bound must be the lower one"
        ));
    }
    if find.job.spec.seeds as usize > crate::MAX_RUNS / MAX_VALUES {
        return fault(format!("there are too many seeds: at most {}", crate::MAX_RUNS / MAX_VALUES));
    }
    let job = find.job_of(&[low, high]);
    Plan::new(&job)?.compute_keys(&job)
}

impl Find<'_> {
    /// Returns the sweep over these values.
    fn job_of(&self, values: &[f64]) -> Job<'_> {
        let Job { source, files, ref sets, seed, ref spec, threads, .. } = self.job;
        let texts = values.iter().map(|v| self.vary.text(*v)).collect();
        let spec = SweepSpec {
            axes: vec![(self.vary.name.clone(), texts)],
            measure: vec![self.until.metric.text().to_owned()],
            precision: None,
            ..spec.clone()
        };
        Job { source, files, sets: sets.clone(), seed, spec, shard: None, threads }
    }
}

/// Makes the runs that a search asks for.
struct Runner<'a> {
    find: &'a Find<'a>,
    pool: ThreadPool,
    store: Option<Store>,
    title: String,
    summary: Summary,
    tracker: Tracker<'a>,
    /// Number of values tried so far.
    values: usize,
}

impl Runner<'_> {
    /// Returns, for each value, the metric of each of its runs.
    fn evaluate(&mut self, values: &[f64]) -> Result<Vec<Vec<Option<f64>>>, Error> {
        let job = self.find.job_of(values);
        let mut plan = Plan::new(&job)?;
        self.pool.install(|| plan.compute_keys(&job))?;
        let cell = |run: &Run| self.values + run.cell;
        self.tracker.announce(0, plan.runs.iter().map(cell));
        let one = |run: &Run| self.tracker.run(cell(run), || self.value(&job, &plan, run), |(_, kept)| !kept);
        let results: Vec<(Option<f64>, bool)> =
            self.pool.install(|| plan.runs.par_iter().with_max_len(1).map(one).collect::<Result<_, _>>())?;
        let kept = results.iter().filter(|(_, kept)| *kept).count();
        self.summary.already_stored += kept;
        self.summary.executed += results.len() - kept;
        self.values += values.len();
        // runs are in the order of cells and seeds
        let mut of_values = vec![Vec::new(); values.len()];
        for (run, (value, _)) in plan.runs.iter().zip(results) {
            of_values[run.cell].push(value);
        }
        self.title = plan.title;
        Ok(of_values)
    }

    /// Returns the metric of a run, and true if the run was kept from before.
    fn value(&self, job: &Job<'_>, plan: &Plan, run: &Run) -> Result<(Option<f64>, bool), Error> {
        let metric = &self.find.until.metric;
        let of = |report: &Report| metric.of(report).map_err(|e| metric_error(metric.text(), e));
        if let Some(report) = self.store.as_ref().and_then(|store| store.read(&run.key)) {
            return Ok((of(&report)?, true));
        }
        let scenario = planned(job, plan, run)?;
        let report = match self.find.go_on {
            None => bentpipe_sim::run(&scenario),
            Some(mut go_on) => {
                let done = if go_on() { run_while(&scenario, None, &mut go_on) } else { None };
                done.ok_or_else(|| Error::Input("the search was interrupted".to_owned()))?.0
            }
        };
        let value = of(&report)?;
        if let Some(store) = &self.store {
            store.write(&run.key, report, &Course::new())?;
        }
        Ok((value, false))
    }
}
