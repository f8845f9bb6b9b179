//! Lateness of packets: the time from when a packet was due to leave the network until the kernel had it. A
//! packet sent some microseconds early counts by the absolute difference.

use bentpipe_base::histogram::Histogram;
use bentpipe_base::{Duration, Instant};
use bentpipe_os::PortDrops;
use serde::{Deserialize, Serialize};

/// A packet that leaves later than this is late.
pub const LATE: Duration = Duration::from_millis(1);

/// Lateness of all packets so far.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    times: Histogram,
    max: Duration,
    late: u64,
}

impl Lateness {
    /// Records `packets` that were due at `due` and left at `sent`.
    #[inline]
    pub fn record(&mut self, due: Instant, sent: Instant, packets: u32) {
        let late = sent.since(due).max(due.since(sent));
        for _ in 0..packets {
            self.times.record(late);
        }
        self.max = self.max.max(late);
        if late > LATE {
            self.late += u64::from(packets);
        }
    }

    /// Returns a summary that includes the losses at the ports.
    pub fn sum(&self, drops: PortDrops) -> Timing {
        let us = |d: Option<Duration>| d.map(|d| d.as_secs_f64() * 1e6);
        let mut timing = Timing {
            packets: self.times.count(),
            p50_us: us(self.times.quantile(0.5)),
            p99_us: us(self.times.quantile(0.99)),
            max_us: us((self.times.count() > 0).then_some(self.max)),
            late_packets: self.late,
            port_receive_drops: drops.receive,
            port_send_drops: drops.send,
            port_not_ip: drops.not_ip,
            ..Timing::default()
        };
        timing.judge();
        timing
    }
}

/// Whether the machine was fast enough: part of every live report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Packets that left the network.
    pub packets: u64,
    /// Median lateness, microseconds; null without packets.
    pub p50_us: Option<f64>,
    /// 99th percentile of lateness, microseconds.
    pub p99_us: Option<f64>,
    /// Largest lateness, microseconds.
    pub max_us: Option<f64>,
    /// Packets that left more than 1 ms late.
    pub late_packets: u64,
    /// Packets lost because they arrived faster than they could be read.
    pub port_receive_drops: u64,
    /// Packets that the kernel did not accept.
    pub port_send_drops: u64,
    /// Frames that are not IP.
    pub port_not_ip: u64,
    /// True if the figures of this run can be trusted.
    pub trusted: bool,
    /// Reasons why not.
    pub doubts: Vec<String>,
}

impl Timing {
    fn judge(&mut self) {
        let share = self.late_packets as f64 / self.packets.max(1) as f64;
        // with fewer than a hundred packets, one late packet is not significant
        if share > 0.01 && self.late_packets > 1 {
            self.doubts.push(format!("{:.1} % of the packets left more than 1 ms late", share * 100.0));
        }
        for (drops, what) in [
            (self.port_receive_drops, "came in faster than they could be read"),
            (self.port_send_drops, "were not taken by the kernel"),
        ] {
            if drops > 0 {
                self.doubts.push(format!("{drops} packets {what}: lost beside the link"));
            }
        }
        self.trusted = self.doubts.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(late_us: &[u64], drops: PortDrops) -> Timing {
        let mut lateness = Lateness::default();
        for us in late_us {
            lateness.record(Instant(1_000_000_000), Instant(1_000_000_000 + us * 1000), 1);
        }
        lateness.sum(drops)
    }

    #[test]
    fn a_machine_in_time_is_trusted() {
        let t = timing(&[10, 20, 30, 900], PortDrops::default());
        assert!(t.trusted && t.doubts.is_empty() && t.late_packets == 0, "{t:?}");
        assert!(t.p50_us.unwrap() < 35.0 && (t.max_us.unwrap() - 900.0).abs() < 1e-6, "{t:?}");
    }

    #[test]
    fn late_packets_and_drops_at_the_ports_are_doubts() {
        let t = timing(&[10, 2000, 3000], PortDrops::default());
        assert!(!t.trusted && t.late_packets == 2 && t.doubts[0].starts_with("66.7 %"), "{t:?}");
        let t = timing(&[10], PortDrops { receive: 3, send: 0, not_ip: 7 });
        assert_eq!(t.doubts, ["3 packets came in faster than they could be read: lost beside the link"]);
    }
}
