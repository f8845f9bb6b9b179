//! Loss recovery where Linux departs from the RFCs that the other files follow.
//!
//! Source: the behaviour of Linux 6.x.
//! - Without SACK each duplicate ACK counts as a segment delivered, for the reduction too; an ACK that fills
//!   the hole delivers the bytes that the duplicates did not count.
//! - Without SACK an episode lasts until data sent after it began is acknowledged (RFC 6582, section 6,
//!   "avoiding multiple fast retransmits").
//! - A timeout marks as lost the first segment and those sent a round trip ago or earlier (RFC 8985, section
//!   6.3). It lowers ssthresh unless an episode that has already done so is still in progress.
//! - A mark reduces the window by PRR (`tcp_enter_cwr`), outside any episode; a loss found meanwhile
//!   continues that reduction.
//! - F-RTO tests the first timeout of an episode and repeated ones, not one within fast recovery; any
//!   acknowledgment of data that was sent before the timeout and never resent proves it spurious.

use super::{AckView, Recovery};
use crate::board::Scoreboard;
use crate::cc::{Episode, Loss, LossCause};
use crate::scheme::Reduction;
use bentpipe_base::Instant;

impl Recovery {
    /// Returns the bytes that this acknowledgment delivered; short segments count as full ones, and duplicate
    /// ACKs count. Called before anything else uses the acknowledgment.
    pub(super) const fn linux_delivered(&self, view: &AckView<'_>) -> u64 {
        if self.sack {
            return view.digest.segments * view.mss;
        }
        if view.digest.duplicate {
            return view.mss;
        }
        if view.digest.acked == 0 {
            return 0;
        }
        let counted = if self.dup_ack_credit > 0 {
            self.dup_ack_credit as u64
        } else {
            self.dup_acks as u64 * view.mss
        };
        let rest = view.digest.acked.saturating_sub(counted);
        if rest > view.mss { rest } else { view.mss }
    }

    /// True when the acknowledgment ends the episode.
    pub(super) const fn linux_ends(&self, board: &Scoreboard) -> bool {
        let held = !self.sack && matches!(self.episode, Episode::Fast);
        board.una() > self.recover || (board.una() == self.recover && !held)
    }

    /// Without SACK, after a timeout: a duplicate ACK means that new data sent by F-RTO has arrived, so
    /// something may be resent in its place.
    pub(super) fn linux_duplicates(&mut self, board: &Scoreboard, view: &AckView<'_>) {
        if view.digest.acked > 0 {
            self.dup_ack_credit = 0;
        } else if view.digest.duplicate && board.next() > self.recover {
            self.dup_ack_credit += view.mss as i64;
        }
    }

    /// Without SACK, in fast recovery: the count of duplicates does not fall below zero, so that the data in
    /// flight is not overestimated. True if the ACK covers all that was sent before the episode.
    pub(super) fn linux_partial_ack(&mut self, board: &Scoreboard) -> bool {
        let over = board.is_empty() || board.una() >= self.recover;
        self.dup_ack_credit = if over { 0 } else { self.dup_ack_credit.max(0) };
        over
    }

    /// True while a mark reduces the window.
    #[inline]
    pub const fn is_reducing(&self) -> bool {
        self.ecn_reduction_end.is_some()
    }

    /// A mark arrived: starts to reduce the window, now `window` bytes, by PRR, if that is used.
    pub fn reduce_for_mark(&mut self, board: &Scoreboard, window: u64) {
        if self.linux && self.params.reduction == Reduction::Prr {
            self.ecn_reduction_end = Some(board.next());
            self.reductions.get_or_insert_default().linux_prr.begin(window, self.mss);
        }
    }

    /// Ends the reduction for a mark once CWR has reached the receiver: more is acknowledged than was sent
    /// before it. True if it ended.
    pub(super) fn linux_mark_ends(&mut self, board: &Scoreboard) -> bool {
        self.ecn_reduction_end.take_if(|end| board.una() > *end).is_some()
    }

    /// A loss found while a mark reduces the window does not reduce it again (`tcp_enter_recovery`): its
    /// episode continues the same reduction.
    pub(super) fn linux_continue_reduction(&mut self) {
        if self.episode == Episode::Fast && self.ecn_reduction_end.take().is_some() {
            self.result.loss = None;
        }
    }

    /// Lets one segment be sent: the reordering timer began fast recovery.
    pub fn reduce_on_timer(&mut self, board: &Scoreboard, target: u64, mss: u64) {
        if self.linux {
            let in_flight = self.in_flight(board);
            let of = self.reductions.get_or_insert_default();
            of.linux_prr.on_ack(mss, in_flight, target, mss, false);
        }
    }

    /// Handles the expiry of the retransmission timer.
    pub(super) fn linux_timeout(&mut self, board: &mut Scoreboard, now: Instant, repeated: bool) -> Loss {
        let open = matches!(self.episode, Episode::Open | Episode::Ended);
        let open = open && !self.is_reducing(); // a mark has reduced the window
        let lowers = open || board.una() >= self.recover || (self.episode == Episode::Timeout && !repeated);
        let cause = if lowers { LossCause::Timeout } else { LossCause::RepeatedTimeout };
        let loss = super::loss_of(board, 0, cause);
        self.frto.stop();
        if self.params.frto && (open || repeated) {
            self.frto.begin(board.next());
        }
        let round_trip = self.rack.rtt;
        for i in 0..board.len() {
            let old = board.get(i).is_some_and(|s| s.sent_at + round_trip <= now);
            if i == 0 || old {
                board.mark_lost(i, true);
            }
        }
        loss
    }

    /// F-RTO by a single acknowledgment: true if it reports data that was sent before the timeout and never
    /// resent.
    pub(super) fn linux_spurious(&self, view: &AckView<'_>) -> bool {
        let original = view.digest.original_least.is_some_and(|end| end <= self.frto.recover);
        self.frto.is_active() && original && (self.sack || !view.digest.resent_acked)
    }
}
