//! The receiving half: reassembly, selective acknowledgments and when to acknowledge.
//!
//! Sources: RFC 9293, section 3.10.7.4 (acceptability), RFC 5681, section 4.2 (delayed ACKs; out-of-order
//! data and data that fills a gap are acknowledged at once), RFC 2018 (first block = most recent), RFC 2883
//! (DSACK), RFC 7323 (TS.Recent). Positions are stream offsets: 0 is the peer's SYN, 1 its first byte.

use crate::config::DelayedAck;
use crate::quick_acks_linux::QuickAcks;
use crate::range_set::RangeSet;
use crate::window::ReceiveWindow;
use bentpipe_base::shift::Walk;
use bentpipe_base::{Duration, Instant, SackList, Seq};

/// When the next acknowledgment is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckDue {
    /// Nothing to acknowledge.
    #[default]
    No,
    /// At the latest at this time.
    By(Instant),
    /// At once.
    Now,
}

/// The receiving half of a connection.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    irs: Seq,
    next: u64,
    /// Position up to which the application has read.
    read: u64,
    fin: Option<u64>,
    out_of_order: RangeSet,
    /// Left edges of out-of-order ranges, the most recently changed first (RFC 2018, section 4).
    recent: [u64; 4],
    dsack: Option<(u64, u64)>,
    /// Number of the probe segment to echo.
    echo: Option<u16>,
    /// The advertised window.
    pub window: ReceiveWindow,
    delayed_ack: Option<DelayedAck>,
    due: AckDue,
    /// Bytes that arrived since the last acknowledgment.
    unacked: u64,
    /// Largest segment seen, which counts as full-sized.
    largest: u64,
    /// Linux: acknowledgments that are not delayed, or wait for each other.
    pub(crate) quick: QuickAcks,
    /// Linux with SACK: the round trip, a share of which acknowledgments beyond a gap wait for each other.
    compresses: Option<Duration>,
}

impl Receiver {
    /// Creates the receiving half for a peer whose SYN had sequence number `irs`.
    pub fn new(irs: Seq, window: ReceiveWindow, delayed_ack: Option<DelayedAck>) -> Self {
        Self { irs, next: 1, read: 1, window, delayed_ack, largest: 1, ..Self::default() }
    }

