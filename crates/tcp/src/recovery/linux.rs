//! Loss recovery where Linux departs from the RFCs that the other files name.
//!
//! Source: the behaviour of Linux 6.x.
//! - Without SACK each duplicate ACK counts as a segment delivered, for the reduction too; an ACK of the hole
//!   delivers what the duplicates did not.
//! - Without SACK an episode lasts until something beyond what was sent as it began is acknowledged (RFC
//!   6582, section 6, "avoiding multiple fast retransmits").
//! - A timeout gives up what was sent a round trip ago or earlier, and the first segment (RFC 8985, section
//!   6.3). It lowers the threshold unless an episode that has done so is still on.
//! - A mark lowers the window by PRR (`tcp_enter_cwr`), outside any episode; a loss found meanwhile goes on
//!   with that reduction.
//! - F-RTO is for the first timeout of an episode and repeated ones, not for one within fast recovery; any
//!   acknowledgment of data that was sent before the timeout and never resent says that it was spurious.

use super::{AckView, Finding, Recovery};
use crate::board::Scoreboard;
use crate::cc::{Episode, Loss, LossCause};
use crate::scheme::Reduction;
use bentpipe_base::{Instant, Size};

impl Recovery {
    /// Bytes that this acknowledgment delivered, short segments counted as full ones and duplicate ACKs
    /// counted. Asked before anything else is done about it.
    pub(super) const fn linux_delivered(&self, view: &AckView<'_>) -> u64 {
        if self.sack {
            return view.digest.segments * view.mss;
        }
        if view.duplicate {
            return view.mss;
        }
        if view.digest.acked == 0 {
            return 0;
        }
        let counted = if self.credit > 0 { self.credit as u64 } else { self.dup_acks as u64 * view.mss };
        let rest = view.digest.acked.saturating_sub(counted);
        if rest > view.mss { rest } else { view.mss }
    }

    /// True when the acknowledgment ends the episode.
    pub(super) const fn linux_ends(&self, board: &Scoreboard) -> bool {
        let held = !self.sack && matches!(self.episode, Episode::Fast);
        board.una() > self.recover || (board.una() == self.recover && !held)
    }

    /// Without SACK, after a timeout: a duplicate ACK says that new data arrived which F-RTO sent, so that
    /// something may be resent in its place.
    pub(super) fn linux_duplicates(&mut self, board: &Scoreboard, view: &AckView<'_>) {
        if view.digest.acked > 0 {
            self.credit = 0;
        } else if view.duplicate && board.next() > self.recover {
            self.credit += view.mss as i64;
        }
    }

    /// Without SACK, in fast recovery: duplicates are counted down to none and not below, so nothing seems in
    /// flight that is not. True when the ACK covers all that was sent before the episode.
    pub(super) fn linux_counts_down(&mut self, board: &Scoreboard) -> bool {
        let over = board.is_empty() || board.una() >= self.recover;
        self.credit = if over { 0 } else { self.credit.max(0) };
        over
    }

    /// With SACK: an episode begins whenever something is lost and none is on. So where one ends and leaves
    /// what was lost in it later, the next begins at once, and the window is lowered again.
    pub(super) const fn linux_begins(&self, board: &Scoreboard) -> bool {
        self.linux && board.lost() > 0
    }

    /// True while a mark lowers the window.
    #[inline]
    pub const fn is_reducing(&self) -> bool {
        self.reducing.is_some()
    }

    /// A mark arrived while `window` bytes were planned: PRR brings the window down, where it is used.
    pub fn reduce_for_mark(&mut self, board: &Scoreboard, window: u64) {
        if self.linux && self.params.reduction == Reduction::Prr {
            self.reducing = Some(board.next());
            self.linux_prr.begin(window, self.mss);
        }
    }

    /// CWR has reached the receiver: more is acknowledged than was sent before it. True when the reduction
    /// ended.
    pub(super) fn linux_mark_ends(&mut self, board: &Scoreboard) -> bool {
        self.reducing.take_if(|end| board.una() > *end).is_some()
    }

    /// A loss that was found while a mark lowers the window lowers it no further (`tcp_enter_recovery`): its
    /// episode goes on with the same reduction.
    pub(super) fn linux_goes_on(&mut self, finding: &mut Finding) {
        if self.episode == Episode::Fast && self.reducing.take().is_some() {
            finding.loss = None;
        }
    }

    /// The reordering timer began fast recovery: one segment goes.
    pub fn reduce_on_timer(&mut self, board: &Scoreboard, target: u64, mss: u64) {
        if self.linux {
            let in_flight = self.in_flight(board);
            self.linux_prr.on_ack(mss, in_flight, target, mss, false);
        }
    }

    /// The retransmission timer expired.
    pub(super) fn linux_timeout(&mut self, board: &mut Scoreboard, now: Instant, repeated: bool) -> Loss {
        let open = matches!(self.episode, Episode::Open | Episode::Ended);
        let open = open && !self.is_reducing(); // a mark has lowered it
        let lowers = open || board.una() >= self.recover || (self.episode == Episode::Timeout && !repeated);
        let cause = if lowers { LossCause::Timeout } else { LossCause::RepeatedTimeout };
        let loss = super::loss_of(board, cause, Size(board.flight() - board.sacked()));
        self.frto.stop();
        if self.params.frto && (open || repeated) {
            self.frto.begin(board.next());
        }
        let round_trip = self.rack.rtt();
        for i in 0..board.len() {
            let old = board.get(i).is_some_and(|s| s.sent_at + round_trip <= now);
            if i == 0 || old {
                board.mark_lost(i, true);
            }
        }
        loss
    }

    /// F-RTO, as far as one acknowledgment decides it: data from before the timeout that was never resent
    /// arrives.
    pub(super) fn linux_spurious(&mut self, view: &AckView<'_>, finding: &mut Finding) -> bool {
        let original = view.digest.original_least.is_some_and(|end| end <= self.frto.recover());
        let sure = self.sack || !view.digest.resent_acked;
        if self.frto.is_active() && original && sure {
            self.frto.stop();
            finding.undo = true;
            return true;
        }
        false
    }
}
