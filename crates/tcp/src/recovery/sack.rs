//! SACK-based loss recovery.
//!
//! Source: RFC 6675. A segment is lost when three discontiguous SACKed ranges, or more than two segments'
//! bytes, lie above it (IsLost). Recovery begins on the third duplicate ACK or when the first segment is
//! lost; then, while cwnd - pipe >= SMSS: (1) the lowest lost segment, (2) new data, (3) an un-SACKed segment
//! below the highest SACKed one, (4) one rescue of the last segment. Deviation: none.

use super::{AckView, DUP_THRESH, Recovery};
use crate::board::Scoreboard;
use crate::cc::Episode;

/// Returns the position below which everything un-SACKed is lost.
fn loss_boundary(board: &Scoreboard, mss: u64) -> u64 {
    let mut bytes = 0;
    let mut ranges = 0;
    for (left, right) in board.sacked_ranges().iter().rev() {
        bytes += right - left;
        ranges += 1;
        if bytes > u64::from(DUP_THRESH - 1) * mss || ranges >= DUP_THRESH {
            return *left;
        }
    }
    0
}

impl Recovery {
    pub(super) fn sack_on_ack(&mut self, board: &mut Scoreboard, view: &AckView<'_>) {
        if view.digest.acked > 0 && self.episode == Episode::Open {
            self.dup_acks = 0;
        }
        if view.digest.duplicate {
            self.dup_acks += 1;
        }
        if board.sacked() == 0 {
            return;
        }
        let lost_below = loss_boundary(board, view.mss);
        match self.episode {
            Episode::Open | Episode::Ended => {
                let first_lost = board.get(0).is_some_and(|s| s.end <= lost_below);
                if (self.dup_acks >= DUP_THRESH || first_lost) && board.una() >= self.recover {
                    self.begin_fast(board, view);
                    board.mark_below(lost_below);
                }
            }
            Episode::Fast | Episode::Timeout => board.mark_below(lost_below),
        }
    }

    /// Returns the segment that NextSeg (3) and (4) send.
    pub(super) fn sack_speculative(&mut self, board: &mut Scoreboard) -> Option<usize> {
        let top = board.sacked_ranges().last()?.1;
        let first = board.first_untouched(top);
        if first.is_some() {
            return first;
        }
        // (4): once per episode, the last outstanding un-SACKed segment
        if self.rescue.is_some_and(|r| r > board.una()) {
            return None;
        }
        let last = board.last_never_resent()?;
        self.rescue = Some(self.recover);
        Some(last)
    }
}
