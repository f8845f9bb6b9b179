//! Small writes at exponential intervals, like typing at a terminal.
//!
//! The user types regardless of the network, so delays do not slow the writes down. The result is the time
//! from a write to the acknowledgment of its last byte. The sending host alone can measure it, and it
//! includes all delays that an echo would have: Nagle's algorithm (RFC 9293, section 3.7.4), the RTT with its
//! queues, losses, and the peer's delayed ACK if no data carries it.

use super::ByteStream;
use bentpipe_base::histogram::Histogram;
use bentpipe_base::{Cx, Duration, Instant, RngSlot, Size};
use bentpipe_tcp::State;
use std::collections::VecDeque;

/// Largest number of writes that are timed at once, which limits the list when the path is dead; writes
/// beyond it are made but not timed.
const MOST_TIMED: usize = 1 << 16;

/// Writes like a user who types.
#[derive(Clone, Debug)]
pub struct TelnetClient {
    size: u64,
    /// Mean time between writes.
    gap: Duration,
    rng: RngSlot,
    /// When the next write is due; `None` until the connection is open.
    next: Option<Instant>,
    /// Writes made.
    pub writes: u64,
    /// Bytes that the send buffer accepted.
    written: u64,
    /// Writes that are not acknowledged: the position after their last byte, and when they were made.
    waiting: VecDeque<(u64, Instant)>,
    /// Times from a write to its acknowledgment, of those that were timed and acknowledged.
    pub times: Histogram,
}

impl TelnetClient {
    /// Writes `size` bytes at a time with exponential gaps of `gap` on average, drawn from `rng`; both are
    /// more than zero.
    pub fn new(size: Size, gap: Duration, rng: RngSlot) -> Self {
        assert!(size.0 > 0 && !gap.is_zero(), "a write has at least one byte and takes its time");
        Self {
            size: size.0,
            gap,
            rng,
            next: None,
            writes: 0,
            written: 0,
            waiting: VecDeque::new(),
            times: Histogram::default(),
        }
    }

    pub(super) fn run(&mut self, cx: &mut Cx<'_>, conn: &mut impl ByteStream) -> Instant {
        if conn.state() == State::CloseWait {
            conn.close();
        }
        self.take_acknowledged(cx.now, conn);
        if conn.state() != State::Established {
            return Instant::NEVER;
        }
        let mut next = match self.next {
            Some(at) => at,
            None => cx.now + cx.rng(self.rng).exponential(self.gap),
        };
        while next <= cx.now {
            self.writes += 1;
            if self.waiting.len() < MOST_TIMED {
                self.waiting.push_back((self.size.saturating_mul(self.writes), next));
            }
            next += cx.rng(self.rng).exponential(self.gap);
        }
        self.next = Some(next);
        let due = self.size.saturating_mul(self.writes) - self.written;
        self.written += conn.write(due);
        next
    }

    fn take_acknowledged(&mut self, now: Instant, conn: &impl ByteStream) {
        let acknowledged = self.written.saturating_sub(conn.unacknowledged());
        while let Some((end, at)) = self.waiting.front()
            && *end <= acknowledged
        {
            self.times.record(now.since(*at));
            self.waiting.pop_front();
        }
    }
}
