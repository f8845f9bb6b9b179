//! One simulation: a committed scenario file, what is changed about it, a seed; and what is kept of its report.

use bentpipe_base::{Duration, Instant};
use bentpipe_scenario::{Scenario, Source};
use bentpipe_sim::Report;
use bentpipe_tcp::Growth;
use rayon::prelude::*;

/// A committed scenario file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    /// `scenarios/sharing.toml`
    Sharing,
    /// `scenarios/window.toml`
    Window,
    /// `scenarios/burst.toml`
    Burst,
    /// `scenarios/transfer.toml`
    Transfer,
}

impl File {
    /// Path from the root of the repository.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Sharing => "scenarios/sharing.toml",
            Self::Window => "scenarios/window.toml",
            Self::Burst => "scenarios/burst.toml",
            Self::Transfer => "scenarios/transfer.toml",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Sharing => include_str!("../../../scenarios/sharing.toml"),
            Self::Window => include_str!("../../../scenarios/window.toml"),
            Self::Burst => include_str!("../../../scenarios/burst.toml"),
            Self::Transfer => include_str!("../../../scenarios/transfer.toml"),
        }
    }
}

/// What is changed about a scenario that its parameters do not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing.
    None,
    /// CUBIC as in the Linux of 2008 and in ns-2: beta 0.8, no HyStart.
    OldCubic,
    /// Goodput counts from this second to the end.
    MeasureFrom(u64),
}

/// One simulation. Equal jobs give equal results, so each is run once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// The scenario file.
    pub file: File,
    /// Parameters, as after `--set`.
    pub sets: Vec<(String, String)>,
    /// Seed of every random stream.
    pub seed: u64,
    /// What else is changed.
    pub change: Change,
}

/// What is kept of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// Sum of the flows' goodputs, B/s.
    pub goodput: f64,
    /// When the last transfer was finished, in seconds; not a number when none was.
    pub finished_s: f64,
    /// Seconds the bottleneck spent serialising.
    pub busy_s: f64,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Packets the bottleneck sent.
    pub packets: u64,
    /// Of these, lost as a whole.
    pub lost: u64,
    /// Of these, lost to bit errors.
    pub corrupted: u64,
    /// Most packets that waited for the bottleneck.
    pub queue_peak: u32,
}

impl Job {
    /// A job with seed 1 and parameters `sets`.
    pub fn new(file: File, sets: &[(&str, &str)]) -> Self {
        let sets = sets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Self { file, sets, seed: 1, change: Change::None }
    }

    /// The same with another `change`.
    #[must_use]
    pub fn with(mut self, change: Change) -> Self {
        self.change = change;
        self
    }

    /// The same with seeds 1 to `runs`.
    pub fn seeds(&self, runs: u32) -> Vec<Self> {
        (1..=u64::from(runs)).map(|seed| Self { seed, ..self.clone() }).collect()
    }

    /// The scenario to run.
    ///
    /// # Errors
    /// What the scenario file's reader says.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let source = Source::new(self.file.path(), self.file.text());
        let mut scenario = bentpipe_scenario::load(&source, &self.sets, Some(self.seed))
            .map_err(|diagnostic| diagnostic.to_string())?;
        match self.change {
            Change::None => {}
            Change::OldCubic => {
                for flow in &mut scenario.flows {
                    if let Growth::Cubic(cubic) = &mut flow.sender.scheme.growth {
                        cubic.beta = 0.8;
                        cubic.hystart = false;
                    }
                }
            }
            Change::MeasureFrom(second) => {
                let from = Instant::ZERO + Duration::from_secs(second);
                scenario.measure = Some((from, Instant::ZERO + scenario.duration));
            }
        }
        Ok(scenario)
    }

    fn run(&self) -> Result<Observed, String> {
        Ok(observe(&bentpipe_sim::run(&self.scenario()?)))
    }
}

fn observe(report: &Report) -> Observed {
    let finished = report.flows.iter().map(|f| f.finished_s.unwrap_or(f64::NAN));
    let mut seen = Observed {
        goodput: report.total.goodput_bps / 8.0,
        finished_s: finished.fold(0.0, |latest, t| if t.is_nan() || t > latest { t } else { latest }),
        simulated_s: report.simulated_s,
        ..Observed::default()
    };
    if let Some(link) = report.links.iter().find(|l| l.name == "bottleneck") {
        let drops = |cause: &str| link.drops.get(cause).and_then(serde_json::Value::as_u64).unwrap_or(0);
        seen.busy_s = link.utilisation * report.simulated_s;
        seen.packets = link.packets;
        seen.lost = drops("packet_loss");
        seen.corrupted = drops("bit_error");
        seen.queue_peak = link.queue_packets.peak;
    }
    seen
}

/// Runs all jobs, in parallel; results are in the order of `jobs`.
///
/// # Errors
/// That of the first job whose scenario cannot be read.
pub fn run_all(jobs: &[Job]) -> Result<Vec<Observed>, String> {
    jobs.par_iter().map(Job::run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_arrive() {
        let job = Job::new(File::Sharing, &[("tcp", "cubic"), ("duration", "20 s")]);
        let scenario = job.clone().with(Change::OldCubic).scenario().unwrap();
        let Growth::Cubic(cubic) = scenario.flows[0].sender.scheme.growth else { panic!("not CUBIC") };
        assert!((cubic.beta - 0.8).abs() < 1e-12 && !cubic.hystart);
        let (from, to) = job.with(Change::MeasureFrom(5)).scenario().unwrap().measure.unwrap();
        assert!((from.as_secs_f64() - 5.0).abs() < 1e-12 && (to.as_secs_f64() - 20.0).abs() < 1e-12);
    }

    #[test]
    fn a_transfer_is_observed_and_repeats() {
        let job = Job::new(File::Transfer, &[("size", "10 kB")]);
        let twice = run_all(&[job.clone(), job]).unwrap();
        assert_eq!(twice[0], twice[1]);
        assert!(twice[0].finished_s > 1.0 && twice[0].packets > 10 && twice[0].busy_s > 0.05);
    }

    #[test]
    fn an_unfinished_transfer_is_not_a_fast_one() {
        let job = Job::new(File::Transfer, &[("size", "1 GB")]);
        assert!(run_all(&[job]).unwrap()[0].finished_s.is_nan());
    }

    #[test]
    fn a_wrong_parameter_is_reported() {
        assert!(run_all(&[Job::new(File::Window, &[("buffer", "1")])]).is_err());
    }
}
