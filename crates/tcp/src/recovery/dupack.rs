//! Reno and NewReno: three duplicate ACKs.
//!
//! Source: RFC 5681, section 3.2, and RFC 6582. The third duplicate ACK resends the first segment; every
//! further one means that a segment has left the network. NewReno: a partial ACK resends the next hole at
//! once and recovery goes on; the window deflates by what was acknowledged less one segment. Reno: any new
//! ACK ends recovery. Both: no second fast retransmit until more than the window in which the last loss was
//! found (`recover`) is acknowledged, as RFC 6582 and ns-2's Reno do; such a loss waits for the timer. The
//! retransmission timer restarts on the first partial ACK only. Deviation: none.

use super::{AckView, DUP_THRESH, Recovery};
use crate::board::Scoreboard;
use crate::cc::Episode;
use crate::scheme::Detection;

impl Recovery {
    #[inline]
    pub(super) fn dupack_on_ack(&mut self, board: &mut Scoreboard, view: &AckView<'_>) {
        match self.episode {
            Episode::Open | Episode::Ended => {
                if !view.digest.duplicate {
                    if view.digest.acked > 0 {
                        self.dup_acks = 0;
                    }
                    return;
                }
                self.dup_acks += 1;
                if self.dup_acks == DUP_THRESH && board.una() > self.recover {
                    self.begin_fast(board, view);
                    self.dup_ack_credit = i64::from(DUP_THRESH) * view.mss as i64;
                }
            }
            Episode::Fast => self.dupack_in_recovery(board, view),
            Episode::Timeout if self.linux => self.linux_duplicates(board, view),
            Episode::Timeout => {}
        }
    }

    fn dupack_in_recovery(&mut self, board: &mut Scoreboard, view: &AckView<'_>) {
        if view.digest.duplicate {
            self.dup_ack_credit += view.mss as i64;
            return;
        }
        if view.digest.acked == 0 {
            return;
        }
        if self.params.detection != Detection::NewReno {
            self.end();
            self.result.ended = true;
            return;
        }
        // RFC 6582, section 3.2, step 3, partial acknowledgment
        self.dup_ack_credit -= view.digest.acked as i64;
        if view.digest.acked >= view.mss {
            self.dup_ack_credit += view.mss as i64;
        }
        if self.linux && self.linux_partial_ack(board) {
            return; // all of the episode is acknowledged; the next ACK ends it
        }
        board.mark_lost(0, true);
        if !self.linux {
            self.forced_resend = Some(board.una()); // on Linux the reduction decides when
        }
        self.result.restart_timer = !self.partial_seen;
        self.partial_seen = true;
    }
}
