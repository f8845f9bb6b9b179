//! Receivers with a 65 535 B window whose program reads slowly: cases, limits and simulation.

use crate::analyse::bound::alternating;
use crate::bed::Receiver;
use crate::cell::{Flow, RunConfig};
use crate::reader::Reader;
use crate::scenario::{FORTH, Hop, simulate, text};
use crate::{report, run};
use serde_json::Value;
use std::fmt;
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

/// How a program reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Case {
    /// At one rate, bit/s.
    Constant(f64),
    /// At two rates alternately, bit/s, each for this many seconds.
    Turns([f64; 2], f64),
    /// Everything, but with a stop of this many seconds in each [`STOP_INTERVAL`].
    Stops(f64),
}

/// All cases.
pub fn cases() -> Vec<Case> {
    let rates = [1.0, 2.0].into_iter().chain((2..=12).map(|n| f64::from(n) * 2.0));
    let turns = [[24e6, 2e6], [20e6, 4e6], [16e6, 8e6], [16e6, 12e6], [12e6, 10e6]];
    let mut all: Vec<Case> = rates.map(|r| Case::Constant(r * 1e6)).collect();
    for each in [5.0, 30.0] {
        all.extend(turns.map(|rates| Case::Turns(rates, each)));
    }
    all.extend([0.1, 0.5, 2.0].map(Case::Stops));
    all
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(rate) => write!(f, "{} Mbit/s", rate / 1e6),
            Self::Turns([a, b], each) => write!(f, "{}/{} Mbit/s every {each} s", a / 1e6, b / 1e6),
            Self::Stops(length) => write!(f, "stops of {length} s"),
        }
    }
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

/// A result compared with its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedReader {
    /// The figures and their limits.
    pub text: String,
    /// True if the limits are met.
    pub met: bool,
}

impl Case {
    /// The case as a real reading program.
    pub const fn reader(self) -> Reader {
        match self {
            Self::Constant(rate) => Reader::Rates(rate, rate, 1.0),
            Self::Turns([a, b], each) => Reader::Rates(a, b, each),
            Self::Stops(length) => Reader::Stops(length, STOP_INTERVAL),
        }
    }

    /// How often the lower rate, or a stop, starts.
    fn slowdowns(self) -> f64 {
        match self {
            Self::Constant(_) => 0.0,
            Self::Turns(_, each) => ((SECONDS / each).ceil() / 2.0).floor(),
            Self::Stops(_) => (SECONDS / STOP_INTERVAL).ceil() - 1.0,
        }
    }

    /// Compares a result with its limits. `eager` is the rate of a program that never stops, bit/s.
    pub fn judge(self, came: ReaderResult, eager: f64) -> JudgedReader {
        let (least, most_again) = match self {
            Self::Constant(rate) => (0.9 * rate.min(SHAPED_GOODPUT), 0.1 * came.new),
            Self::Turns(rates, each) => {
                let (bound, again) = alternating(rates, each, SHAPED_GOODPUT, RTT);
                (0.95 * bound, 1.1 * self.slowdowns() * again / PAYLOAD)
            }
            Self::Stops(length) => {
                let stops = ((SECONDS - FROM) / STOP_INTERVAL).floor();
                let lost = stops * (length + 2.0 * RTT) / (SECONDS - FROM);
                (eager * (1.0 - lost), 1.2 * self.slowdowns() * RATE * RTT / (1500.0 * 8.0))
            }
        };
        let text = format!(
            "{:.2} Mbit/s (asked {:.2}), {:.0} sent again (at most {most_again:.0})",
            came.read / 1e6,
            least / 1e6,
            came.again
        );
        JudgedReader { text, met: came.read >= least && came.again <= most_again }
    }

    /// The scenario text.
    pub fn toml(self) -> String {
        let reader = match self {
            Self::Constant(rate) => format!("{{ rate = \"{rate} bit/s\" }}"),
            Self::Turns([a, b], each) => {
                format!("{{ turns = {{ rate = \"{a} bit/s\", then = \"{b} bit/s\", each = \"{each} s\" }} }}")
            }
            Self::Stops(length) if length > 0.0 => format!(
                "{{ pause = {{ from = \"{STOP_INTERVAL} s\", to = \"{} s\", every = \"{STOP_INTERVAL} s\" }} }}",
                STOP_INTERVAL + length
            ),
            Self::Stops(_) => "\"eager\"".to_owned(),
        };
        let head =
            format!("measure = {{ from = \"{FROM} s\", to = \"{SECONDS} s\" }}\n[host]\nstack = \"linux\"");
        let flow = format!(
            "{FORTH}\ntcp = \"cubic\"\nreceiver = {{ window = \"65535 B\", window_scale = false, timestamps = false }}\nreader = {reader}"
        );
        let hop = Hop { rate: RATE, rtt: RTT, queue: RATE * RTT / 8.0, loss: 0.0 };
        text(&format!("a reader: {self}"), SECONDS, &head, hop, true, &flow)
    }

    /// Runs it in the bed.
    ///
    /// # Errors
    /// If the bed fails.
    pub fn live(self, program: &Path, seed: u64) -> Result<ReaderResult, String> {
        let reader = if self == Self::Stops(0.0) { Reader::Eager } else { self.reader() };
        let flows = vec![Flow { receiver: Receiver::Old, reader, ..Flow::default() }];
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

    /// Simulates it.
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
        let judge = |case: Case, read: f64, again| {
            case.judge(ReaderResult { read: read * 1e6, again, new: 1e5 }, 23.2e6).met
        };
        assert!(judge(Case::Constant(8e6), 7.3, 9e3) && !judge(Case::Constant(8e6), 7.1, 0.0));
        assert!(!judge(Case::Constant(24e6), 23.0, 1.1e4) && !judge(Case::Constant(24e6), 20.8, 0.0));
        // 0.95 of 10.33 Mbit/s, and 1.1 times 1941 packets for each of 20 changes
        let turns = Case::Turns([24e6, 2e6], 5.0);
        assert!(judge(turns, 9.9, 42e3) && !judge(turns, 9.7, 42e3) && !judge(turns, 9.9, 44e3));
        // six stops from 20 s on, each costs 2.5 s: 15 of 180
        let stops = Case::Stops(0.5);
        assert!(judge(stops, 21.3, 14e3) && !judge(stops, 21.2, 0.0) && !judge(stops, 21.3, 15e3));
    }
}
