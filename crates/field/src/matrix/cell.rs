//! The cells of the matrix and their scenarios: one hop, its gateway, and identical flows.

use crate::bed::Receiver;
use crate::cell as bed;
use crate::reader::Reader;
use crate::scenario::{FORTH, Hop, text};
use std::fmt;
use std::path::Path;

/// Rates, Mbit/s.
pub const RATES: [u32; 4] = [2, 10, 24, 100];
/// Round-trip times, ms.
pub const ROUND_TRIPS: [u32; 4] = [100, 300, 600, 1000];
/// Loss probabilities towards the receiver.
pub const LOSSES: [f64; 4] = [0.0, 1e-4, 1e-3, 1e-2];
/// Receivers: 65 535 B without options; today's; today's with a program that reads at part of the rate.
pub const RECEIVERS: [&str; 3] = ["old", "modern", "slow"];
/// Senders.
pub const SENDERS: [&str; 3] = ["cubic", "bbr", "reno"];
/// Concurrent flows.
pub const FLOWS: [u32; 2] = [1, 8];
/// Read rate of a slow reader, as a fraction of its share of the rate.
const SLOW: f64 = 0.4;

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Mbit/s.
    pub rate: u32,
    /// Round-trip time, ms.
    pub rtt: u32,
    /// Loss probability.
    pub loss: f64,
    /// One of [`RECEIVERS`].
    pub receiver: &'static str,
    /// One of [`SENDERS`].
    pub sender: &'static str,
    /// Concurrent flows.
    pub flows: u32,
    /// Bytes that each flow transfers; `None`: no limit.
    pub transfer: Option<u64>,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, rtt, loss, receiver, sender, flows, transfer } = self;
        write!(f, "{rate} Mbit/s, {rtt} ms, loss {loss}, {receiver}, {sender} x{flows}")?;
        transfer.map_or(Ok(()), |bytes| write!(f, ", {bytes} B"))
    }
}

/// Returns all cells that match a filter such as `rate=24|2,rtt=1000,receiver=old`, in which `|` separates
/// the values of a key. An empty filter matches all.
///
/// # Errors
/// Names the wrong word.
pub fn cells(filter: &str, transfer: Option<u64>) -> Result<Vec<Cell>, String> {
    let mut all = Vec::new();
    for rate in RATES {
        for rtt in ROUND_TRIPS {
            for loss in LOSSES {
                for receiver in RECEIVERS {
                    for sender in SENDERS {
                        let cell = |flows| Cell { rate, rtt, loss, receiver, sender, flows, transfer };
                        all.extend(FLOWS.map(cell));
                    }
                }
            }
        }
    }
    for word in filter.split(',').filter(|w| !w.is_empty()) {
        let wrong =
            || format!("--only {word}: write rate=, rtt=, loss=, receiver=, sender= or flows=, values by |");
        let (key, values) = word.split_once('=').ok_or_else(wrong)?;
        let one_of = |is: &dyn Fn(&str) -> bool| values.split('|').any(is);
        let number = |n: f64| one_of(&|v: &str| v.parse().is_ok_and(|v: f64| (v - n).abs() < 1e-9));
        all.retain(|c| match key {
            "rate" => number(f64::from(c.rate)),
            "rtt" => number(f64::from(c.rtt)),
            "loss" => number(c.loss),
            "flows" => number(f64::from(c.flows)),
            "receiver" => one_of(&|v: &str| v == c.receiver),
            "sender" => one_of(&|v: &str| v == c.sender),
            _ => false,
        });
        if all.is_empty() {
            return Err(wrong());
        }
    }
    Ok(all)
}

impl Cell {
    /// Simulated seconds: 100 round trips, at least 20 s. A transfer ends by itself.
    pub fn seconds(&self) -> f64 {
        if self.transfer.is_some() { 600.0 } else { (f64::from(self.rtt) / 10.0).max(20.0) }
    }

    /// The hop's queue, bytes: the bandwidth-delay product, at least 30 packets.
    fn queue(&self) -> f64 {
        (f64::from(self.rate) * f64::from(self.rtt) * 125.0).max(45_000.0)
    }

    /// Returns the configuration of the bed for this cell, with or without the gateway.
    pub fn live(&self, program: &Path, gateway: bool, seed: u64) -> bed::RunConfig {
        let part = f64::from(self.rate) * 1e6 * SLOW / f64::from(self.flows);
        let flow = bed::Flow {
            scheme: self.sender.to_owned(),
            receiver: if self.receiver == "old" { Receiver::Old } else { Receiver::Modern },
            reader: if self.receiver == "slow" { Reader::Rate(part) } else { Reader::Eager },
            bytes: self.transfer,
            ..bed::Flow::default()
        };
        bed::RunConfig {
            rate: f64::from(self.rate) * 1e6,
            delay: f64::from(self.rtt) / 2.0,
            loss: [self.loss, 0.0],
            queue: self.queue() as u64,
            seed,
            flows: vec![flow; self.flows as usize],
            seconds: self.seconds(),
            measured_from: 0.0,
            gateway: gateway.then(|| program.to_owned()),
            ..bed::RunConfig::default()
        }
    }

    /// Returns the scenario text, with or without the gateway.
    pub fn toml(&self, gateway: bool) -> String {
        let Self { rate, rtt, loss, flows, .. } = *self;
        let old = "receiver = { window = \"65535 B\", window_scale = false, timestamps = false }";
        // the bed's kernel allows 64 MB; any window above the bandwidth-delay product is equivalent
        let modern = "receiver = { window = { initial = \"65535 B\", max = \"48 MiB\" } }";
        let receiver = match self.receiver {
            "old" => old.to_owned(),
            "slow" => {
                let bps = f64::from(rate) * 1e6 * SLOW / f64::from(flows);
                format!("{modern}\nreader = {{ rate = \"{bps} bit/s\" }}")
            }
            _ => modern.to_owned(),
        };
        // Linux reno uses SACK; the engine calls that "sack"
        let sender = if self.sender == "reno" { "sack" } else { self.sender };
        // the simulator has no Linux BBR; the published BBR is used
        let stack = if self.sender == "bbr" { "rfc" } else { "linux" };
        let app =
            self.transfer.map_or(String::new(), |bytes| format!("app = {{ transfer = \"{bytes} B\" }}\n"));
        let count = if flows > 1 { format!("count = {flows}\n") } else { String::new() };
        let trip = f64::from(rtt) / 1e3;
        let flow = format!(
            "{FORTH}\n{count}{app}tcp = \"{sender}\"\n{receiver}\nstart = {{ from = \"0 s\", to = \"{trip} s\" }}"
        );
        let hop = Hop { rate: f64::from(rate) * 1e6, rtt: trip, queue: self.queue(), loss };
        let head = format!("[host]\nstack = \"{stack}\"");
        text(&self.to_string(), self.seconds(), &head, hop, gateway, &flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_picks_cells() {
        assert_eq!(cells("", None).unwrap().len(), 1152);
        let some = cells("rate=24|2,rtt=1000,receiver=old,loss=0.001|0,sender=bbr,flows=1", None).unwrap();
        assert_eq!(some.len(), 4);
        for wrong in ["rate", "colour=1", "rate=3"] {
            assert!(cells(wrong, None).is_err(), "{wrong}");
        }
    }
}
