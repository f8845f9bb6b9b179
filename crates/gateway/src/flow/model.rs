//! Whether the sender is paced by a model of its path, as BBR is: such a sender cannot gain, and is passed.
//!
//! Source: Cardwell et al., draft-ietf-ccwg-bbr: BBR sends at a pacing gain times the bandwidth it has seen,
//! and its window only bounds that. Startup (section 5.3.1) doubles the rate each round trip (gain 2.77, in
//! version 1 2.89), Drain (5.3.2) gives up at a gain of 0.35 or 0.5 what Startup put into the queue, and
//! ProbeBW (5.3.3) goes on at the bandwidth itself. It does not halve for a loss, so there is nothing to hide
//! from it; acknowledgments that wait for a repair hide its path, and make it slower.
//!
//! Idea: a sender that losses control is stopped by its window only. What it sends comes in a burst behind
//! the acknowledgments, or, paced as Linux does (2 windows per smoothed round trip in slow start, 1.2 after
//! it), in a half or five sixths of the round trip; and what it once had in flight it has again at once,
//! unless its application has no more data. A sender with a model differs in two places, and either is
//! enough:
//! - `startup.rs`: rounds that fill the round trip evenly, and yet each is larger than all before;
//! - `drain.rs`: flight that is given up while the hop is busy and nothing was lost, and then, far below what
//!   was in flight before, just the hop's rate.
//!
//! For the second the window shown is two products while this goes on ([`WINDOW`]): with one, flight that BBR
//! gives up is not seen. What is more than the hop holds waits here. Deviation: of the cycle of ProbeBW and
//! of ProbeRTT nothing is made use of; they would need a minute.
//!
//! Not recognised: BBR whose application sends less than the hop carries, or whose path holds less than ten
//! packets, or that has no more than a part of the hop, since others share it. A sender whose application
//! gives it a pause and then, exactly, the hop's rate for two round trips looks the same as Drain.
//!
//! A receiver whose window is smaller than the path keeps even BBR from its rate: then it gains, and nobody
//! asks.
//!
//! Defaults: it ends after 32 rounds of 12 packets or more ([`ROUNDS`]); smaller ones tell nothing and are
//! not counted.

mod drain;
mod startup;

use super::{Flow, Shared};
use crate::counters::Why;
use bentpipe_base::{Cx, Duration, Instant};
use drain::Drain;
use startup::Startup;

/// Bandwidth-delay products in the window that is shown while the sender is judged.
pub(super) const WINDOW: u64 = 2;
/// Bytes that may be between the sender and here.
const MARGIN: u64 = 65_536;
/// Rounds after which it is not.
const ROUNDS: u8 = 32;

/// What there is to see when a packet goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: Instant,
    /// Position after the sender's last byte.
    pub(super) top: u64,
    /// What it was told is acknowledged, and the right edge it was shown.
    pub(super) told: u64,
    pub(super) edge: u64,
    /// Bytes that wait for the hop.
    pub(super) waits: u64,
    /// The shortest round trip that the sender can see.
    pub(super) trip: Duration,
    /// Bytes of a full segment.
    pub(super) segment: u64,
}

impl Seen {
    const fn flight(&self) -> u64 {
        self.top.saturating_sub(self.told)
    }
}

/// What was seen of one sender.
#[derive(Debug, Default)]
pub(super) struct Model {
    startup: Startup,
    drain: Drain,
    /// The receiver's first window: one that tunes itself does not keep to it.
    pub(super) first_window: u64,
    is_found: bool,
}

impl Model {
    /// The sender sent `bytes` that it had not sent before.
    pub(super) fn sent(&mut self, seen: &Seen, bytes: u64) {
        self.is_found |= self.drain.look(seen);
        self.startup.sent(seen, bytes);
    }

    /// It was told something.
    pub(super) fn told(&mut self, seen: &Seen) {
        self.is_found |= self.drain.look(seen) | self.startup.told(seen);
    }

    /// It may think that something was lost: what it does now is its answer to that.
    pub(super) fn lost(&mut self, seen: &Seen) {
        self.startup.lost(seen.top);
        self.drain.lost(seen);
    }

    /// It is paced by a model.
    pub(super) const fn is_found(&self) -> bool {
        self.is_found
    }

    /// It was looked at for long enough.
    pub(super) const fn is_over(&self) -> bool {
        !self.is_found && self.startup.rounds >= ROUNDS
    }
}

impl Flow {
    /// From now on the sender is judged, unless the receiver is of those that hold less than a path; its
    /// window is `window` now.
    pub(super) fn judge(&mut self, window: u64) {
        let is_modern = self.shake.receiver_shift() > 0;
        self.model = is_modern.then(|| Box::new(Model { first_window: window, ..Model::default() }));
    }

    /// The receiver's window field can tell of a whole `product`.
    pub(super) fn may_hold(&self, product: u64) -> bool {
        u64::from(u16::MAX) << self.shake.receiver_shift() >= product
    }

    fn seen(&self, now: Instant) -> Option<Seen> {
        self.trip.known()?;
        let top = self.sender.top;
        Some(Seen {
            now,
            top,
            told: self.shown.ack,
            edge: self.shown.edge,
            waits: self.cache.queue.front().map_or(0, |head| top.saturating_sub(head.start)),
            trip: self.trip.least() + self.shake.lan_trip.unwrap_or_default(),
            segment: self.shake.mss(),
        })
    }

    /// The sender sent so many bytes that are new; none: all of it had come before.
    pub(super) fn watch_sent(&mut self, now: Instant, bytes: u64) {
        if self.model.is_none() {
            return;
        }
        let (Some(seen), Some(model)) = (self.seen(now), &mut self.model) else { return };
        if bytes > 0 { model.sent(&seen, bytes) } else { model.lost(&seen) }
    }

    /// It was told something, perhaps of a loss.
    pub(super) fn watch_told(&mut self, now: Instant, tells_loss: bool) {
        if self.model.is_none() {
            return;
        }
        let (Some(seen), Some(model)) = (self.seen(now), &mut self.model) else { return };
        if tells_loss {
            model.lost(&seen);
        }
        model.told(&seen);
        if model.is_over() {
            self.model = None;
        }
    }

    /// Passes a sender that was found, when its receiver has room for all that is on the way, and for the
    /// path as far as is known. Then the right edge that it is shown moves left, to the receiver's (RFC 9293,
    /// section 3.8.6: a sender must stand that): nothing that was sent lies beyond, and nobody would repair
    /// what will.
    pub(super) fn pass_if_found(&mut self, cx: &mut Cx<'_>, shared: &mut Shared<'_>) {
        let Some(model) = self.model.as_ref().filter(|model| model.is_found()) else { return };
        let product = self.path(cx.now, shared).product();
        let flight = self.sender.top - self.una;
        let largest = self.receiver.largest;
        let holds = largest >= product.unwrap_or(flight * 2) || largest >= model.first_window * 2;
        let has_room = self.receiver.edge >= self.sender.top + (flight / 8).min(MARGIN);
        if holds && has_room && product.is_none_or(|p| self.may_hold(p)) {
            self.shown.edge = self.receiver.edge;
            self.stop(cx, Why::ModelBased, shared);
        }
    }
}

#[cfg(test)]
mod tests;
