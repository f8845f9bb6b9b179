//! Results of a live run: the same report, tables, plots and captures as of a simulated one.
//!
//! ```text
//!  Recording::begin -> tap on the data thread -> chunks -> writer thread -> *.pcapng
//!  Watch (sock_diag, 10 times a second) or flows of the scenario's own -> FlowResults
//!  live::Outcome + FlowResults -> assemble -> Report, Record -> results::write
//! ```

mod capture;
mod connections;
mod flow;
mod live;
mod watch;

pub(crate) use live::assemble;
pub(crate) use watch::Watch;

use crate::flows::FlowResults;
use crate::session::ends;
use bentpipe_base::{Instant, Size};
use bentpipe_live::Outcome;
use bentpipe_live::thread::Install;
use bentpipe_os::Clock;
use bentpipe_report::Report;
use bentpipe_results::{Error, Formats, make_folder};
use bentpipe_scenario::{CaptureSpec, Direction, LinkSpec, Scenario};
use bentpipe_sim::Record;
use capture::Capture;
use std::path::{Path, PathBuf};

/// Default snap length of a capture, and its maximum file size: 256 MiB.
const SNAP: Size = Size(65_535);
const LIMIT: Size = Size(256 << 20);
/// Most captures of a scenario.
const MOST_CAPTURES: usize = 64;

/// Which links are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// That of the host where commands run.
    Near,
    /// That of the host at the other end.
    Far,
    /// Those of both.
    Ends,
    /// All.
    All,
}

impl Place {
    fn has(self, link: &LinkSpec, scenario: &Scenario) -> bool {
        let touches = |node: usize| link.a == node || link.b == node;
        let ends = || ends(scenario).map(|nodes| nodes.map(touches));
        match self {
            Self::All => true,
            Self::Near => ends().is_some_and(|[near, _]| near),
            Self::Far => ends().is_some_and(|[_, far]| far),
            Self::Ends => ends().is_some_and(|[near, far]| near || far),
        }
    }
}

/// Adds captures to `scenario` for both directions of the links at `place` that have none, up to the limit.
pub fn capture(scenario: &mut Scenario, place: Place) {
    let (from, to) = (Instant::ZERO, Instant::ZERO + scenario.duration);
    let links: Vec<usize> =
        (0..scenario.links.len()).filter(|i| place.has(&scenario.links[*i], scenario)).collect();
    for at in links.into_iter().flat_map(|link| [false, true].map(|backward| Direction { link, backward })) {
        let known = scenario.captures.iter().any(|c| c.link == at);
        if !known && scenario.captures.len() < MOST_CAPTURES {
            scenario.captures.push(CaptureSpec { link: at, from, to, snap: SNAP, limit: LIMIT });
        }
    }
}

/// The folder of a running experiment.
#[derive(Debug)]
pub struct Recording {
    dir: PathBuf,
    scenario: Scenario,
    capture: Option<Capture>,
    pictures: Formats,
}

impl Recording {
    /// Creates the folder and starts the captures of `scenario`, before the links run, so that write errors
    /// show at once. `clock` is the run's. Returns also what must be installed on the network.
    ///
    /// # Errors
    /// When the folder or a file in it cannot be created.
    pub fn begin(dir: &Path, scenario: &Scenario, clock: Clock) -> Result<(Self, Option<Install>), Error> {
        // the process may change its working directory
        let dir = std::path::absolute(dir).map_err(|cause| Error::io(dir, "find the folder", cause))?;
        make_folder(&dir)?;
        let is_wanted = !scenario.captures.is_empty();
        let capture = is_wanted.then(|| Capture::begin(&dir, scenario, clock)).transpose()?;
        let (capture, install) = capture.unzip();
        let (scenario, pictures) = (scenario.clone(), Formats::default());
        Ok((Self { dir, scenario, capture, pictures }, install))
    }

    /// The folder gets the pictures as files, too.
    #[must_use]
    pub(crate) fn with_pictures(self, pictures: Formats) -> Self {
        Self { pictures, ..self }
    }

    /// Completes the folder, after the links have stopped and what was to be installed is gone. Returns the
    /// report, the course, and the files, the page first. If a file cannot be written, the others are.
    ///
    /// # Errors
    /// When a file cannot be written. The other files are written.
    pub fn finish(
        self,
        outcome: &Outcome,
        flows: FlowResults,
    ) -> Result<(Report, Record, Vec<PathBuf>), Error> {
        let (captures, fault) = match self.capture.map_or(Ok(Vec::new()), |c| c.finish(outcome.until)) {
            Ok(captures) => (captures, None),
            Err(fault) => (Vec::new(), Some(fault)),
        };
        let (mut report, record) = assemble(&self.scenario, outcome, flows);
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
        let files = bentpipe_results::write(&self.dir, &results, self.pictures)?;
        fault.map_or(Ok((report, record, files)), Err)
    }
}
