//! When Linux acknowledges at once, although ACKs are delayed.
//!
//! Source: the behaviour of Linux 6.x (`tcp_event_data_recv`, `tcp_incr_quickack`, `tcp_in_quickack_mode`,
//! `tcp_measure_rcv_mss`, `__tcp_ack_snd_check`, `tcp_cleanup_rbuf`, `tcp_event_data_sent`,
//! `tcp_delack_timer_handler`).
//! - A sender in slow start needs every acknowledgment: the first sixteen are not delayed, fewer if the
//!   window holds less than twice as many segments, but at least two. The same holds after a pause longer
//!   than the retransmission timeout.
//! - More than a full segment is acknowledged at once: a full one and a byte are enough.
//! - A short segment, or one with PSH, is the end of a message of the peer. It is acknowledged when the
//!   application has read everything.
//! - Data beyond a gap is acknowledged at once for three segments after each cumulative acknowledgment. With
//!   SACK the next ones wait for each other, a millisecond or 5 % of the round trip if that is less
//!   (`tcp_comp_sack_*`); at most 44 share an acknowledgment.
//!
//! A host that answers received data with data of its own within 40 ms delays the acknowledgments of the
//! first and the third kind, so that its data can carry them. It no longer does so once a delayed
//! acknowledgment found no data to carry it; and for the third kind it does so only for the first short
//! segment.
//!
//! A full segment is the longest so far, 536 bytes at least; the kernel also notices that segments became
//! shorter.

use bentpipe_base::shift::Walk;
use bentpipe_base::{Duration, Instant};

/// Most acknowledgments that are not delayed (TCP_MAX_QUICKACKS).
const MAX_QUICK_ACKS: u64 = 16;
/// Fewest.
const FEWEST: u64 = 2;
/// Size of a full segment before any was seen (TCP_MSS_DEFAULT).
const FULL: u64 = 536;
/// Data sent this soon after data arrived is an answer (TCP_ATO_MIN).
const ATO_MIN: Duration = Duration::from_millis(40);

/// Segments beyond a gap that are acknowledged at once (TCP_FASTRETRANS_THRESH).
const DUPLICATES: u8 = 3;
/// Most acknowledgments that wait for each other (`tcp_comp_sack_nr`).
const MOST_COMPRESSED: u8 = 44;
/// The longest time that they wait (`tcp_comp_sack_delay_ns`), and its share of the round trip.
const COMPRESSED: (Duration, u64) = (Duration::from_millis(1), 20);

/// State of the acknowledgments that are not delayed, or wait for each other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QuickAcks {
    /// How many more acknowledgments are sent at once.
    left: u64,
    /// When data last arrived.
    last: Option<Instant>,
    pingpong: bool,
    /// Short segments not yet acknowledged.
    short: u8,
    /// Where the last gap begins, and how many segments beyond it were acknowledged at once.
    beyond: (u64, u8),
    /// Acknowledgments that wait for each other.
    compressed: u8,
}

impl QuickAcks {
    /// Visits the state of a receiver of `stream`.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { left, last, pingpong, short, beyond: (gap, count), compressed } = self;
        walk.same(&(*left, *pingpong));
        walk.same(&[*short, *count, *compressed]);
        walk.maybe_time(last);
        walk.mark(stream, gap);
    }

    /// Records that data arrived; `segments` fill the window.
    pub(crate) fn arrives(&mut self, now: Instant, rto: Duration, segments: u64) {
        if self.last.is_none_or(|last| now.since(last) > rto) {
            self.left = self.left.max((segments / 2).clamp(FEWEST, MAX_QUICK_ACKS));
        }
        self.last = Some(now);
    }

    /// Counts a short segment: `len` bytes arrived, perhaps with PSH; the longest so far had `largest`.
    pub(crate) fn measure(&mut self, len: u64, pushed: bool, largest: u64) {
        if len > 0 && (pushed || len < largest.max(FULL)) {
            self.short = self.short.saturating_add(1);
        }
    }

    /// True while an acknowledgment is not delayed.
    pub(crate) const fn wanted(&self) -> bool {
        self.left > 0 && !self.pingpong
    }

    /// True if `unacked` bytes are enough for an acknowledgment on every `count`th segment; `None` on hosts
    /// other than Linux.
    pub(crate) fn enough(&self, unacked: u64, count: u32, largest: u64) -> Option<bool> {
        self.last.map(|_| unacked > u64::from(count.saturating_sub(1)) * largest.max(FULL))
    }

    /// How long the acknowledgment of a segment beyond the gap at `next` waits for others; `None`: not at
    /// all.
    pub(crate) fn compressed(&mut self, next: u64, srtt: Duration) -> Option<Duration> {
        if self.last.is_none() || self.wanted() || self.compressed >= MOST_COMPRESSED {
            return None;
        }
        if self.beyond.0 != next {
            self.beyond = (next, 0);
        }
        if self.beyond.1 < DUPLICATES {
            self.beyond.1 += 1;
            return None;
        }
        self.compressed += 1;
        Some(COMPRESSED.0.min(srtt / COMPRESSED.1))
    }

    /// True if an acknowledgment is sent when the application has read everything.
    pub(crate) const fn wanted_by_reader(&self) -> bool {
        self.short > 1 || (self.short == 1 && !self.pingpong)
    }

    /// Records that an acknowledgment was sent, `with` data of our own or without.
    pub(crate) fn sent(&mut self, now: Instant, with: bool) {
        self.left = self.left.saturating_sub(1);
        (self.short, self.compressed) = (0, 0);
        self.pingpong |= with && self.last.is_some_and(|last| now.since(last) < ATO_MIN);
    }

    /// Records that a delayed acknowledgment found no data to carry it.
    pub(crate) const fn waited(&mut self) {
        self.pingpong &= self.compressed > 0;
    }
}
