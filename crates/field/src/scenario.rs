//! The scenario of all simulated runs: a sender, a receiver, the hop between them, and its gateway.

use crate::run::TemporaryFolder;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A hop.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Rate, bit/s.
    pub rate: f64,
    /// Round-trip time, s.
    pub rtt: f64,
    /// Queue, bytes.
    pub queue: f64,
    /// Loss probability towards the receiver.
    pub loss: f64,
}

/// Returns the scenario text. `head` adds lines for the whole run, `gateway` enables the gateway, and `flow`
/// holds the keys of the flow, `from` and `to` among them.
pub fn text(title: &str, seconds: f64, head: &str, hop: Hop, gateway: bool, flow: &str) -> String {
    let Hop { rate, rtt, queue, loss } = hop;
    format!(
        "schema = 1
title = \"{title}\"
duration = \"{seconds} s\"
{head}
[[hosts]]
name = \"sender\"
[[hosts]]
name = \"receiver\"
[[links]]
name = \"hop\"
from = \"sender\"
to = \"receiver\"
rate = \"{rate} bit/s\"
delay = \"{} s\"
buffer = \"{queue:.0} B\"
forward = {{ loss = {loss:?} }}
[[gateways]]
name = \"gateway\"
link = \"hop\"
enabled = {gateway}
[[flows]]
name = \"f\"
{flow}
",
        rtt / 2.0
    )
}

/// Runs a scenario with `program` and returns its report.
///
/// # Errors
/// If the program fails or prints no report.
pub fn simulate(program: &Path, seed: u64, scenario: &str) -> Result<Value, String> {
    let folder = TemporaryFolder::new("scenario")?;
    let file = folder.0.join("scenario.toml");
    fs::write(&file, scenario).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut command = Command::new(program);
    command.arg("sim").arg(&file).args(["--json", "--seed", &seed.to_string()]);
    let done = command.output().map_err(|e| format!("{}: {e}", program.display()))?;
    serde_json::from_slice(&done.stdout).map_err(|_| String::from_utf8_lossy(&done.stderr).trim().to_owned())
}

/// The keys that make a flow go from the sender to the receiver.
pub const FORTH: &str = "from = \"sender\"\nto = \"receiver\"";
