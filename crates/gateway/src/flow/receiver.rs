//! What the receiver has told: its right edge and its windows.
//!
//! Source: TCP-SuperCharger (SC), equations (3) and (4), in sequence numbers. An ACK i at t_i says E_i =
//! ack_i + a_i, the right edge; between two ACKs the receiver's application reads R = (E_j - E_i) / (t_j -
//! t_i). What is forwarded at f arrives when the edge is at E_i + R (f - t_i + D), so
//!   e <= E_i + R (f - t_i + D)                                                        (4')
//! for the last byte e. Corrections to the paper: the printed (4) sums all packets ever sent, and (3) counts
//! packets forwarded between two ACKs where packets received are meant; the form above needs neither sum.
//!
//! - `Mode::Strict`: R as above over 8 ACKs, smoothed with 0.9, and (4'). While a receiver keeps up, a is at
//!   its largest and R is no more than the rate of arrival, so this grows by a window per round trip.
//! - `Mode::Open`: `reader.rs`.
//!
//! A small window before a hole is the receiver's memory, not its application, and is ignored: the edge never
//! moves left.

use super::reader::{News, Reader};
use crate::config::Mode;
use bentpipe_base::{Duration, Instant};

/// ACKs between the two that make a sample, in strict mode.
const STRIDE: u32 = 8;

/// Knowledge of one receiver.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    mode: Mode,
    /// The right edge.
    pub(crate) edge: u64,
    /// The largest window seen.
    pub(crate) largest: u64,
    /// Its application, in open mode.
    pub(crate) reader: Box<Reader>,
    /// The first window that was told for what is expected now.
    first: (u64, u64),
    /// When the last ACK told.
    told: Instant,
    /// Strict: the ACK a sample begins with, R (0 while it is unknown), ACKs in the sample.
    sample: Option<(Instant, u64)>,
    drain: f64,
    acks: u32,
    /// Since when the window is closed.
    pub(crate) stopped: Option<Instant>,
}

impl Receiver {
    pub(crate) fn new(mode: Mode) -> Self {
        Self {
            mode,
            edge: 1,
            largest: 0,
            reader: Box::default(),
            first: (0, 0),
            told: Instant::ZERO,
            sample: None,
            drain: 0.0,
            acks: 0,
            stopped: None,
        }
    }

    /// Window left at `una`.
    pub(crate) const fn window(&self, una: u64) -> u64 {
        self.edge.saturating_sub(una)
    }

    /// An ACK for `una` told `window`; not `steady`: a hole is or was just open. `used` and `room` are how
    /// far beyond the edge is forwarded, and may be.
    pub(crate) fn told(
        &mut self,
        now: Instant,
        (una, window): (u64, u64),
        steady: bool,
        trip: Duration,
        (top, room): (u64, u64),
    ) {
        if una > self.first.0 {
            // who has come to its edge may have cut off the rest of the packet that brought it there
            self.first = (una, if una >= self.edge { 0 } else { window });
        }
        self.edge = self.edge.max(una + window);
        self.told = now;
        if steady {
            self.largest = self.largest.max(window);
        }
        match self.mode {
            Mode::Strict if steady => self.sample(now),
            Mode::Strict => self.sample = None,
            Mode::Open => self.reader.told(&self.news(now, una, trip, (top, room)), steady),
        }
    }

    fn news(&self, now: Instant, una: u64, trip: Duration, (top, room): (u64, u64)) -> News {
        let used = top.saturating_sub(self.edge);
        News { now, una, edge: self.edge, largest: self.largest, trip, used, room }
    }

    /// Equation (3).
    fn sample(&mut self, now: Instant) {
        self.acks += 1;
        let Some((since, edge)) = self.sample else {
            (self.sample, self.acks) = (Some((now, self.edge)), 0);
            return;
        };
        let time = now.since(since).as_secs_f64();
        if self.acks >= STRIDE && time > 0.0 {
            let rate = (self.edge - edge) as f64 / time;
            self.drain = if self.drain > 0.0 { 0.9 * self.drain + 0.1 * rate } else { rate };
            (self.sample, self.acks) = (Some((now, self.edge)), 0);
        }
    }

    /// Whether the receiver has said that it had no room for what ends at `end`, when it began to expect
    /// `una`. What was sent before had arrived by then (a hop keeps order), and a window is told with every
    /// packet that arrives, so a packet that was told to have room and is missing is lost.
    pub(crate) const fn had_no_room(&self, una: u64, end: u64) -> bool {
        self.first.0 == una && end > una + self.first.1
    }

    /// What was sent at `sent` was refused.
    pub(crate) fn overflowed(
        &mut self,
        (now, sent): (Instant, Instant),
        una: u64,
        trip: Duration,
        top_and_room: (u64, u64),
    ) {
        if self.mode == Mode::Open {
            self.reader.overflow(&self.news(now, una, trip, top_and_room), sent);
        }
    }

    /// Position up to which may be forwarded now; `room` is what the hop holds.
    pub(crate) fn limit(&self, now: Instant, d: Duration, room: u64) -> u64 {
        if self.mode == Mode::Open {
            return self.reader.limit(now, self.edge, room, d, self.largest);
        }
        // without news for a round trip the prediction ends
        let ahead = now.since(self.told).min(d) + d;
        self.edge + ((self.drain * ahead.as_secs_f64()) as u64).min(room)
    }

    /// R where one is known, in bytes per second.
    pub(crate) fn rate(&self) -> Option<f64> {
        match self.mode {
            Mode::Strict => Some(self.drain),
            Mode::Open => self.reader.rate(),
        }
    }
}
