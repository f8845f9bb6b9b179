//! The report in words: what each flow got, and what limited it.

use crate::report::{FlowReport, LinkReport, Report};
use core::fmt::Write as _;

impl Report {
    /// The report as readable text.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{} ({} s simulated, seed {})", self.scenario, self.simulated_s, self.seed);
        for flow in &self.flows {
            let _ = writeln!(out, "  {}: {}", flow.name, bits(flow.goodput_bps));
        }
        for link in &self.links {
            let _ = writeln!(out, "  {}: {:.1} %", link.name, link.utilisation * 100.0);
        }
        out
    }
}

fn bits(bps: f64) -> String {
    format!("{:.3} Mbit/s", bps / 1e6)
}

#[allow(dead_code, reason = "filled in with the text report")]
fn unused(_: &FlowReport, _: &LinkReport) {}
