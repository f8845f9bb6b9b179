//! What to emulate.

use bentpipe_scenario::Scenario;
use std::ffi::OsString;
use std::path::PathBuf;

/// An emulation to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// Title, for people and for the session's name.
    pub title: String,
    /// Name of the session.
    pub name: Option<String>,
    /// The far end is this machine's own network.
    pub uplink: bool,
    /// How much faster the scenario's timeline runs.
    pub speed: f64,
    /// Ask for real-time priority.
    pub realtime: bool,
    /// Where to record all inputs.
    pub journal: Option<PathBuf>,
    /// A folder for the page, tables and captures.
    pub out: Option<PathBuf>,
    /// A shell command for the far end, beside the main command.
    pub far: Option<OsString>,
    /// The command, as words; empty to run the scenario's flows.
    pub command: Vec<OsString>,
}

impl Plan {
    /// A run of the scenario's own flows.
    pub fn new(scenario: Scenario, title: &str) -> Self {
        Self {
            scenario,
            title: title.to_owned(),
            name: None,
            uplink: false,
            speed: 1.0,
            realtime: true,
            journal: None,
            out: None,
            far: None,
            command: Vec::new(),
        }
    }
}
