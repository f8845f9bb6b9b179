//! What the receiver has advertised: its right edge and its windows.
//!
//! Source: TCP-SuperCharger (SC), equations (3) and (4), in sequence numbers. An ACK i at t_i gives the right
//! edge E_i = ack_i + a_i; between two ACKs the receiver's application reads at R = (E_j - E_i) / (t_j -
//! t_i). Data forwarded at f arrives when the edge is at E_i + R (f - t_i + D), so
//!   e <= E_i + R (f - t_i + D)                                                        (4')
//! for the last byte e. Corrections to the paper: the printed (4) sums over all packets ever sent, and (3)
//! counts packets forwarded between two ACKs where packets received are meant; the form above needs neither
//! sum.
//!
//! - `Mode::Strict`: R as above over k ACKs, smoothed (`strict.rs`), and (4'). While a receiver keeps up, a
//!   is at its maximum and R is at most the arrival rate, so this grows by a window per round trip.
//! - `Mode::Open`: `reader.rs`.
//!
//! A smaller window before a hole is filled comes from the receiver's memory, not its application, and is
//! ignored: the edge never moves left.

mod strict;

use super::reader::{Reader, WindowUpdate};
use crate::config::{Config, Mode};
use bentpipe_base::{Duration, Instant};
use strict::ReadRate;

#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// In strict mode; none in open mode.
    strict: Option<Box<ReadRate>>,
    pub(crate) edge: u64,
    pub(crate) largest: u64,
    /// The right edge when nothing was in flight last.
    promised: u64,
    /// The receiving application, in open mode.
    pub(crate) reader: Box<Reader>,
    /// The first ACK with the current acknowledgment number: that number and the window.
    first: (u64, u64),
    told: Instant,
    /// Since when the window is closed.
    pub(crate) stopped: Option<Instant>,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        let strict = (config.mode == Mode::Strict).then(|| Box::new(ReadRate::new(config)));
        Self { strict, edge: 1, ..Self::default() }
    }

    /// The window left at `una`.
    pub(crate) const fn window(&self, una: u64) -> u64 {
        self.edge.saturating_sub(una)
    }

    /// Processes an ACK for `una` with `window`. Not `steady`: a hole is or was just open. `top` is the end
    /// of the forwarded data, `room` how far beyond the edge data may be forwarded.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        (una, window): (u64, u64),
        steady: bool,
        trip: Duration,
        (top, room): (u64, u64),
    ) {
        if una > self.first.0 {
            // a receiver that reached its edge may have cut off the rest of that packet
            self.first = (una, if una >= self.edge { 0 } else { window });
        }
        self.edge = self.edge.max(una + window);
        self.told = now;
        if steady {
            self.largest = self.largest.max(window);
        }
        match &mut self.strict {
            Some(strict) if steady => strict.on_ack(now, self.edge),
            Some(strict) => strict.disturb(),
            None => self.reader.on_ack(&self.news(now, una, trip, (top, room)), steady),
        }
    }

    fn news(&self, now: Instant, una: u64, trip: Duration, (top, room): (u64, u64)) -> WindowUpdate {
        let used = top.saturating_sub(self.edge);
        WindowUpdate { now, una, edge: self.edge, largest: self.largest, hop_rtt: trip, used, room }
    }

    /// True if the receiver had not advertised room for data up to `end` when it began to expect `una`.
    /// Everything sent earlier had arrived by then (the hop keeps order), and every arriving packet is
    /// acknowledged with a window; so a missing packet that had room is lost.
    pub(crate) const fn had_no_room(&self, una: u64, end: u64) -> bool {
        self.first.0 == una && end > una + self.first.1
    }

    /// Notes that data sent at `sent` was refused.
    pub(crate) fn overflowed(
        &mut self,
        (now, sent): (Instant, Instant),
        una: u64,
        trip: Duration,
        top_and_room: (u64, u64),
    ) {
        if self.strict.is_none() {
            self.reader.overflow(&self.news(now, una, trip, top_and_room), sent);
        }
    }

    /// Lets the whole window be used: no ACK is on its way that could tell what was read, and Linux announces
    /// a window by itself only when it is twice the last one. If the receiver's buffer has shrunk, a gateway
    /// that keeps part of the window free and this receiver would wait for each other.
    pub(crate) const fn nothing_in_flight(&mut self) {
        self.promised = self.edge;
    }

    /// Position up to which data may be forwarded now; `room` is how far beyond the edge the hop allows.
    pub(crate) fn limit(&self, now: Instant, d: Duration, room: u64) -> u64 {
        let Some(strict) = &self.strict else {
            return self.reader.limit(now, self.edge, room, d, self.largest).max(self.promised);
        };
        // without an ACK for a round trip the extrapolation ends
        let ahead = now.since(self.told).min(d) + d;
        self.edge + ((strict.rate * ahead.as_secs_f64()) as u64).min(room)
    }

    /// R in bytes per second, if known.
    pub(crate) fn rate(&self) -> Option<f64> {
        match &self.strict {
            Some(strict) => Some(strict.rate),
            None => self.reader.rate(),
        }
    }
}
