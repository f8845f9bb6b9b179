//! Linux sends in bursts of several segments (TSO), and waits until a burst is complete.
//!
//! Source: the behaviour of Linux 6.x (`tcp_tso_should_defer`, `tcp_tso_autosize`), whether or not the
//! device splits segments itself. A burst is what the connection sends in a millisecond at its pace (1.2
//! windows per round trip, 2 in slow start), at least two segments, and more if the round trip is a few
//! milliseconds. If the windows have room for less than a burst, the segments wait for the next
//! acknowledgment, if
//! - no loss is being repaired,
//! - something was sent within the last millisecond,
//! - more data is written than the windows have room for,
//! - less than a third of the window would fit,
//! - that acknowledgment is expected within a millisecond, or half a round trip if that is less.
//!
//! If acknowledgments arrive a segment apart in time, half of the segments are sent one acknowledgment late,
//! and the last of a train may wait for the next round trip.
//!
//! The last segment of a burst of two or more has PSH (`__tcp_transmit_skb`), so the peer acknowledges it as
//! soon as its application has read everything. A segment on its own has none, and its acknowledgment may be
//! delayed.

use crate::cc::{Episode, Path};
use crate::connection::Connection;
use bentpipe_base::{Duration, Instant, shift_fields};

/// Fewest segments of a burst.
const FEWEST: u64 = 2;
/// Largest burst in bytes.
const LARGEST: u64 = 65_536;
/// A second at the pace of the connection has this many bursts.
const PER_SECOND: u64 = 1 << 10;
/// The extra size for a short round trip is halved for each interval of this length, in ns, that the minimum
/// RTT contains: 512 us (2^9).
const NEAR: u64 = 512_000;
/// How recent the last segment must be, and how soon the next acknowledgment.
const SOON: Duration = Duration::from_millis(1);
/// The window divided by this is sent at once.
const SHARE: u64 = 3;

/// The TSO burst being sent now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TsoBurst {
    at: Instant,
    left: u64,
    /// It has more than one segment.
    many: bool,
}

shift_fields!(TsoBurst {
    past: at;
    same: left, many;
});

impl TsoBurst {
    /// True if the segment that is sent now is the last of several. It is told once.
    pub(crate) fn ends(&mut self, now: Instant) -> bool {
        self.at == now && self.left == 0 && core::mem::take(&mut self.many)
    }
}

impl Connection {
    /// True if the next new segment must wait. `window` is the window in force, `room` what the peer's
    /// window leaves, both in bytes.
    pub(crate) fn tso_should_defer(&mut self, now: Instant, path: &Path, window: u64, room: u64) -> bool {
        let mss = self.mss();
        if self.send.tso_burst.at == now && self.send.tso_burst.left > 0 {
            self.send.tso_burst.left -= 1;
            return false;
        }
        let limit = room.min(window.saturating_sub(path.in_flight.0));
        let size = self.tso_segments(path, window);
        if limit < size * mss && self.tso_may_defer(now, path, window, limit) {
            return true;
        }
        let left = (limit / mss).min(size).saturating_sub(1);
        self.send.tso_burst = TsoBurst { at: now, left, many: left > 0 };
        false
    }

    fn tso_may_defer(&self, now: Instant, path: &Path, window: u64, limit: u64) -> bool {
        let left = self.written.saturating_sub(self.board.next());
        if self.recovery.episode() == Episode::Fast
            || self.recovery.episode() == Episode::Timeout
            || now.since(self.last_sent) > SOON
            || left <= self.mss().max(limit)
            || limit >= path.peer_window.0.min(window) / SHARE
        {
            return false;
        }
        let Some(head) = self.board.get(0) else { return false };
        let expected = head.sent_at + path.srtt;
        expected.since(now) <= SOON.min(path.srtt / 2)
    }

    /// Returns the number of segments in a burst.
    fn tso_segments(&self, path: &Path, window: u64) -> u64 {
        let out = window.max(path.flight.0);
        let slow = self.cc.ssthresh().is_none_or(|s| window < s.0 / 2);
        let gain = if slow { 200 } else { 120 };
        let per_second = u128::from(out) * 10_000_000 * gain;
        let pace = u64::try_from(per_second / u128::from(path.srtt.0.max(1))).unwrap_or(u64::MAX);
        let shift = path.rtt_min.0 / NEAR;
        let near = if shift < 32 { LARGEST >> shift } else { 0 };
        let bytes = (pace / PER_SECOND).saturating_add(near).min(LARGEST);
        (bytes / self.mss()).max(FEWEST)
    }
}
