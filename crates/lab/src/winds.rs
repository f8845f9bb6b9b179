//! The WINDS measurements of 2009 with the kernel's TCP: rows 2, 3 and 5 of table 1 in Lee, Yum and Wan, TCP-SuperCharger.

use crate::Outcome;
use crate::rig::Rig;
use serde_json::Value;
use std::time::Duration;

/// Row, window, keep-alive, goodput measured in bit/s.
const ROWS: [(u32, &str, &str, f64); 3] =
    [(2, "64 KiB", "off", 0.12e6), (3, "512 KiB", "off", 0.8e6), (5, "64 KiB", "on", 0.5e6)];
/// Goodput counts from here on: the start is chaotic.
const FROM_S: u32 = 60;

/// A row, and what the kernel's TCP made of it.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number.
    pub number: u32,
    /// Measured in 2009, bit/s.
    pub measured_bps: f64,
    /// Here, bit/s.
    pub goodput_bps: f64,
}

impl Row {
    /// Share by which they differ.
    pub fn difference(&self) -> f64 {
        self.goodput_bps / self.measured_bps - 1.0
    }
}

/// Runs the three rows at the same time, `seconds` long beside the start.
///
/// # Errors
/// When one fails.
pub fn rows(rig: &Rig, seconds: u32) -> Outcome<Vec<Row>> {
    let original = include_str!("../../../scenarios/winds.toml");
    let end = format!("\"{} s\"", FROM_S + seconds);
    let text = original.replace("\"660 s\"", &end);
    let file = rig.file("winds-rows.toml", &text)?;
    let mut sessions = Vec::new();
    for (number, window, keepalive, _) in ROWS {
        let (window, keepalive) = (format!("window={window}"), format!("keepalive={keepalive}"));
        let name = format!("winds-{number}");
        let words = ["emulate", &file, "--name", &name, "--set", &window, "--set", &keepalive, "--json"];
        sessions.push(rig.start(&words)?);
    }
    let limit = Duration::from_secs(u64::from(FROM_S + seconds + 90));
    let mut rows = Vec::new();
    for (session, (number, _, _, measured_bps)) in sessions.into_iter().zip(ROWS) {
        let done = session.wait(limit)?;
        let report: Value =
            serde_json::from_str(&done.out).map_err(|_| format!("row {number}: {}", done.story()))?;
        let flows = report["flows"].as_array().into_iter().flatten();
        let goodput = flows.filter(|f| f["name"] == "flow").find_map(|f| f["goodput_bps"].as_f64());
        let goodput_bps = goodput.ok_or_else(|| format!("row {number}: no goodput of `flow` in {report}"))?;
        rows.push(Row { number, measured_bps, goodput_bps });
    }
    Ok(rows)
}
