//! What a live run leaves behind: the same report, tables, pictures and captures as a simulated one.
//!
//! ```text
//!  Recording::begin -> tap on the data thread -> chunks -> writer thread -> *.pcapng
//!  Watch (sock_diag, 10 times a second) or flows of the scenario's own -> Flows
//!  live::Outcome + Flows -> assemble -> Report, Record -> results::write
//! ```

mod capture;
mod connections;
mod flow;
mod live;
mod ours;
mod watch;

pub use live::{assemble, live_report};
pub use watch::{Seat, Watch};

use bentpipe_base::{Instant, Size};
use bentpipe_live::Outcome;
use bentpipe_live::thread::Install;
use bentpipe_os::Clock;
use bentpipe_report::{FlowReport, Report};
use bentpipe_results::{Error, make_folder};
use bentpipe_scenario::{CaptureSpec, Direction, Scenario};
use bentpipe_sim::Record;
use capture::Capture;
use std::path::{Path, PathBuf};

/// Kept of each packet of a capture that nobody described, and its longest file: 256 MiB.
const SNAP: Size = Size(65_535);
const LIMIT: Size = Size(256 << 20);
/// Most captures of a scenario.
const MOST_CAPTURES: usize = 64;

/// Flows of a live run: those of the scenario, or those of programs.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// A report for each.
    pub reports: Vec<FlowReport>,
    /// Their series, on a time axis of their own.
    pub record: Record,
    /// What went wrong with them, a line each.
    pub faults: Vec<String>,
    /// They are the scenario's own, in its order.
    pub of_scenario: bool,
}

/// Lets `scenario` capture every direction that it does not capture already, as far as a scenario may.
pub fn capture_everything(scenario: &mut Scenario) {
    let (from, to) = (Instant::ZERO, Instant::ZERO + scenario.duration);
    for index in 0..2 * scenario.links.len() {
        let at = Direction { link: index / 2, backward: index % 2 == 1 };
        let known = scenario.captures.iter().any(|c| c.at == at);
        if !known && scenario.captures.len() < MOST_CAPTURES {
            scenario.captures.push(CaptureSpec { at, from, to, snap: SNAP, limit: LIMIT });
        }
    }
}

/// The folder of a run that is under way.
pub struct Recording {
    dir: PathBuf,
    scenario: Scenario,
    capture: Option<Capture>,
    install: Option<Install>,
}

impl core::fmt::Debug for Recording {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Recording")
            .field("dir", &self.dir)
            .field("capture", &self.capture)
            .finish_non_exhaustive()
    }
}

/// What a run gave beside its links' own outcome.
#[derive(Debug, Default)]
pub struct Beside {
    /// Its flows.
    pub flows: Flows,
    /// What the kernel could not do as the scenario asks, a line each.
    pub differs: Vec<String>,
}

impl Recording {
    /// Makes the folder and begins the captures of `scenario`, before the links run: what cannot be written
    /// is known at once. `clock` is the run's.
    ///
    /// # Errors
    /// When the folder or a file in it cannot be made.
    pub fn begin(dir: &Path, scenario: &Scenario, clock: Clock) -> Result<Self, Error> {
        // the run may go somewhere else, its results may not
        let dir = std::path::absolute(dir).map_err(|cause| Error::Io {
            path: dir.to_owned(),
            doing: "find the folder",
            cause,
        })?;
        make_folder(&dir)?;
        let mut this = Self { dir, scenario: scenario.clone(), capture: None, install: None };
        if !scenario.captures.is_empty() {
            let (capture, install) = Capture::begin(&this.dir, scenario, clock)?;
            this.capture = Some(capture);
            this.install = Some(install);
        }
        Ok(this)
    }

    /// What is to be installed on the network; once.
    pub fn take_install(&mut self) -> Option<Install> {
        self.install.take()
    }

    /// Completes the folder, after the links have ended. Gives the report and the files, the page first.
    ///
    /// # Errors
    /// When a file cannot be written. What can be written is.
    pub fn finish(self, outcome: &Outcome, beside: Beside) -> Result<(Report, Vec<PathBuf>), Error> {
        // a tap that was never installed would keep the writer waiting
        drop(self.install);
        let captured = self.capture.map_or(Ok(Vec::new()), |c| c.finish(outcome.until));
        let (captures, fault) = match captured {
            Ok(captures) => (captures, None),
            Err(fault) => (Vec::new(), Some(fault)),
        };
        let (mut report, record) = assemble(&self.scenario, outcome, beside);
        if let Some(live) = &mut report.live {
            live.captures_lack = captures.iter().map(|c| c.lost).sum();
            live.faults.extend(fault.iter().map(|f| format!("captures: {f}")));
        }
        let results = bentpipe_results::Outcome {
            scenario: &self.scenario,
            report: &report,
            record: &record,
            captures: &captures,
        };
        let files = bentpipe_results::write(&self.dir, &results)?;
        match fault {
            Some(fault) => Err(fault),
            None => Ok((report, files)),
        }
    }
}
