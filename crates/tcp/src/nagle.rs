//! Nagle's algorithm: small segments wait while something is on the way.
//!
//! Source: RFC 9293, section 3.7.4 (RFC 896); of Linux, Minshall's variant (draft-minshall-nagle-01;
//! `tcp_nagle_check`, `tcp_minshall_update`). A segment below the MSS that ends what was written waits for
//! more
//! - by the RFC while anything is unacknowledged,
//! - on Linux while a segment below the MSS is unacknowledged.
//!
//! So the end of a large write waits for a round trip by the RFC, and leaves with the rest on Linux; of small
//! writes one per round trip leaves with either. A segment that a window cut short counts as small too.
//! Nothing waits after the last write: nothing can join the segment any more.

use crate::connection::Connection;

impl Connection {
    /// True when a segment below the MSS, the last that was written, waits for more.
    pub(crate) fn waits_to_be_filled(&self) -> bool {
        let unanswered =
            if self.linux() { self.send.small_end > self.board.una() } else { self.board.flight() > 0 };
        unanswered && self.config.nagle
    }

    /// New data of `len` bytes up to `end` leaves.
    pub(crate) fn remember_small(&mut self, len: u64, end: u64) {
        if len < self.full_segment() {
            self.send.small_end = end;
        }
    }
}
