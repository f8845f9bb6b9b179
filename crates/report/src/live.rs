//! Values of live runs only: whether the machine was fast enough, and where its kernel differs.

use crate::words::counted;
use core::fmt::Write as _;
use serde::{Deserialize, Serialize};

/// The part of a report that only live runs have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct LiveReport {
    /// Kernel release.
    pub kernel: String,
    /// Priority of the packet thread, and the reason if it is not higher.
    pub priority: String,
    /// Packets that left the links.
    pub packets: u64,
    /// Delay of these packets relative to their scheduled times, in microseconds.
    pub lateness_us: LatenessReport,
    /// Packets that left more than 1 ms late.
    pub late_packets: u64,
    /// Packets lost outside the links.
    pub port_drops: PortDropsReport,
    /// True if the results can be trusted.
    pub trusted: bool,
    /// Reasons why they cannot.
    pub doubts: Vec<String>,
    /// Scenario settings that the kernel could not provide.
    pub differs: Vec<String>,
    /// Other failures: refused connections, captures that could not be written.
    pub faults: Vec<String>,
    /// Packets missing from captures because the disk was too slow.
    pub captures_lack: u64,
}

/// Lateness in microseconds; null without packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct LatenessReport {
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

/// Packets lost before or after the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct PortDropsReport {
    /// Arrived faster than they could be read.
    pub receive: u64,
    /// Refused by the kernel.
    pub send: u64,
    /// Frames that are not IP.
    pub not_ip: u64,
}

impl LiveReport {
    /// Returns the warning at the top of the report if the results cannot be trusted.
    pub fn warning(&self) -> Option<String> {
        if self.trusted {
            return None;
        }
        let doubts =
            if self.doubts.is_empty() { "no reason was given".to_owned() } else { self.doubts.join("; ") };
        Some(format!("This machine was too slow: {doubts}. Do not rely on the figures of this run."))
    }

    /// Returns a summary line, then one line per difference from the scenario.
    pub fn lines(&self) -> Vec<String> {
        let mut first = format!("live on Linux {}, {}: ", self.kernel, self.priority);
        let late = &self.lateness_us;
        let _ = match (late.p50, late.p99, late.max) {
            (Some(p50), Some(p99), Some(max)) => {
                let (packets, [p50, p99, max]) = (counted(self.packets, "packet"), [p50, p99, max].map(time));
                write!(first, "{packets} left {p50} late (median), {p99} (99 %), {max} at most")
            }
            _ => write!(first, "no packet crossed a link"),
        };
        let mut lines = vec![first];
        if self.captures_lack > 0 {
            let lack = self.captures_lack;
            lines.push(format!("captures lack {lack} packets: the disk was too slow for them"));
        }
        lines.extend(self.differs.iter().map(|d| format!("differs from the scenario: {d}")));
        lines.extend(self.faults.iter().cloned());
        lines
    }
}

/// Formats "25 us" or "3.2 ms".
fn time(us: f64) -> String {
    if us < 999.5 { format!("{us:.0} us") } else { format!("{:.1} ms", us / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_was_too_slow_is_marked_and_one_that_was_not_is_a_line() {
        let mut live = LiveReport {
            kernel: "6.18.0".into(),
            priority: "real-time priority 10".into(),
            packets: 1000,
            lateness_us: LatenessReport { p50: Some(25.2), p99: Some(181.0), max: Some(3240.0) },
            trusted: true,
            ..LiveReport::default()
        };
        assert_eq!(live.warning(), None);
        assert_eq!(
            live.lines(),
            [
                "live on Linux 6.18.0, real-time priority 10: 1000 packets left 25 us late (median), 181 us (99 %), 3.2 ms at most"
            ]
        );
        live.trusted = false;
        live.doubts = vec!["3.2 % of the packets left more than 1 ms late".into(), "7 were lost".into()];
        let mark = "This machine was too slow: 3.2 % of the packets left more than 1 ms late; 7 were lost. Do not rely on the figures of this run.";
        assert_eq!(live.warning().as_deref(), Some(mark));
        live.differs = vec!["pacing of 1 Mbit/s".into()];
        live.captures_lack = 5;
        assert_eq!(live.lines().len(), 3);
    }
}
