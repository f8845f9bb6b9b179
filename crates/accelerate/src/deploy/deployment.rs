//! What a gateway is run with.

use super::engine::{Inline, Start};
use super::error::Error;
use super::event::{Event, Level};
use bentpipe_scenario::gateway_file::GatewayFile;
use bentpipe_service::Registry;

/// A gateway to be run.
pub struct Deployment<'a> {
    /// Its file, as it is named in messages.
    pub path: &'a str,
    /// Reads the file again.
    pub read: &'a dyn Fn() -> Result<GatewayFile, Error>,
    /// Where session files are.
    pub registry: Registry,
    /// The data path.
    pub start: Start,
    /// Its ports inline; `None` when it cannot do frames.
    pub inline: Option<Inline>,
    /// A gateway of this name that runs is asked to stop, when nothing else is in the way, and its
    /// connections are taken up.
    pub replace: bool,
    /// Where the log goes.
    pub log: &'a mut dyn FnMut(&Event),
}

impl core::fmt::Debug for Deployment<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Deployment").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Deployment<'_> {
    pub(super) fn say(&mut self, level: Level, name: &'static str, text: impl Into<String>) {
        (self.log)(&Event { level, name, text: text.into() });
    }
}
