//! What to emulate.

use crate::far::{self, Ready};
use bentpipe_base::Duration;
use bentpipe_results::Formats;
use bentpipe_scenario::Scenario;
use std::ffi::OsString;
use std::net::SocketAddr;
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
    /// Files of pictures in it.
    pub pictures: Formats,
    /// A shell command for the far end, beside the main command.
    pub far: Option<OsString>,
    /// What the main command waits for at the far end, and how long.
    pub far_ready: (Ready, Duration),
    /// Where Prometheus finds metrics, in the network in which the session was started.
    pub metrics: Option<SocketAddr>,
    /// Make a report, also without a folder.
    pub report: bool,
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
            pictures: Formats::default(),
            far: None,
            far_ready: (Ready::First, far::USUAL_LIMIT),
            metrics: None,
            report: false,
            command: Vec::new(),
        }
    }
}
