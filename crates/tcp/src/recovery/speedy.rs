//! What is in flight during speedy recovery.
//!
//! Source: TCP-Swift, figure of speedy recovery, in its notation: on the third duplicate ACK `pipe = cwnd -
//! ndupacks + 1`, the 1 for the retransmission; then cwnd is halved, and every duplicate ACK takes one from
//! `pipe`. The lost segment stays in `pipe`, unlike in RFC 6675's SetPipe: half a window of duplicate ACKs
//! releases no data, and is answered by probes. It leaves `pipe` with the partial ACK that covers it. So the
//! count here is RFC 6675's pipe, or without SACK the flight less duplicate ACKs, plus the segment lost
//! first until it is acknowledged. Deviation: later losses of an episode leave `pipe` when they are found,
//! as in RFC 6675, and a partial ACK takes only what had not left it before. The figure's counter keeps them
//! and takes all that a partial ACK covers, so it takes SACKed segments twice. With three losses in a window
//! of 64 that is a pair of probes fewer, two more new segments before the first partial ACK, and 18 (20
//! without `partial_inc`) fewer at the recover ACK: a test counts both. With one loss there is no
//! difference.

use crate::board::Scoreboard;

/// The lost segment that counts as in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speedy {
    /// Where it ends, and its length.
    first: Option<(u64, u64)>,
}

impl Speedy {
    /// Begins an episode: the oldest segment is lost.
    pub(super) fn begin(&mut self, board: &Scoreboard) {
        self.first = board.get(0).map(|s| (s.end, s.end - board.una()));
    }

    /// Returns the bytes to add to the data in flight.
    pub(super) fn lost_counted_in_flight(&self, board: &Scoreboard) -> u64 {
        self.first.map_or(0, |(end, len)| if board.una() < end { len } else { 0 })
    }
}
