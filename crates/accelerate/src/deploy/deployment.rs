//! Parameters for running a gateway.

use super::engine::{Event, Level, Start};
use super::error::Error;
use bentpipe_scenario::gateway_file::GatewayFile;
use bentpipe_service::Registry;

/// A gateway to be run.
pub struct Deployment<'a> {
    /// Path of its file, as shown in messages.
    pub path: &'a str,
    /// Reads the file again.
    pub read: &'a dyn Fn() -> Result<GatewayFile, Error>,
    /// Registry of session files.
    pub registry: Registry,
    /// Starts the data path.
    pub start: Start,
    /// If a gateway of this name is running and nothing else prevents the start, stop it and resume its
    /// connections.
    pub replace: bool,
    /// Receives log events.
    pub log: &'a mut dyn FnMut(&Event),
}

impl Deployment<'_> {
    pub(super) fn say(&mut self, level: Level, name: &'static str, text: impl Into<String>) {
        (self.log)(&Event { level, name, text: text.into() });
    }

    pub(super) fn inform(&mut self, name: &'static str, text: impl Into<String>) {
        self.say(Level::Info, name, text);
    }

    pub(super) fn warn(&mut self, name: &'static str, text: impl Into<String>) {
        self.say(Level::Warning, name, text);
    }
}
