//! Receivers with a 65 535 B window whose program reads slowly: cases, limits and simulation.

use crate::analyse::bound::alternating_reader_bound;
use crate::bed::Receiver;
use crate::cell::{Flow, RunConfig};
use crate::reader::Reader;
use crate::scenario::{FORTH, Hop, simulate, text};
use crate::{report, run};
use serde_json::Value;
use std::path::Path;

/// Rate of the hop, bit/s.
pub const RATE: f64 = 24e6;
/// Round trip, s.
pub const RTT: f64 = 1.0;
/// Goodput of the hop as the gateway shapes it, bit/s.
pub const SHAPED_GOODPUT: f64 = 23.2e6;
/// Duration of a run, s.
pub const SECONDS: f64 = 200.0;
/// Start of the measured interval, s.
pub const FROM: f64 = 20.0;
/// Interval between stops, s.
pub const STOP_INTERVAL: f64 = 30.0;
/// Payload of a packet, bits.
const PAYLOAD: f64 = 1460.0 * 8.0;

/// Returns all cases.
pub fn cases() -> Vec<Reader> {
    let rates = [1.0, 2.0].into_iter().chain((2..=12).map(|n| f64::from(n) * 2.0));
    let turns = [[24e6, 2e6], [20e6, 4e6], [16e6, 8e6], [16e6, 12e6], [12e6, 10e6]];
    let mut all: Vec<Reader> = rates.map(|r| Reader::Rate(r * 1e6)).collect();
    for each in [5.0, 30.0] {
        all.extend(turns.map(|rates| Reader::Turns(rates, each)));
    }
    all.extend([0.1, 0.5, 2.0].map(|length| Reader::Stops(length, STOP_INTERVAL)));
    all
}

/// Result of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReaderResult {
    /// Read rate from [`FROM`] on, bit/s.
    pub read: f64,
    /// Packets retransmitted in the whole run.
    pub again: f64,
    /// Packets sent for the first time in the whole run.
    pub new: f64,
}

impl Reader {
    /// Compares a result with its limits; returns both as text, and whether the limits are met. `eager` is
    /// the read rate of a program that never stops, bit/s.
    pub fn judge(self, came: ReaderResult, eager: f64) -> (String, bool) {
        let (least, most_again) = match self {
            Self::Eager => (eager, 0.0),
            Self::Rate(rate) => (0.9 * rate.min(SHAPED_GOODPUT), 0.1 * came.new),
            Self::Turns(rates, each) => {
                let (bound, again) = alternating_reader_bound(rates, each, SHAPED_GOODPUT, RTT);
                let slowdowns = ((SECONDS / each).ceil() / 2.0).floor();
                (0.95 * bound, 1.1 * slowdowns * again / PAYLOAD)
            }
            Self::Stops(length, every) => {
                let all_stops = (SECONDS / every).ceil() - 1.0;
                let stops = ((SECONDS - FROM) / every).floor();
                let lost = stops * (length + 2.0 * RTT) / (SECONDS - FROM);
                (eager * (1.0 - lost), 1.2 * all_stops * RATE * RTT / (1500.0 * 8.0))
            }
        };
        let text = format!(
            "{:.2} Mbit/s (asked {:.2}), {:.0} sent again (at most {most_again:.0})",
            came.read / 1e6,
            least / 1e6,
            came.again
        );
        (text, came.read >= least && came.again <= most_again)
    }

    /// Returns the scenario text.
    pub fn toml(self) -> String {
        let reader = match self {
            Self::Eager => "\"eager\"".to_owned(),
            Self::Rate(rate) => format!("{{ rate = \"{rate} bit/s\" }}"),
            Self::Turns([a, b], each) => {
                format!("{{ turns = {{ rate = \"{a} bit/s\", then = \"{b} bit/s\", each = \"{each} s\" }} }}")
            }
            Self::Stops(length, every) => format!(
                "{{ pause = {{ from = \"{every} s\", to = \"{} s\", every = \"{every} s\" }} }}",
                every + length
            ),
        };
        let head =
            format!("measure = {{ from = \"{FROM} s\", to = \"{SECONDS} s\" }}\n[host]\nstack = \"linux\"");
        let flow = format!(
            "{FORTH}\ntcp = \"cubic\"\nreceiver = {{ window = \"65535 B\", window_scale = false, timestamps = false }}\nreader = {reader}"
        );
        let hop = Hop { rate: RATE, rtt: RTT, queue: RATE * RTT / 8.0, loss: 0.0 };
        text(&format!("a reader: {self}"), SECONDS, &head, hop, true, &flow)
    }

    /// Runs the case in the bed.
    ///
    /// # Errors
    /// If the bed fails.
    pub fn live(self, program: &Path, seed: u64) -> Result<ReaderResult, String> {
        let flows = vec![Flow { receiver: Receiver::Old, reader: self, ..Flow::default() }];
        let gateway = Some(program.to_owned());
        let cell =
            RunConfig { seed, flows, seconds: SECONDS, measured_from: FROM, gateway, ..RunConfig::default() };
        let figures = report::figures(&cell, &run::run(&cell)?);
        let figure = |name: &str| figures["flows"][0][name].as_f64().ok_or_else(|| format!("no {name}"));
        Ok(ReaderResult {
            read: figure("read_mbps")? * 1e6,
            again: figure("sent_again")?,
            new: figure("first_transmissions")?,
        })
    }

    /// Simulates the case.
    ///
    /// # Errors
    /// If the program fails or its report lacks a figure.
    pub fn simulate(self, program: &Path, seed: u64) -> Result<ReaderResult, String> {
        let report = simulate(program, seed, &self.toml())?;
        let figure = |path: &str| {
            report.pointer(path).and_then(Value::as_f64).ok_or_else(|| format!("a report without {path}"))
        };
        Ok(ReaderResult {
            read: figure("/flows/0/goodput_bps")?,
            again: figure("/gateways/0/resent")?,
            new: figure("/gateways/0/forwarded")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_of_each() {
        assert_eq!(cases().len(), 13 + 10 + 3);
        let judge = |case: Reader, read: f64, again| {
            case.judge(ReaderResult { read: read * 1e6, again, new: 1e5 }, 23.2e6).1
        };
        assert!(judge(Reader::Rate(8e6), 7.3, 9e3) && !judge(Reader::Rate(8e6), 7.1, 0.0));
        assert!(!judge(Reader::Rate(24e6), 23.0, 1.1e4) && !judge(Reader::Rate(24e6), 20.8, 0.0));
        // 0.95 of 10.33 Mbit/s, and 1.1 times 1941 packets for each of 20 changes
        let turns = Reader::Turns([24e6, 2e6], 5.0);
        assert!(judge(turns, 9.9, 42e3) && !judge(turns, 9.7, 42e3) && !judge(turns, 9.9, 44e3));
        // six stops from 20 s on, each costs 2.5 s: 15 of 180
        let stops = Reader::Stops(0.5, STOP_INTERVAL);
        assert!(judge(stops, 21.3, 14e3) && !judge(stops, 21.2, 0.0) && !judge(stops, 21.3, 15e3));
    }
}
