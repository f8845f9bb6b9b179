//! Vegas' early retransmission.
//!
//! Source: Brakmo et al. 1994, section 3.1. On the first duplicate ACK, and on the first two ACKs after a
//! retransmission, the oldest segment is resent if it was sent longer ago than a fine-grained timeout; so
//! neither three duplicate ACKs nor a coarse timer are needed for a second loss in the same window. Fine
//! timeout as in ns-2: (SRTT + 2 RTTVAR) * 17/16. Deviation: none known.

use super::{AckView, DUP_THRESH, Finding, Recovery};
use crate::board::Scoreboard;
use crate::cc::Episode;
use bentpipe_base::Duration;

/// Number of ACKs after a retransmission that are checked.
const WORRIED: u8 = 2;

fn expired(board: &Scoreboard, view: &AckView<'_>) -> bool {
    let fine = view.rtt.srtt() + view.rtt.rttvar() * 2;
    view.rtt.has_sample() && !board.is_empty() && board.oldest_age(view.now) > Duration(fine.0 / 16 * 17)
}

impl Recovery {
    pub(super) fn early_on_ack(&mut self, board: &mut Scoreboard, view: &AckView<'_>, finding: &mut Finding) {
        if self.episode == Episode::Timeout {
            return;
        }
        if view.duplicate {
            self.dup_acks += 1;
            if self.episode == Episode::Fast {
                self.credit += view.mss as i64;
            } else if self.dup_acks == DUP_THRESH || expired(board, view) {
                let dup_acks = self.dup_acks;
                self.begin_fast(board, view, finding);
                self.credit = i64::from(dup_acks) * view.mss as i64;
                self.worried = WORRIED;
            }
            return;
        }
        if view.digest.acked == 0 {
            return;
        }
        if self.episode == Episode::Fast {
            self.end();
            finding.ended = true;
        }
        self.dup_acks = 0;
        if self.worried > 0 {
            self.worried -= 1;
            if expired(board, view) {
                board.mark_lost(0, true);
                self.force = Some(board.una());
            } else {
                self.worried = 0;
            }
        }
    }
}
