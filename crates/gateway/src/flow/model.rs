//! Detects senders that are paced by a model of their path, as BBR is: they gain nothing from acceleration,
//! and pass.
//!
//! Source: Cardwell et al., draft-ietf-ccwg-bbr: BBR sends at a pacing gain times the measured bandwidth, and
//! cwnd is only an upper bound. Startup (section 5.3.1) doubles the rate each round trip (gain 2.77, in
//! version 1 2.89), Drain (5.3.2) removes at a gain of 0.35 or 0.5 the queue that Startup built, and ProbeBW
//! (5.3.3) continues at the bandwidth itself. BBR does not halve its rate for a loss, so hiding losses gains
//! nothing; ACKs that wait for a repair distort its measurements of the path and make it slower.
//!
//! Idea: a loss-based sender is stopped only by its window. It sends in bursts clocked by ACKs or, paced as
//! Linux does (2 windows per smoothed RTT in slow start, 1.2 after it), within half or five sixths of the
//! RTT; and it fills its window again at once, unless its application has no more data. A sender with a model
//! differs in two ways, and either is enough:
//! - `startup.rs`: rounds that are spread evenly over the RTT although each is larger than all before;
//! - `drain.rs`: data in flight decreases while the hop is busy and nothing was lost, and then stays far
//!   below its maximum at just the hop's rate.
//!
//! For the second, two products are advertised while the sender is judged ([`WINDOW`]): with one, the
//! decrease in BBR's flight could not be seen. Data that exceeds the hop's capacity waits here. Deviation:
//! the ProbeBW cycle and ProbeRTT are not used; that would take a minute.
//!
//! Not recognised: BBR whose application sends less than the hop carries, or whose path holds less than ten
//! packets, or that has only a part of the hop because others share it. False positive: an application that
//! pauses and then sends exactly at the hop's rate for two round trips looks like Drain.
//!
//! A receiver whose window is smaller than the path limits even BBR: then BBR gains too, and is not judged.
//!
//! Defaults: judging ends after 32 rounds of 12 packets or more ([`ROUNDS`]); smaller rounds are not counted.

mod drain;
mod startup;

use super::{Flow, Shared};
use crate::counters::PassReason;
use bentpipe_base::{Cx, Duration, Instant};
use drain::Drain;
use startup::Startup;

/// Bandwidth-delay products in the window advertised while the sender is judged.
pub(super) const WINDOW: u64 = 2;
/// Bytes that may be in flight between the sender and the gateway.
const MARGIN: u64 = 65_536;
/// Rounds after which the sender counts as loss-based.
const ROUNDS: u8 = 32;

/// The observation of the sender at the time when a packet passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SenderView {
    pub(super) now: Instant,
    /// Position after the sender's last byte.
    pub(super) top: u64,
    /// Highest acknowledgment, and right edge, advertised to the sender.
    pub(super) told: u64,
    pub(super) edge: u64,
    /// Bytes queued for the hop.
    pub(super) waits: u64,
    /// Minimum RTT that the sender can measure.
    pub(super) trip: Duration,
    /// Segment size in bytes.
    pub(super) segment: u64,
}

impl SenderView {
    const fn flight(&self) -> u64 {
        self.top.saturating_sub(self.told)
    }
}

#[derive(Debug, Default)]
pub(super) struct Model {
    startup: Startup,
    drain: Drain,
    /// The receiver's first window: a larger one later shows that it tunes its buffer automatically.
    pub(super) first_window: u64,
    /// The sender is paced by a model.
    is_found: bool,
}

impl Model {
    /// The sender sent `bytes` of new data.
    pub(super) fn sent(&mut self, seen: &SenderView, bytes: u64) {
        self.is_found |= self.drain.look(seen);
        self.startup.sent(seen, bytes);
    }

    /// An acknowledgment was sent to the sender.
    pub(super) fn on_ack(&mut self, seen: &SenderView) {
        self.is_found |= self.drain.look(seen) | self.startup.told(seen);
    }

    /// The sender may assume a loss and react to it.
    pub(super) fn lost(&mut self, seen: &SenderView) {
        self.startup.lost(seen.top);
        self.drain.lost(seen);
    }

    /// True if it was observed long enough without a result.
    pub(super) const fn is_over(&self) -> bool {
        !self.is_found && self.startup.rounds >= ROUNDS
    }
}

impl Flow {
    /// Starts judging the sender if the receiver scales windows; `window` is its current one.
    pub(super) fn start_detection(&mut self, window: u64) {
        let is_modern = self.handshake.receiver_shift() > 0;
        self.model = is_modern.then(|| Box::new(Model { first_window: window, ..Model::default() }));
    }

    /// True if the receiver's window field can express a whole `product`.
    pub(super) fn may_hold(&self, product: u64) -> bool {
        u64::from(u16::MAX) << self.handshake.receiver_shift() >= product
    }

    /// Returns the current observation; none if the sender is not judged, or the RTT is unknown.
    fn seen(&self, now: Instant) -> Option<SenderView> {
        self.model.as_ref().and(self.hop_rtt.known())?;
        let top = self.sender.top;
        Some(SenderView {
            now,
            top,
            told: self.advertised.ack,
            edge: self.advertised.edge,
            waits: self.cache.queue.front().map_or(0, |head| top.saturating_sub(head.start)),
            trip: self.hop_rtt.minimum() + self.handshake.lan_rtt.unwrap_or_default(),
            segment: self.handshake.mss(),
        })
    }

    /// Notes that the sender sent `bytes` of new data; 0: all of it was retransmitted.
    pub(super) fn observe_data(&mut self, now: Instant, bytes: u64) {
        let (Some(seen), Some(model)) = (self.seen(now), &mut self.model) else { return };
        if bytes > 0 { model.sent(&seen, bytes) } else { model.lost(&seen) }
    }

    /// Notes an acknowledgment to the sender, which may report a loss.
    pub(super) fn observe_ack(&mut self, now: Instant, tells_loss: bool) {
        let (Some(seen), Some(model)) = (self.seen(now), &mut self.model) else { return };
        if tells_loss {
            model.lost(&seen);
        }
        model.on_ack(&seen);
        if model.is_over() {
            self.model = None;
        }
    }

    /// Stops accelerating a sender that was found, once its receiver has room for everything in flight and,
    /// as far as known, for the path. The right edge advertised to the sender then moves left, to the
    /// receiver's (RFC 9293, section 3.8.6: a sender must tolerate that). Nothing sent so far lies beyond it,
    /// and later losses are the sender's to repair.
    pub(super) fn pass_if_found(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        let Some(model) = self.model.as_ref().filter(|model| model.is_found) else { return };
        let product = self.path(cx.now, shared).bdp();
        let flight = self.sender.top - self.una;
        let largest = self.receiver.largest;
        let holds = largest >= product.unwrap_or(flight * 2) || largest >= model.first_window * 2;
        let has_room = self.receiver.edge >= self.sender.top + (flight / 8).min(MARGIN);
        if holds && has_room && product.is_none_or(|p| self.may_hold(p)) {
            self.advertised.edge = self.receiver.edge;
            self.stop(cx, PassReason::ModelBased, shared);
        }
    }
}

#[cfg(test)]
mod tests;
