//! Figures with real packets: what the table `[live]` of a file names is run live, one run after the other
//! and nothing beside it, after simulated runs with the same parameters and seeds. A live value is judged by
//! the mean of these.
//!
//! Who runs packets is the caller's: this crate knows the emulator only as a [`LiveRunner`].

mod plan;
mod points;
mod run;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use plan::{LivePlan, file_of};
pub use points::LiveVerdict;
pub(crate) use points::{LivePart, judged_cells, points};
pub(crate) use run::{LiveResults, check, make_live};
pub(crate) use tables::{Named, csv, draw, html, text};

use bentpipe_report::Report;
use bentpipe_scenario::Scenario;
use bentpipe_sim::Record;
use core::fmt;

/// Name of the table of live values in the folder of a figure or of papers.
pub const LIVE_TABLE: &str = "live.csv";

/// Runs scenarios with real packets.
pub trait LiveRunner {
    /// Checks that the scenario can be run here.
    ///
    /// # Errors
    /// What is missing, and what to do.
    fn check(&self, scenario: &Scenario) -> Result<(), LiveError>;

    /// Runs the scenario in real time.
    ///
    /// # Errors
    /// What is missing, or what failed.
    fn run(&self, scenario: &Scenario) -> Result<LiveRun, LiveError>;
}

/// A live run.
#[derive(Clone, Debug)]
pub struct LiveRun {
    /// Its report, which has a part [`Report::live`].
    pub report: Report,
    /// Its course.
    pub record: Record,
}

/// Why a live run is not possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveError {
    /// What is wrong, and what to do.
    pub text: String,
    /// The user's permissions, machine or input are the reason, not this program.
    pub refused: bool,
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
