//! A gateway on a router in front of an emulated hop.

use crate::Outcome;
use lab::Running;
use lab::chain::{Chain, OLD_KERNEL};
use lab::passage::Host;
use lab::scenario::OneLink;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// The three hosts. Dropping it ends everything in them.
pub(super) struct Routed(Chain);

impl Routed {
    /// Creates the hosts; the receiver has the settings of an old kernel.
    pub(super) fn new(program: &Path, link: &OneLink<'_>) -> Outcome<Self> {
        Chain::new(program, &link.toml(), OLD_KERNEL).map(Self)
    }

    /// Runs `act` in a thread in the namespace of a host.
    pub(super) fn at<T: Send>(&self, host: Host, act: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
        self.0.at(host, act)
    }

    fn command(&self, words: &[&str]) -> Outcome<Running> {
        let rig = self.0.rig();
        let program = rig.program().display().to_string();
        let folder = rig.path("gateway").display().to_string();
        self.0.start(Host::Router, &[&[&*program, "gateway"], words, &["--run-dir", &folder]].concat())
    }

    /// Starts the gateway on the router for a hop of this rate, and waits until it runs.
    pub(super) fn gateway(&self, rate: &str) -> Outcome<Running> {
        let text = format!(
            "schema = 1\n[satellite]\nrate = \"{rate}\"\n[deploy]\nkind = \"routed\"\nlan = \"lan0\"\nsatellite = \"bent0\"\nwatch = \"0 s\"\n"
        );
        let mut gateway = self.command(&["run", &self.0.rig().file("gateway.toml", &text)?])?;
        gateway.wait_for_stderr("event=\"started\"")?;
        Ok(gateway)
    }

    /// The gateway's flow list.
    pub(super) fn flows(&self) -> Outcome<Vec<Value>> {
        let done = self.command(&["flows", "--json", "--most", "1000"])?.wait(LIMIT)?;
        let page: Value =
            serde_json::from_str(&done.out).map_err(|_| format!("flows: {}", done.describe()))?;
        Ok(page["flows"].as_array().cloned().unwrap_or_default())
    }
}
