//! Senders that cannot gain from a gateway are to be recognised within 20 round trips; those that can gain never are.
//!
//! One simulated flow on a hop that is drawn by the seed, for 20 round trips of the hop and of its queue; what the gateway says of it at the end counts.

use crate::hop::dice::Dice;
use crate::matrix::cell::{LOSSES, RATES, TRIPS};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Round trips within which it is to be told.
const TRIPS_ALLOWED: f64 = 20.0;

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// BBR.
    Bbr,
    /// Cubic.
    Cubic,
    /// Cubic, spread over the round trip as fq does.
    CubicPaced,
    /// Cubic, whose application writes a part of the rate.
    CubicLimited,
    /// Reno with SACK.
    Reno,
    /// Reno, spread over the round trip.
    RenoPaced,
    /// Reno, whose application writes a part of the rate.
    RenoLimited,
}

impl Sender {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Bbr,
        Self::Cubic,
        Self::CubicPaced,
        Self::CubicLimited,
        Self::Reno,
        Self::RenoPaced,
        Self::RenoLimited,
    ];

    fn keys(self, mbps: f64) -> String {
        let tcp = match self {
            Self::Bbr => "bbr",
            Self::Cubic | Self::CubicPaced | Self::CubicLimited => "cubic",
            Self::Reno | Self::RenoPaced | Self::RenoLimited => "sack",
        };
        match self {
            Self::Bbr => format!("tcp = \"{tcp}\""),
            Self::CubicPaced | Self::RenoPaced => format!("tcp = \"{tcp}\"\npacing = true"),
            Self::CubicLimited | Self::RenoLimited => {
                format!("tcp = \"{tcp}\"\napp = {{ rate = \"{} bit/s\" }}", (mbps * 1e6) as u64)
            }
            Self::Cubic | Self::Reno => format!("tcp = \"{tcp}\"\nstack = \"linux\""),
        }
    }
}

/// Simulates the flow of a seed; what was drawn, and whether the gateway passes it at the end.
///
/// # Errors
/// When the program fails.
pub fn drawn(sender: Sender, seed: u64, program: &Path, file: &Path) -> Result<(String, bool), String> {
    let mut dice = Dice::new(seed, 77);
    let mut pick = |n: usize| ((dice.uniform() * n as f64) as usize).min(n - 1);
    let (rate, rtt, loss) = (RATES[pick(RATES.len())], TRIPS[pick(TRIPS.len())], LOSSES[pick(LOSSES.len())]);
    let share = 0.2 + 0.2 * pick(4) as f64;
    let queue = (f64::from(rate) * f64::from(rtt) * 125.0).max(45_000.0);
    // the queue may double the round trip; the SYN's is no round of data
    let seconds = (TRIPS_ALLOWED + 1.0) * f64::from(rtt) / 1e3;
    let text = format!(
        "schema = 1
title = \"a sender to be recognised\"
duration = \"{seconds} s\"
[[hosts]]
name = \"sender\"
[[hosts]]
name = \"receiver\"
[[links]]
name = \"hop\"
from = \"sender\"
to = \"receiver\"
rate = \"{rate} Mbit/s\"
delay = \"{} ms\"
buffer = \"{queue} B\"
forward = {{ loss = {loss:?} }}
[[gateways]]
name = \"gateway\"
link = \"hop\"
[[flows]]
name = \"f\"
from = \"sender\"
to = \"receiver\"
{}
receiver = {{ window = {{ initial = \"65535 B\", max = \"48 MiB\" }} }}
",
        f64::from(rtt) / 2.0,
        sender.keys(share * f64::from(rate))
    );
    std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut command = Command::new(program);
    command.arg("sim").arg(file).args(["--json", "--seed", &seed.to_string()]);
    let done = command.output().map_err(|e| format!("{}: {e}", program.display()))?;
    let report: Value = serde_json::from_slice(&done.stdout)
        .map_err(|_| String::from_utf8_lossy(&done.stderr).trim().to_owned())?;
    Ok((format!("{rate} Mbit/s, {rtt} ms, loss {loss}"), is_passed(&report)?))
}

/// True when the gateway of a report with one flow passes it.
fn is_passed(report: &Value) -> Result<bool, String> {
    let flows = &report["gateways"][0]["flows"];
    let passed = flows["passed"].as_object().ok_or("a report without flows of a gateway")?;
    Ok(!passed.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_says_who_passes() {
        let report =
            |passed: Value| json!({ "gateways": [{ "flows": { "accelerated": 1, "passed": passed } }] });
        assert_eq!(is_passed(&report(json!({}))), Ok(false));
        assert_eq!(is_passed(&report(json!({ "model_based": 1 }))), Ok(true));
        assert!(is_passed(&json!({})).is_err());
    }
}