    /// Visits the state of a receiver of `stream`.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { irs: _, next, read, fin, out_of_order, recent, dsack, echo, window, .. } = self;
        walk.position(stream, next);
        walk.position(stream, read);
        walk.expect(out_of_order.is_empty() && dsack.is_none(), "data beyond a gap");
        walk.expect(fin.is_none() && echo.is_none(), "the end of a stream, or a probe");
        for left in recent {
            walk.mark(stream, left);
        }
        window.shift(walk, stream);
        let Self { delayed_ack: _, due, unacked, largest, quick, compresses, .. } = self;
        walk.same(&(matches!(due, AckDue::No), matches!(due, AckDue::Now)));
        if let AckDue::By(at) = due {
            walk.time(at);
        }
        walk.same(&(*unacked, *largest, *compresses));
        quick.shift(walk, stream);
    }

    /// See [`crate::Connection::touch_sender`].
    #[inline]
    pub(crate) const fn touch(&self) -> u64 {
        self.read ^ self.unacked ^ self.largest ^ self.out_of_order.is_empty() as u64
    }

    /// Returns the acknowledgment field to send.
    #[inline]
    pub const fn ack_field(&self) -> Seq {
        self.irs.at(self.next)
    }
    /// Returns the stream position of a sequence number; `None` when it lies before the stream.
    #[inline]
    pub const fn position(&self, seq: Seq) -> Option<u64> {
        self.irs.offset_near(seq, self.next)
    }
    /// Returns how many in-order bytes the application has not read.
    #[inline]
    pub fn readable(&self) -> u64 {
        let data_end = if self.fin_reached() { self.next - 1 } else { self.next };
        data_end - self.read
    }
    /// True once the FIN and everything before it has arrived.
    #[inline]
    pub fn fin_reached(&self) -> bool {
        self.fin.is_some_and(|f| self.next > f)
    }
    /// Returns how many in-order bytes ever arrived.
    #[inline]
    pub fn received(&self) -> u64 {
        self.next - 1 - u64::from(self.fin_reached())
    }
    /// Returns how many bytes ever arrived, those beyond a gap included.
    pub fn arrived(&self) -> u64 {
        let beyond: u64 = self.out_of_order().iter().map(|(left, right)| right - left).sum();
        // a known FIN has a position, reached or beyond a gap
        self.next - 1 + beyond - u64::from(self.fin.is_some())
    }
    /// Returns the next position expected.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }
    /// Returns the ranges that arrived beyond a gap.
    pub fn out_of_order(&self) -> &[(u64, u64)] {
        self.out_of_order.as_slice()
    }

    /// Returns the bytes from the next expected position to the right edge last advertised.
    #[inline]
    pub const fn room(&self) -> u64 {
        self.window.right_edge().saturating_sub(self.next)
    }

    /// RFC 9293, section 3.10.7.4, first check: true if any part of `[left, left + len)` lies in the window.
    #[inline]
    pub const fn acceptable(&self, left: u64, len: u64) -> bool {
        let right_edge = self.window.right_edge();
        match (len, self.room()) {
            (0, 0) => left == self.next,
            (0, _) => self.next <= left && left < right_edge,
            (_, 0) => false,
            _ => left < right_edge && left + len > self.next,
        }
    }

    /// Takes text `[left, right)`, which the caller found acceptable, and a FIN at `right` if set.
    pub fn text(&mut self, now: Instant, left: u64, right: u64, fin: bool) {
        let right_edge = self.window.right_edge();
        let fin = fin && right < right_edge.max(self.next + 1);
        let right = right.min(right_edge);
        self.largest = self.largest.max(right.saturating_sub(left));
        if self.contradicts(right, fin) {
            self.due = AckDue::Now;
            return;
        }
        if fin && self.fin.is_none() {
            self.fin = Some(right);
        }
        let end = right + u64::from(fin);
        if end <= self.next {
            self.dsack = Some((left, end));
            self.due = AckDue::Now;
            return;
        }
        if left > self.next {
            return self.beyond_gap(now, left, end);
        }
        if left < self.next {
            self.dsack = Some((left, self.next));
            self.due = AckDue::Now;
        } else {
            self.dsack = self.already_received_part(left, end);
        }
        let had_gap = !self.out_of_order.is_empty();
        self.next = end;
        while let Some(end) = self.out_of_order.take_at(self.next) {
            self.next = end;
        }
        if had_gap || self.fin_reached() {
            self.due = AckDue::Now; // RFC 5681, section 4.2: fills a gap
        } else {
            self.count(now, right - left);
        }
    }

    /// True if nothing has arrived beyond a gap, and the end of the stream is not known.
    #[inline]
    pub(crate) const fn is_gapless(&self) -> bool {
        self.fin.is_none() && self.out_of_order.is_empty()
    }

    /// Does what [`Self::text`] does with the next `len` bytes, more than none and all in the window, if
    /// there is no gap.
    #[inline]
    pub(crate) fn in_order(&mut self, now: Instant, len: u64) {
        self.largest = self.largest.max(len);
        self.dsack = None;
        self.next += len;
        self.count(now, len);
    }

    /// True if the segment contradicts the end of the stream: text beyond a known FIN, a FIN elsewhere, or a
    /// first FIN below data that has arrived beyond a gap.
    #[inline]
    fn contradicts(&self, right: u64, fin: bool) -> bool {
        match self.fin {
            Some(end) => right > end || (fin && right < end),
            None => fin && self.out_of_order.as_slice().last().is_some_and(|last| last.1 > right),
        }
    }

    fn beyond_gap(&mut self, now: Instant, left: u64, end: u64) {
        // RFC 5681, section 4.2: at once; with Linux's receiver some wait
        let srtt = self.compresses.filter(|_| self.delayed_ack.is_some() && self.due != AckDue::Now);
        self.due = match (srtt.and_then(|srtt| self.quick.compressed(self.next, srtt)), self.due) {
            (None, _) => AckDue::Now,
            (Some(wait), AckDue::By(at)) => AckDue::By(at.min(now + wait)),
            (Some(wait), _) => AckDue::By(now + wait),
        };
        self.dsack = self.already_received_part(left, end);
        let merged = self.out_of_order.insert(left, end);
        // the changed range first, then those reported before, without the ones merged into it
        let mut recent = [merged.0, 0, 0, 0];
        let old = self.recent.into_iter().filter(|l| *l != 0 && (*l < merged.0 || *l >= merged.1));
        for (place, left) in recent[1..].iter_mut().zip(old) {
            *place = left;
        }
        self.recent = recent;
    }

    /// Returns the first part of `[left, right)` that arrived before, beyond the gap: RFC 2883 reports only
    /// that.
    fn already_received_part(&self, left: u64, right: u64) -> Option<(u64, u64)> {
        let known = self.out_of_order.as_slice().iter().find(|r| r.1 > left && r.0 < right)?;
        Some((known.0.max(left), known.1.min(right)))
    }

    /// Counts in-order data against the delayed-ACK limits.
    #[inline]
    fn count(&mut self, now: Instant, len: u64) {
        self.unacked += len;
        let Some(policy) = self.delayed_ack else {
            self.due = AckDue::Now;
            return;
        };
        let enough = self.quick.enough(self.unacked, policy.count, self.largest);
        let enough = enough.unwrap_or_else(|| self.unacked >= u64::from(policy.count) * self.largest);
        if enough || self.quick.wanted() {
            self.due = AckDue::Now;
        } else if self.due == AckDue::No {
            self.due = AckDue::By(now + policy.timeout);
        }
    }

    /// Returns when the next acknowledgment is sent.
    #[inline]
    pub const fn due(&self) -> AckDue {
        self.due
    }
    /// Asks for an acknowledgment at once.
    #[inline]
    pub const fn ack_now(&mut self) {
        self.due = AckDue::Now;
    }

    /// Linux: updates which acknowledgments are not delayed; `len` bytes arrive, perhaps with PSH. With SACK
    /// `srtt` is the round trip.
    pub(crate) fn quick_acks(
        &mut self,
        now: Instant,
        (rto, srtt): (Duration, Option<Duration>),
        mss: u64,
        (len, pushed): (u64, bool),
    ) {
        self.compresses = srtt;
        self.quick.arrives(now, rto, self.window.buffer() / mss.max(1));
        self.quick.measure(len, pushed, self.largest);
    }

    /// Handles the expiry of the delayed-ACK timer.
    pub(crate) const fn delayed(&mut self) {
        self.due = AckDue::Now;
        self.quick.waited();
    }

    /// Records that an acknowledgment was sent.
    #[inline]
    pub const fn acked(&mut self) {
        self.due = AckDue::No;
        self.unacked = 0;
        self.dsack = None;
        self.echo = None;
    }

    /// Records that a probe segment arrived: the acknowledgment echoes it and is sent at once.
    pub const fn probed(&mut self, number: u16) {
        self.echo = Some(number);
        self.due = AckDue::Now;
    }

    /// Returns the number of the probe segment to echo.
    #[inline]
    pub const fn echo(&self) -> Option<u16> {
        self.echo
    }

    /// Records that the application read `bytes`. Returns true when the window opened enough to tell the peer
    /// (RFC 9293, section 3.8.6.2.2), or on Linux when nothing is left to read.
    #[inline]
    pub fn consume(&mut self, now: Instant, bytes: u64, rtt: Duration, linux: bool) -> bool {
        let bytes = bytes.min(self.readable());
        self.read += bytes;
        self.window.on_read(now, bytes, rtt);
        if self.due == AckDue::Now {
            return false; // the peer learns of it at once anyway
        }
        let waits = matches!(self.due, AckDue::By(_));
        let drained = waits && bytes > 0 && self.readable() == 0 && self.quick.wanted_by_reader();
        drained || self.window.window_update_due(self.next, self.readable(), self.largest, linux)
    }

    /// True when there is something to report in SACK blocks.
    #[inline]
    pub const fn has_blocks(&self) -> bool {
        self.dsack.is_some() || !self.out_of_order.is_empty()
    }

    /// Returns the SACK blocks: a DSACK first (RFC 2883), then the most recent ranges; `room` blocks at most.
    pub fn sack_list(&self, room: usize) -> SackList {
        let mut list = SackList::default();
        let recent = self.recent.iter().filter(|left| **left >= self.next);
        let ranges = recent.filter_map(|left| self.out_of_order.containing(*left));
        for (left, right) in self.dsack.into_iter().chain(ranges).take(room) {
            list.push(self.irs.at(left), self.irs.at(right));
        }
        list
    }
}
