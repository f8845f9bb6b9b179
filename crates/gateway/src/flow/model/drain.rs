//! Drain: data in flight decreases without a loss while the hop is busy, and then stays low at the hop's
//! rate.
//!
//! Source: draft-ietf-ccwg-bbr, sections 5.3.2 and 5.3.3. Observed per quarter of the minimum RTT. With r the
//! rate at which data leaves for the hop while some is queued, W the largest flight since the sender may last
//! have seen a loss (or the advertised window if that is less), and s the sending rate:
//!   given up:   s <= 0.6 r,  flight <= 0.93 W,  the window is open, and data waits for the hop; two quarters
//!               at least
//!   kept down:  then in 6 quarters  flight <= 0.85 W,  a tenth of W left of the window shown,  and s up to
//!               1.4 r, 0.85 to 1.2 r in the mean
//! A loss-based sender keeps W in flight; when paced, it refills at 1.2 W per round trip. An application can
//! also let the flight decrease: if it sends at a lower rate the hop is busy only while the queue lasts, and
//! if it continues after a pause there is a burst. Reducing cwnd to 0.7, for an ECN mark or a drop in the
//! sender's own queue, does not lower the rate below 0.6 r.
//!
//! A path that holds less than ten packets is not judged: a quarter then carries two or three of them, and
//! rates can only be multiples of a packet per quarter.

use super::SenderView;
use bentpipe_base::{Duration, Instant};

const QUARTERS: u64 = 4;
/// Quarters in which flight decreases: minimum and maximum; and quarters in which it stays low.
const LEAST: u8 = 2;
const MOST: u8 = 24;
const STEADY: u8 = 6;
/// After this many quarters without a packet the observation starts again.
const SILENCE: f64 = 6.0;
/// Sending rate as a share of r: the largest while flight decreases, the largest in a quarter with low
/// flight, and the range of the mean over the quarters with low flight.
const LOW: f64 = 0.6;
const HIGH: f64 = 1.4;
const MEAN: (f64, f64) = (0.85, 1.2);
/// Shares of W: flight has decreased below `LESS`, and stays low below `DOWN`.
const LESS: f64 = 0.93;
const DOWN: f64 = 0.85;
/// This part of W, as a divisor, must be left of the advertised window.
const LEFT: u64 = 10;
/// Tolerance per quarter, in packets.
const OFF: f64 = 2.0;
/// Packets in a minimum RTT at the rate r below which nothing is judged.
const FEW: f64 = 10.0;

/// What was observed, and the current quarter.
#[derive(Debug, Default)]
pub(super) struct Drain {
    since: Option<Instant>,
    /// Positions at its start: sent, acknowledged, forwarded into the hop.
    from: (u64, u64, u64),
    /// Smallest unused part of the advertised window in it.
    left: u64,
    /// Data was queued at its start.
    waited: bool,
    /// W before it is limited by the advertised window.
    most: u64,
    /// r, in bytes per quarter; 0 if unknown.
    rate: f64,
    /// W is unknown until then.
    blind: Instant,
    /// Quarters with decreasing flight, quarters with low flight, and bytes sent in the latter.
    given: u8,
    steady: u8,
    sum: f64,
}

impl Drain {
    /// Updates the observation; true if flight has decreased and stays low.
    pub(super) fn look(&mut self, seen: &SenderView) -> bool {
        let flight = seen.flight();
        self.left = self.left.min(seen.edge.saturating_sub(seen.top));
        self.most = self.most.max(flight);
        let Some(since) = self.since else {
            self.begin(seen);
            return false;
        };
        let quarter = Duration(seen.trip.0 / QUARTERS).max(Duration(1));
        let time = seen.now.since(since);
        if time < quarter {
            return false;
        }
        let is_found = self.judge(seen, time.0 as f64 / quarter.0 as f64);
        self.begin(seen);
        is_found
    }

    /// The sender may reduce cwnd now, so flight may fall for a round trip or two.
    pub(super) fn lost(&mut self, seen: &SenderView) {
        self.blind = seen.now + seen.trip * 2;
        self.most = 0;
        self.forget();
    }

    const fn forget(&mut self) {
        (self.given, self.steady, self.sum) = (0, 0, 0.0);
    }

    const fn begin(&mut self, seen: &SenderView) {
        self.since = Some(seen.now);
        self.from = (seen.top, seen.told, seen.top.saturating_sub(seen.waits));
        self.waited = seen.waits > 0;
        self.left = u64::MAX;
    }

    /// Evaluates the time since the last call, which was `n` quarters of the RTT long.
    fn judge(&mut self, seen: &SenderView, n: f64) -> bool {
        if n > SILENCE || seen.now < self.blind {
            self.most = seen.flight();
            self.forget();
            return false;
        }
        let per_quarter = |to: u64, from: u64| to.saturating_sub(from) as f64 / n;
        let sent = per_quarter(seen.top, self.from.0);
        if self.waited && seen.waits > 0 {
            let gone = per_quarter(seen.top.saturating_sub(seen.waits), self.from.2);
            self.rate = if self.rate > 0.0 { 0.75 * self.rate + 0.25 * gone } else { gone };
        }
        if self.rate * QUARTERS as f64 >= FEW * seen.segment as f64 {
            self.step(seen, sent, OFF * seen.segment as f64 / n)
        } else {
            self.forget();
            false
        }
    }

    /// `sent`: bytes in this quarter, with the tolerance `off`.
    fn step(&mut self, seen: &SenderView, sent: f64, off: f64) -> bool {
        let most = self.most.min(seen.edge.saturating_sub(seen.told)) as f64;
        let flight = seen.flight() as f64;
        let is_open = seen.edge.saturating_sub(seen.top) >= 2 * seen.segment && flight <= LESS * most;
        if sent <= LOW * self.rate && is_open && (self.waited || self.given > 0) {
            (self.given, self.steady, self.sum) = (self.given + 1, 0, 0.0);
            if self.given > MOST {
                self.forget();
            }
            return false;
        }
        // without acknowledgments flight can only grow
        let is_down = flight <= DOWN * most || (seen.told == self.from.1 && seen.flight() < self.most);
        let is_free = self.left as f64 * LEFT as f64 >= most;
        if self.given < LEAST || !is_down || !is_free || sent > HIGH * self.rate + off {
            self.forget();
            return false;
        }
        self.steady += 1;
        self.sum += sent;
        if self.steady < STEADY {
            return false;
        }
        let mean = self.sum / f64::from(self.steady) / self.rate;
        self.forget();
        (MEAN.0..=MEAN.1).contains(&mean)
    }
}
