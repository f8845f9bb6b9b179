//! Linux acknowledges the first segments of a connection at once, delayed ACKs or not.
//!
//! Source: the behaviour of Linux 6.x (`tcp_event_data_recv`, `tcp_incr_quickack`, `tcp_in_quickack_mode`). A sender in slow start needs every acknowledgment: the first
//! sixteen are not delayed, fewer where the window holds less than twice as many segments, and two at least. So it is again after a pause longer than the retransmission timeout.
//! An end that answers with data of its own delays its acknowledgments for that data to carry.

use bentpipe_base::{Duration, Instant};

/// Most acknowledgments sent at once (TCP_MAX_QUICKACKS).
const MOST: u64 = 16;
/// Fewest.
const FEWEST: u64 = 2;

/// How many acknowledgments are still sent at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuickAcks {
    left: u64,
    /// When data last arrived.
    last: Option<Instant>,
    answers: bool,
}

impl QuickAcks {
    /// Every acknowledgment may be delayed.
    pub(crate) const NONE: Self = Self { left: 0, last: None, answers: false };

    /// Data arrives; `segments` fill the window.
    pub(crate) fn arrives(&mut self, now: Instant, rto: Duration, segments: u64) {
        if self.last.is_none_or(|last| now.since(last) > rto) {
            self.left = (segments / 2).clamp(FEWEST, MOST);
            self.answers = false;
        }
        self.last = Some(now);
    }

    /// True while an acknowledgment is not delayed.
    pub(crate) const fn wanted(&self) -> bool {
        self.left > 0 && !self.answers
    }

    /// An acknowledgment was sent; `with` data of our own.
    pub(crate) const fn sent(&mut self, with: bool) {
        self.left = self.left.saturating_sub(1);
        if with && self.last.is_some() {
            self.answers = true;
        }
    }
}
