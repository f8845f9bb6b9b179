//! The scoreboard: every segment sent and not yet cumulatively acknowledged, and what is known of it.
//!
//! Segments are kept in sequence order. Each is in flight, SACKed, or believed lost; a lost one may have a
//! retransmission in flight. The bytes of each kind are counted, so `pipe` (RFC 6675, section 4) is a
//! subtraction. The recovery module, not this one, decides which segments are lost.

mod moved;
mod searches;
mod snapshots;

use crate::delivery::{DeliveryRate, Snapshot};
use crate::range_set::RangeSet;
use bentpipe_base::{Instant, push_back};
use searches::SearchProgress;
use snapshots::Snapshots;
use std::collections::VecDeque;

/// One segment that was sent.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// Position after its last byte.
    pub end: u64,
    /// When it was last sent.
    pub sent_at: Instant,
    /// Selectively acknowledged.
    pub sacked: bool,
    /// Believed lost.
    pub lost: bool,
    /// A retransmission of it is in flight.
    pub resent: bool,
    /// How often it was retransmitted.
    pub resends: u8,
    /// A probe segment carried a copy of it.
    pub copied: bool,
}

impl Sent {
    /// True if it was sent once, and nothing more is known of it.
    #[inline]
    const fn is_untouched(&self) -> bool {
        !(self.sacked || self.lost || self.resent || self.copied) && self.resends == 0
    }
}

/// What one acknowledgment changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSummary {
    /// Input: when it arrived.
    pub now: Instant,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes acknowledged or SACKed for the first time.
    pub delivered: u64,
    /// Number of segments acknowledged or SACKed for the first time, without the SYN.
    pub segments: u64,
    /// Bytes newly SACKed.
    pub newly_sacked: u64,
    /// When the newest segment was sent that is newly delivered and was never retransmitted.
    pub rtt_from: Option<Instant>,
    /// Of the newly delivered segments, the one sent last: when it was sent and where it ends.
    pub newest: Option<(Instant, u64)>,
    /// The same among those certainly delivered by their last transmission (RFC 8985, section 6.2, step 2).
    pub newest_certain: Option<(Instant, u64)>,
    /// Among these, the last in sequence: where it ends and when it was sent. Cumulatively acknowledged
    /// segments take precedence over SACKed ones.
    pub last_certain: Option<(u64, Instant)>,
    /// Input: a retransmission sent after this time is less than a minimum RTT old, so an ACK for its segment
    /// acknowledges the original.
    pub newest_repair: Option<Instant>,
    /// A retransmitted segment was acknowledged.
    pub resent_acked: bool,
    /// A segment never retransmitted was acknowledged or SACKed.
    pub original_acked: bool,
    /// Lowest end of such a segment.
    pub original_least: Option<u64>,
    /// A DSACK was reported: `[left, right)` arrived twice.
    pub dsack: Option<(u64, u64)>,
    /// Input: a segment that a probe copied may have been delivered by that copy.
    pub copy_ambiguous: bool,
    /// It is a duplicate: nothing new cumulatively, data outstanding, no data of its own, window unchanged
    /// (RFC 5681), or, with SACK, it reports something new (RFC 6675).
    pub duplicate: bool,
}

/// All segments outstanding.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    una: u64,
    next: u64,
    segs: VecDeque<Sent>,
    snapshots: Snapshots,
    sacked_ranges: RangeSet,
    sacked: u64,
    lost: u64,
    resent: u64,
    /// Bytes resent although not believed lost: they are in the network twice.
    resent_not_lost: u64,
    /// Bytes ever marked lost; it only grows.
    marked: u64,
    /// Index at which the search for the next segment to resend begins.
    resend_hint: usize,
    /// Length of the longest segment that ever arrived.
    longest_delivered: u64,
    searched: SearchProgress,
}

impl Scoreboard {
    /// Says whether the scheme uses delivery rates; if not, segments are kept without what these need.
    pub(crate) fn keep_rates(&mut self, wanted: bool) {
        self.snapshots.keep(wanted, self.segs.len());
    }

