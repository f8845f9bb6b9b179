//! Makes live runs: one after the other, since a second one would take the machine's time from the first.

use super::plan::LivePlan;
use super::{LiveError, LiveRun, LiveRunner};
use crate::Summary;
use crate::error::Error;
use crate::figure::Run;
use crate::progress::{LiveProgress, Progress, Tell};
use crate::store::{Course, Store};
use bentpipe_report::Report;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// Time to set up and remove namespaces and links, beside the length of a run, s. A run of many hosts needs
/// more than one second.
const SETUP_S: f64 = 1.5;

/// A run with its course.
pub(crate) struct LiveResult {
    pub(crate) report: Report,
    pub(crate) course: Course,
}

impl LiveResult {
    /// Why it is not to be trusted; empty if it is.
    pub(crate) fn doubts(&self) -> Vec<String> {
        match &self.report.live {
            None => vec!["it has no report of its timing".to_owned()],
            Some(live) if live.trusted => Vec::new(),
            Some(live) if live.doubts.is_empty() => vec!["no reason was given".to_owned()],
            Some(live) => live.doubts.clone(),
        }
    }
}

/// Live runs by the names of the simulated runs beside them.
pub(crate) type LiveResults = BTreeMap<String, LiveResult>;

/// Name of a live run in the store. `key` is that of the simulated run with the same scenario.
fn live_key(key: &str) -> String {
    blake3::hash(format!("live\n{key}").as_bytes()).to_hex().to_string()
}

/// A run to be made.
struct Missing<'a> {
    plan: &'a LivePlan<'a>,
    run: &'a Run,
    /// Expected time, s.
    takes: f64,
}

/// Checks that the machine can make all live runs.
pub(crate) fn check(plans: &[&LivePlan<'_>], runner: Option<&dyn LiveRunner>) -> Result<(), Error> {
    let Some(runner) = runner else { return Ok(()) };
    for (plan, run) in plans.iter().flat_map(|plan| plan.runs().map(move |run| (plan, run))) {
        runner.check(&run.load(&plan.job)?).map_err(Error::Live)?;
    }
    Ok(())
}

/// Makes the missing live runs. The simulated ones must be in the store. A run whose timing the machine
/// doubts is repeated once. Runs to be trusted are kept, as simulated ones are.
pub(crate) fn make_live(
    plans: &[&LivePlan<'_>],
    store: &Store,
    runner: &dyn LiveRunner,
    (simulated, tell): (Summary, Tell<'_>),
) -> Result<(LiveResults, Summary), Error> {
    let (mut results, mut seen, mut wanted) = (LiveResults::new(), BTreeSet::new(), Vec::new());
    for (plan, run) in plans.iter().flat_map(|plan| plan.runs().map(move |run| (plan, run))) {
        let key = run.key.as_str();
        if !seen.insert(key) {
            continue;
        }
        if let Some((report, course)) = store.read_with_course(&live_key(key)) {
            results.insert(key.to_owned(), LiveResult { report, course });
            continue;
        }
        let simulated_s = store.read(key).map_or(run.cost, |report| report.simulated_s);
        wanted.push(Missing { plan, run, takes: simulated_s + SETUP_S });
    }
    let summary = Summary { executed: wanted.len(), already_stored: results.len() };
    let runs = simulated.executed + simulated.already_stored;
    for (n, Missing { plan, run, .. }) in wanted.iter().enumerate() {
        let left: f64 = wanted[n..].iter().map(|m| m.takes).sum();
        tell(&Progress {
            done: runs,
            of: runs,
            left: Some(Duration::from_secs_f64(left)),
            live: Some(LiveProgress { done: n, of: wanted.len() }),
            ..Progress::default()
        });
        let made = make(plan, run, runner).map_err(Error::Live)?;
        if made.doubts().is_empty() {
            store.write(&live_key(&run.key), made.report.clone(), &made.course)?;
        }
        results.insert(run.key.clone(), made);
    }
    Ok((results, summary))
}

/// Makes a run, and once more if the first one is not to be trusted.
fn make(plan: &LivePlan<'_>, run: &Run, runner: &dyn LiveRunner) -> Result<LiveResult, LiveError> {
    let input = |error: Error| LiveError { text: error.to_string(), refused: true };
    let scenario = run.load(&plan.job).map_err(input)?;
    crate::check_key(&plan.plan.key(&scenario), &run.key).map_err(input)?;
    let once = || {
        let LiveRun { report, record } = runner.run(&scenario)?;
        let course = plan.plan.recording.as_ref().map_or_else(Course::new, |r| r.course(&report, &record));
        Ok(LiveResult { report, course })
    };
    let first = once()?;
    if first.doubts().is_empty() { Ok(first) } else { once() }
}
