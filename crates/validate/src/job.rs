//! One simulation: a scenario file of the repository, changes to it, and a seed.

use crate::figures;
use crate::observed::{Drops, RunResult};
use bentpipe_base::{Duration, Instant};
use bentpipe_scenario::Scenario;
use bentpipe_sim::{RecordOptions, SharedSink};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

/// Number of recording intervals of a recorded run.
const INTERVALS: u64 = 2000;

/// One simulation. Equal jobs give equal results, so each is run once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// The scenario file, from the root of the repository.
    pub file: &'static str,
    /// Scenario parameters, as with `--set`.
    pub parameters: Vec<(String, String)>,
    /// Seed of all random streams.
    pub seed: u64,
    /// Goodput is measured from this second to the end, if that is not what the scenario says.
    pub measure_from: Option<u64>,
    /// Record time series and drops.
    pub is_recorded: bool,
}

impl Job {
    /// A job with parameters `sets` and seed 1.
    pub fn new(file: &'static str, sets: &[(&str, &str)]) -> Self {
        let sets = sets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Self { file, parameters: sets, seed: 1, measure_from: None, is_recorded: false }
    }

    /// Returns the same job with goodput measured from this second on.
    #[must_use]
    pub fn measured_from(self, second: u64) -> Self {
        Self { measure_from: Some(second), ..self }
    }

    /// Returns the same job with time series and drops recorded.
    #[must_use]
    pub fn recorded(self) -> Self {
        Self { is_recorded: true, ..self }
    }

    /// Returns the same job with each of the seeds 1 to `runs`.
    pub fn seeds(&self, runs: u32) -> Vec<Self> {
        (1..=u64::from(runs)).map(|seed| Self { seed, ..self.clone() }).collect()
    }

    /// Returns the scenario to run.
    ///
    /// # Errors
    /// If the scenario cannot be read.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let source = figures::source(Path::new(self.file))?;
        let mut scenario = bentpipe_scenario::load(&source, &self.parameters, Some(self.seed))
            .map_err(|diagnostic| diagnostic.to_string())?;
        if let Some(second) = self.measure_from {
            let from = Instant::ZERO + Duration::from_secs(second);
            scenario.measure = Some((from, Instant::ZERO + scenario.duration));
        }
        Ok(scenario)
    }

    pub(crate) fn run(&self) -> Result<RunResult, String> {
        let scenario = self.scenario()?;
        if !self.is_recorded {
            return Ok(RunResult::of(bentpipe_sim::run(&scenario)));
        }
        let every = Duration(scenario.duration.0 / INTERVALS);
        let observe = RecordOptions { every, sequences: 0, ..RecordOptions::default() };
        let drops = Rc::new(RefCell::new(Drops::default()));
        let sink: SharedSink = drops.clone();
        let (report, record) = bentpipe_sim::run_recorded(&scenario, &observe, |_| Some(sink));
        let drops = core::mem::take(&mut drops.borrow_mut().0);
        Ok(RunResult { record: Some(record), drops, ..RunResult::of(report) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::BOTTLENECK;
    use bentpipe_report::LinkReport;

    fn bottleneck(run: &RunResult) -> &LinkReport {
        run.report.links.iter().find(|l| *l.name == *BOTTLENECK).unwrap()
    }

    #[test]
    fn goodput_is_measured_from_the_second_that_is_asked_for() {
        let job = Job::new("scenarios/sharing.toml", &[("duration", "20 s")]).measured_from(5);
        let (from, to) = job.scenario().unwrap().measure.unwrap();
        assert!((from.as_secs_f64() - 5.0).abs() < 1e-12 && (to.as_secs_f64() - 20.0).abs() < 1e-12);
    }

    #[test]
    fn a_transfer_is_observed_and_repeats() {
        let job = Job::new("scenarios/transfer.toml", &[("size", "10 kB")]);
        let twice = [job.run().unwrap(), job.run().unwrap()];
        assert_eq!(format!("{:?}", twice[0]), format!("{:?}", twice[1]));
        let bottleneck = bottleneck(&twice[0]);
        assert!(
            twice[0].metric("finished") > 1.0 && bottleneck.packets > 10 && bottleneck.utilisation > 0.01
        );
        assert!(twice[0].record.is_none() && twice[0].report.links.len() == 2, "{twice:?}");
    }

    #[test]
    fn a_watched_run_keeps_drops_and_series_and_changes_nothing() {
        let job = Job::new("scenarios/burst.toml", &[("buffer", "30 packets")]);
        let seen = [job.run().unwrap(), job.recorded().run().unwrap()];
        assert!((seen[0].metric("goodput") - seen[1].metric("goodput")).abs() < 1e-9);
        let queue_full = bentpipe_base::trace::DropCause::QueueFull;
        let dropped = bottleneck(&seen[1]).drops[queue_full.key()];
        assert_eq!(seen[1].drops.len() as u64, dropped);
        assert!(
            dropped > 10
                && seen[1].drops.iter().all(|d| d.cause == queue_full && d.next_offset == d.offset + 1000)
        );
        assert!(seen[1].record.as_ref().unwrap().time_s.len() > 500);
    }

    #[test]
    fn an_unfinished_transfer_is_not_a_fast_one() {
        let job = Job::new("scenarios/transfer.toml", &[("size", "1 GB")]);
        assert!(job.run().unwrap().metric("finished").is_nan());
    }

    #[test]
    fn a_wrong_parameter_is_reported() {
        assert!(Job::new("scenarios/window.toml", &[("buffer", "1")]).run().is_err());
    }
}