    /// Returns the oldest position not cumulatively acknowledged.
    #[inline]
    pub const fn una(&self) -> u64 {
        self.una
    }
    /// Returns the next position to send for the first time.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }
    /// Returns the bytes between `una` and `next`: RFC 5681's FlightSize.
    #[inline]
    pub const fn flight(&self) -> u64 {
        self.next - self.una
    }
    /// Returns the bytes estimated to be in the network (RFC 6675, SetPipe).
    #[inline]
    pub fn pipe(&self) -> u64 {
        let left = self.sacked + self.lost;
        let pipe = self.flight() + self.resent + self.resent_not_lost;
        assert!(pipe >= left, "pipe is never negative");
        pipe - left
    }
    /// Returns the bytes selectively acknowledged.
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }
    /// Returns the bytes believed lost, whether resent or not.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
    /// Returns the bytes lost and not resent.
    #[inline]
    pub const fn to_resend(&self) -> u64 {
        self.lost - self.resent
    }
    /// Returns the bytes ever marked lost: an increase shows that an acknowledgment found more.
    pub const fn marked(&self) -> u64 {
        self.marked
    }
    /// Returns the length of the longest segment that arrived, at most the present MSS.
    pub const fn longest_delivered(&self) -> u64 {
        self.longest_delivered
    }
    /// Returns the SACKed ranges above `una`.
    pub fn sacked_ranges(&self) -> &[(u64, u64)] {
        self.sacked_ranges.as_slice()
    }
    /// Returns the number of segments outstanding.
    pub fn len(&self) -> usize {
        self.segs.len()
    }
    /// True when nothing is outstanding.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.segs.is_empty()
    }
    /// Returns segment number `i`, oldest first.
    #[inline]
    pub fn get(&self, i: usize) -> Option<&Sent> {
        self.segs.get(i)
    }
    /// Returns the newest segment.
    #[inline]
    pub fn last(&self) -> Option<&Sent> {
        self.segs.back()
    }
    /// Returns where segment `i` begins.
    #[inline]
    pub fn start_of(&self, i: usize) -> u64 {
        if i == 0 { self.una } else { self.segs[i - 1].end.max(self.una) }
    }
    /// Returns the index of the first segment that ends above `position`.
    #[inline]
    pub fn index_above(&self, position: u64) -> usize {
        self.segs.partition_point(|s| s.end <= position)
    }

    /// Records a segment that extends the sequence space to `end`.
    #[inline]
    pub fn push(&mut self, end: u64, sent_at: Instant, snapshot: Snapshot) {
        assert!(end > self.next, "a new segment moves next forward");
        self.next = end;
        push_back(&mut self.segs, Sent { end, sent_at, ..Sent::default() });
        self.snapshots.push(snapshot);
    }

    /// Records that a probe segment carries a copy of the segment at `start`.
    pub fn copy(&mut self, start: u64) {
        let i = self.index_above(start);
        if let Some(seg) = self.segs.get_mut(i) {
            seg.copied = true;
        }
    }

    /// Records that segment `i` was sent again.
    pub fn resend(&mut self, i: usize, now: Instant, snapshot: Snapshot) {
        let len = self.segs[i].end - self.start_of(i);
        let seg = &mut self.segs[i];
        assert!(!seg.sacked, "a SACKed segment is not resent");
        seg.sent_at = now;
        self.snapshots.set(i, snapshot);
        seg.resends = seg.resends.saturating_add(1);
        if !seg.resent {
            seg.resent = true;
            *(if seg.lost { &mut self.resent } else { &mut self.resent_not_lost }) += len;
        }
    }

    /// Takes a cumulative acknowledgment of everything below `ack`.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64, rate: &mut DeliveryRate, digest: &mut AckSummary) {
        assert!(self.una <= ack && ack <= self.next, "an acknowledgment lies between una and next");
        digest.acked = ack - self.una;
        let last_sacked = digest.last_certain.take();
        while let Some(seg) = self.segs.front() {
            let (end, whole) = (seg.end.min(ack), seg.end <= ack);
            let len = end - self.una;
            if len == 0 {
                break;
            }
            if seg.sacked {
                self.sacked -= len;
            } else {
                self.deliver(0, len, rate, digest);
            }
            self.una = end;
            if !whole {
                break;
            }
            self.segs.pop_front();
            self.snapshots.pop();
            self.resend_hint = self.resend_hint.saturating_sub(1);
        }
        digest.last_certain = digest.last_certain.or(last_sacked);
        if !self.sacked_ranges.is_empty() {
            self.sacked_ranges.remove_below(ack);
        }
        assert!(self.una == ack, "segments cover the sequence space without gaps");
    }

    /// Does what [`Self::acknowledge`] does, except for the delivery rate, if `ack` acknowledges whole
    /// segments that were sent once and are neither SACKed nor believed lost, and if nothing beyond them is
    /// SACKed; returns when the last of them was sent, and how many there are. Else changes nothing. What
    /// delivery rates need of them is still to be taken ([`Self::take_snapshots`]).
    #[inline]
    pub(crate) fn acknowledge_clean(&mut self, ack: u64) -> Option<(Instant, usize)> {
        if ack > self.next || !self.sacked_ranges.is_empty() {
            return None;
        }
        // the usual case without delayed acknowledgments
        let first = self.segs.front()?;
        if first.end == ack {
            if !first.is_untouched() {
                return None;
            }
            self.longest_delivered = self.longest_delivered.max(ack - self.una);
            self.una = ack;
            self.resend_hint = self.resend_hint.saturating_sub(1);
            let sent_at = self.segs.pop_front()?.sent_at;
            return Some((sent_at, 1));
        }
        let segments = self.clean_up_to(ack)?;
        self.take_clean(segments)
    }

    /// Removes what delivery rates need of the `segments` oldest, which have just been acknowledged; returns
    /// that of the last.
    #[inline]
    pub(crate) fn take_snapshots(&mut self, segments: usize) -> Option<Snapshot> {
        self.snapshots.take(segments)
    }

    /// Returns how many segments `ack` acknowledges, if all are whole and clean.
    fn clean_up_to(&self, ack: u64) -> Option<usize> {
        let mut segments = 0;
        for seg in &self.segs {
            segments += 1;
            if !seg.is_untouched() || seg.end > ack {
                return None;
            }
            if seg.end == ack {
                return Some(segments);
            }
        }
        None
    }

    fn take_clean(&mut self, segments: usize) -> Option<(Instant, usize)> {
        let mut last = None;
        for _ in 0..segments {
            let seg = self.segs.pop_front()?;
            self.longest_delivered = self.longest_delivered.max(seg.end - self.una);
            self.una = seg.end;
            last = Some((seg.sent_at, segments));
        }
        self.resend_hint = self.resend_hint.saturating_sub(segments);
        last
    }

    /// Counts `len` bytes of segment `i` as delivered.
    #[inline]
    fn deliver(&mut self, i: usize, len: u64, rate: &mut DeliveryRate, digest: &mut AckSummary) {
        let seg = &self.segs[i];
        digest.take(seg);
        digest.delivered += len;
        self.longest_delivered = self.longest_delivered.max(len);
        rate.on_delivered(digest.now, len, seg.sent_at, self.snapshots.get(i));
        if seg.resent {
            *(if seg.lost { &mut self.resent } else { &mut self.resent_not_lost }) -= len;
        }
        if seg.lost {
            self.lost -= len;
        }
    }

    /// Takes one SACK block, already known to lie in `una..=next`.
    pub fn sack(&mut self, left: u64, right: u64, rate: &mut DeliveryRate, digest: &mut AckSummary) {
        let (left, right) = (left.max(self.una), right.min(self.next));
        if left >= right || self.sacked_ranges.covers(left, right) {
            return;
        }
        // Only whole segments count: a block edge inside a segment leaves that segment unSACKed.
        let mut i = self.index_above(left);
        if self.start_of(i) < left {
            i += 1;
        }
        while let Some(seg) = self.segs.get(i)
            && seg.end <= right
        {
            if seg.sacked {
                i = self.index_beyond_range(i); // skips what was reported before
                continue;
            }
            let (start, end) = (self.start_of(i), seg.end);
            self.deliver(i, end - start, rate, digest);
            digest.newly_sacked += end - start;
            self.sacked += end - start;
            let seg = &mut self.segs[i];
            (seg.sacked, seg.lost, seg.resent) = (true, false, false);
            self.sacked_ranges.insert(start, end);
            i += 1;
        }
    }

    /// Marks segment `i` as lost; with `again`, also if its retransmission is in flight. Returns the bytes
    /// newly marked.
    pub fn mark_lost(&mut self, i: usize, again: bool) -> u64 {
        let len = self.segs[i].end - self.start_of(i);
        let seg = &mut self.segs[i];
        if seg.sacked {
            return 0;
        }
        if seg.lost {
            if !(seg.resent && again) {
                return 0;
            }
            seg.resent = false;
            self.resent -= len;
        } else {
            seg.lost = true;
            self.lost += len;
            if seg.resent {
                self.resent_not_lost -= len;
                if again {
                    seg.resent = false;
                } else {
                    self.resent += len; // one copy was lost, the other is on its way
                }
            }
        }
        self.marked += len;
        self.resend_hint = self.resend_hint.min(i);
        len
    }

    /// Splits segments longer than `mss`, which the path no longer carries, if they have not arrived: into
    /// pieces marked as lost and not yet resent. Returns false if there were none.
    pub fn split_to_mss(&mut self, mss: u64) -> bool {
        self.longest_delivered = self.longest_delivered.min(mss);
        let mut any = false;
        let mut start = self.una;
        let mut snapshots = self.snapshots.take_all();
        for mut seg in core::mem::take(&mut self.segs) {
            let snapshot = snapshots.pop().unwrap_or_default();
            let (mut left, end) = (start, seg.end);
            start = end;
            if !seg.sacked && end - left > mss {
                any = true;
                let len = end - left;
                self.lost += if seg.lost { 0 } else { len };
                if seg.resent {
                    *(if seg.lost { &mut self.resent } else { &mut self.resent_not_lost }) -= len;
                }
                (seg.lost, seg.resent) = (true, false);
                self.marked += len;
                while end - left > mss {
                    left += mss;
                    self.segs.push_back(Sent { end: left, ..seg.clone() });
                    self.snapshots.push(snapshot);
                }
            }
            self.segs.push_back(seg);
            self.snapshots.push(snapshot);
        }
        self.resend_hint = 0;
        any
    }

    /// Marks everything not SACKed as lost and not resent, after a retransmission timeout.
    pub fn mark_all_lost(&mut self) {
        for i in 0..self.segs.len() {
            self.mark_lost(i, true);
        }
    }

    /// Removes all loss marks: the timeout was spurious.
    pub fn unmark_lost(&mut self) {
        for seg in &mut self.segs {
            seg.lost = false;
            seg.resent = false;
        }
        self.searched = SearchProgress::default();
        self.lost = 0;
        self.resent = 0;
        self.resent_not_lost = 0;
    }

    /// Forgets all SACK information if the oldest byte is SACKed but not acknowledged: the receiver
    /// discarded what it had reported (RFC 2018, section 8).
    pub fn renege_at_una(&mut self) {
        if self.segs.front().is_none_or(|s| !s.sacked) {
            return;
        }
        for seg in &mut self.segs {
            seg.sacked = false;
        }
        self.sacked = 0;
        self.sacked_ranges.clear();
        self.searched = SearchProgress::default();
        self.resend_hint = 0;
    }

    /// Returns the lowest segment that is lost and not resent.
    #[inline]
    pub fn next_lost(&mut self) -> Option<usize> {
        if self.to_resend() == 0 {
            return None;
        }
        while let Some(seg) = self.segs.get(self.resend_hint) {
            if seg.lost && !seg.resent {
                return Some(self.resend_hint);
            }
            self.resend_hint += 1;
        }
        None
    }
}

impl AckSummary {
    #[inline]
    fn take(&mut self, seg: &Sent) {
        self.segments += u64::from(seg.end > 1); // not the SYN
        let original = seg.resends == 0 && !(seg.copied && self.copy_ambiguous);
        if original {
            self.original_acked = true;
            self.original_least = Some(self.original_least.map_or(seg.end, |e| e.min(seg.end)));
            if self.rtt_from.is_none_or(|t| t <= seg.sent_at) {
                self.rtt_from = Some(seg.sent_at);
            }
        } else {
            self.resent_acked = true;
        }
        let newest = (seg.sent_at, seg.end);
        self.newest = self.newest.max(Some(newest));
        if original || self.newest_repair.is_none_or(|latest| seg.sent_at <= latest) {
            self.newest_certain = self.newest_certain.max(Some(newest));
            self.last_certain = self.last_certain.max(Some((seg.end, seg.sent_at)));
        }
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
