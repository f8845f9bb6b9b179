//! Results of a live run: the same report, tables, plots and captures as of a simulated one.
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

/// Default snap length of a capture, and its maximum file size: 256 MiB.
const SNAP: Size = Size(65_535);
const LIMIT: Size = Size(256 << 20);
/// Most captures of a scenario.
const MOST_CAPTURES: usize = 64;

/// Flows of a live run: those of the scenario, or those of programs.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// A report for each.
    pub reports: Vec<FlowReport>,
    /// Their time series, on a time axis of their own.
    pub record: Record,
    /// Problems, one line each.
    pub faults: Vec<String>,
    /// True if they are the scenario's own flows, in its order.
    pub of_scenario: bool,
}

/// Adds captures for all other directions to `scenario`, up to the limit.
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

/// The folder of a running experiment.
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

/// Results of a run besides those of its links.
#[derive(Debug, Default)]
pub struct Beside {
    /// Its flows.
    pub flows: Flows,
    /// Differences between the kernel and the scenario, one line each.
    pub differs: Vec<String>,
}

impl Recording {
    /// Creates the folder and starts the captures of `scenario`, before the links run, so that write errors
    /// show at once. `clock` is the run's.
    ///
    /// # Errors
    /// When the folder or a file in it cannot be created.
    pub fn begin(dir: &Path, scenario: &Scenario, clock: Clock) -> Result<Self, Error> {
        // the process may change its working directory
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

    /// Returns what must be installed on the network; once.
    pub fn take_install(&mut self) -> Option<Install> {
        self.install.take()
    }

    /// Completes the folder, after the links have stopped. Returns the report and the files, the page first.
    ///
    /// # Errors
    /// When a file cannot be written. The other files are written.
    pub fn finish(self, outcome: &Outcome, beside: Beside) -> Result<(Report, Vec<PathBuf>), Error> {
        // otherwise a tap that was never installed keeps the writer waiting
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
