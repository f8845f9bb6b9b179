//! Nagle's algorithm: small segments wait while earlier data is unacknowledged.
//!
//! Source: RFC 9293, section 3.7.4 (RFC 896); on Linux, Minshall's variant (draft-minshall-nagle-01;
//! `tcp_nagle_check`, `tcp_minshall_update`). The last segment written, if it is below the MSS, waits for
//! more
//! - by the RFC while anything is unacknowledged,
//! - on Linux while a segment below the MSS is unacknowledged.
//!
//! So the end of a large write waits for a round trip by the RFC, and is sent with the rest on Linux; of
//! small writes, one per round trip is sent with either. A segment that a window cut short counts as small
//! too. After close nothing waits, since no more data can follow.

use crate::connection::Connection;

impl Connection {
    /// True if the last segment written, which is below the MSS, must wait for more.
    pub(crate) fn waits_to_be_filled(&self) -> bool {
        let unanswered =
            if self.linux() { self.send.small_end > self.board.una() } else { self.board.flight() > 0 };
        unanswered && self.config.nagle
    }

    /// Records that new data of `len` bytes up to `end` is sent.
    pub(crate) fn remember_small(&mut self, len: u64, end: u64) {
        if len < self.full_segment() {
            self.send.small_end = end;
        }
    }
}
