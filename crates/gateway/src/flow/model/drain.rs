//! Drain: flight that is given up though nothing was lost, while the hop is busy; and then the hop's rate, no
//! more.
//!
//! Source: draft-ietf-ccwg-bbr, sections 5.3.2 and 5.3.3. Looked at by quarters of the shortest round trip;
//! with r the rate at which data leaves for the hop while some waits, W the most in flight since the sender
//! last may have seen a loss, or the window shown where that is less, and s what it sends:
//!   given up:   s <= 0.6 r,  flight <= 0.93 W,  the window is open, and data waits for the hop; two quarters
//!               at least
//!   kept down:  then in 6 quarters  flight <= 0.85 W,  a tenth of W left of the window shown,  and s up to
//!               1.4 r, 0.85 to 1.2 r in the mean
//! A sender that losses control keeps W in flight; paced, it makes up for less at 1.2 W per round trip. An
//! application can give up flight as well: when it sends at a lower rate the hop is not busy for longer than
//! the backlog lasts, and when it goes on after a pause there is a burst. A reduction for an ECN mark, or for
//! a drop in the sender's own queue, by 0.7 is none of less than 0.6 r.

use super::Seen;
use bentpipe_base::{Duration, Instant};

/// Quarters to a round trip.
const QUARTERS: u64 = 4;
/// Quarters of giving up that are enough, and that are too many; and quarters of being kept down.
const LEAST: u8 = 2;
const MOST: u8 = 24;
const STEADY: u8 = 6;
/// After as many without a packet nothing is known.
const SILENCE: f64 = 6.0;
/// Share of the hop's rate below which flight is given up; above which it is made up for; and what the mean
/// may be.
const LOW: f64 = 0.6;
const HIGH: f64 = 1.4;
const MEAN: (f64, f64) = (0.85, 1.2);
/// Share of W that is less than W, and that is kept down.
const LESS: f64 = 0.93;
const DOWN: f64 = 0.85;
/// Share of W that must be left of the window.
const LEFT: u64 = 10;
/// Packets by which a quarter may be off.
const OFF: f64 = 2.0;

/// What was seen, and the quarter that goes on.
#[derive(Debug, Default)]
pub(super) struct Drain {
    since: Option<Instant>,
    /// Where it began: sent, told, gone into the hop.
    from: (u64, u64, u64),
    /// The least that was left of the window in it.
    left: u64,
    /// Data waited when it began.
    waited: bool,
    /// W, before the window.
    most: u64,
    /// r, in bytes per quarter; 0 while it is unknown.
    rate: f64,
    /// Until then W is not known.
    blind: Instant,
    /// Quarters of giving up, of being kept down, and what was sent in these.
    given: u8,
    steady: u8,
    sum: f64,
}

impl Drain {
    /// True when flight was given up and is kept down.
    pub(super) fn look(&mut self, seen: &Seen) -> bool {
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

    /// The sender may make its window smaller now, and what is in flight falls for a round trip or two.
    pub(super) fn lost(&mut self, seen: &Seen) {
        self.blind = seen.now + seen.trip * 2;
        self.most = 0;
        self.forget();
    }

    const fn forget(&mut self) {
        (self.given, self.steady, self.sum) = (0, 0, 0.0);
    }

    /// A quarter begins.
    const fn begin(&mut self, seen: &Seen) {
        self.since = Some(seen.now);
        self.from = (seen.top, seen.told, seen.top.saturating_sub(seen.waits));
        self.waited = seen.waits > 0;
        self.left = u64::MAX;
    }

    /// It is over, and was `n` quarters long.
    fn judge(&mut self, seen: &Seen, n: f64) -> bool {
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
        if self.rate > 0.0 { self.step(seen, sent, OFF * seen.segment as f64 / n) } else { false }
    }

    /// `sent` in the quarter, which may be `off` by so much.
    fn step(&mut self, seen: &Seen, sent: f64, off: f64) -> bool {
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
        // while nothing is told what is in flight must grow
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
