//! Vegas' early retransmission.
//!
//! Source: Brakmo et al. 1994, section 3.1. On the first duplicate ACK, and on the first two ACKs after a
//! retransmission, the oldest segment is resent if it was sent longer ago than a fine-grained timeout; so
//! neither three duplicate ACKs nor a coarse timer are needed for a second loss in the same window. Fine
//! timeout as in ns-2: (SRTT + 2 RTTVAR) * 17/16. Deviation: none known.

use super::{AckView, DUP_THRESH, Recovery};
use crate::board::{Scoreboard, Sent};
use crate::cc::Episode;
use bentpipe_base::Duration;

/// Number of ACKs after a retransmission that are checked.
const WORRIED: u8 = 2;

fn expired(board: &Scoreboard, view: &AckView<'_>) -> bool {
    let fine = view.rtt.srtt() + view.rtt.rttvar() * 2;
    let old = |s: &Sent| view.digest.now.since(s.sent_at) > Duration(fine.0 / 16 * 17);
    view.rtt.has_sample() && board.get(0).is_some_and(old)
}

impl Recovery {
    pub(super) fn early_on_ack(&mut self, board: &mut Scoreboard, view: &AckView<'_>) {
        if self.episode == Episode::Timeout {
            return;
        }
        if view.digest.duplicate {
            self.dup_acks += 1;
            if self.episode == Episode::Fast {
                self.dup_ack_credit += view.mss as i64;
            } else if self.dup_acks == DUP_THRESH || expired(board, view) {
                let dup_acks = self.dup_acks;
                self.begin_fast(board, view);
                self.dup_ack_credit = i64::from(dup_acks) * view.mss as i64;
                self.early_checks_left = WORRIED;
            }
            return;
        }
        if view.digest.acked == 0 {
            return;
        }
        if self.episode == Episode::Fast {
            self.end();
            self.result.ended = true;
        }
        self.dup_acks = 0;
        if self.early_checks_left > 0 {
            self.early_checks_left -= 1;
            if expired(board, view) {
                board.mark_lost(0, true);
                self.forced_resend = Some(board.una());
            } else {
                self.early_checks_left = 0;
            }
        }
    }
}
