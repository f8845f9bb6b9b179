//! The choice of what a flow sends when the pacer grants it the hop.
//!
//! In this order: holes within the receiver's window (they stall the receiver); redundant copies, when their
//! time has come; data that the receiver had to discard beyond its window; new data. The last two are limited
//! by `receiver.rs`, and cut to the size that the pacer sends at a time, in whole segments. While bytes in a
//! gap never reached the gateway, nothing behind the gap is sent beyond the window: it would be discarded.

use super::cache::{PLACE, PieceState};
use super::copies::{APART, REPAIR_COPIES};
use super::{Flow, Shared};
use crate::sides::SATELLITE;
use bentpipe_base::{Cx, Duration, Instant, Size};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextSend {
    /// A piece that was lost or refused and that the receiver's window now has room for.
    Hole(usize),
    /// A piece beyond the window that is due again: the receiver had no room for it.
    Due(usize),
    /// The head, as a zero-window probe.
    Probe,
    /// A redundant copy of a piece.
    Copy(usize),
    /// This many bytes of the queue.
    New(u64),
    /// The RST.
    Reset,
}

impl Flow {
    /// Chooses what to send now, if anything; otherwise notes when something may be sent.
    pub(super) fn choose(&mut self, now: Instant, shared: &Shared) -> Option<NextSend> {
        self.sender.wake_at = None;
        if !self.is_accelerated() || (self.cache.is_empty() && self.sender.reset.is_none()) {
            return None;
        }
        if self.receiver.stopped.is_some() {
            return (self.recovery.probe && !self.cache.is_empty()).then_some(NextSend::Probe);
        }
        let path = self.path(now, shared);
        if self.cache.pieces.is_empty() {
            self.receiver.nothing_in_flight();
        }
        let limit = self.receiver.limit(now, self.hop_rtt.smoothed(), self.advertised.room(&path));
        let held = self.receiver.reader.next(now);
        let mut due = None;
        if let Some(i) = self.cache.first_due() {
            let piece = &self.cache.pieces[i];
            let at_once = self.receiver.reader.at_once(now, self.una, self.receiver.edge);
            if piece.start <= self.una || piece.end <= at_once {
                return Some(NextSend::Hole(i));
            }
            if piece.end <= limit && held.is_none() && !self.is_beyond_gap(piece.start) {
                due = Some(NextSend::Due(i));
            }
        }
        let n =
            if self.cache.first_due().is_some() || held.is_some() { 0 } else { self.fresh(limit, shared) };
        // copies are sent when they are due and before new data, except those that only use spare capacity
        let waits = n > 0 && self.recovery.spare;
        if let Some(choice) = if waits { None } else { self.further_copy(now).or(due) } {
            return Some(choice);
        }
        if n > 0 {
            return Some(NextSend::New(n));
        }
        if self.cache.queue.is_empty() && self.cache.due == 0 {
            let waits = self.sender.reset.as_ref().is_some_and(|r| !r.sent);
            return waits.then_some(NextSend::Reset);
        }
        self.wait(now, held);
        None
    }

    /// Sets the wake-up for data that waits for the reader: when pacing allows it, or when the reader should
    /// have moved the edge by a segment.
    fn wait(&mut self, now: Instant, held: Option<Instant>) {
        if held.is_none() {
            self.receiver.reader.held_back(now);
        }
        let rate = self.receiver.rate().filter(|rate| *rate > 0.0);
        let step = rate.map(|rate| Duration::from_secs_f64(self.handshake.mss() as f64 / rate));
        let moved = step.map(|step| now + step.max(Duration::from_millis(1)));
        let Some(at) = held.or(moved) else { return };
        self.sender.wake_at = Some(self.sender.wake_at.map_or(at, |other| other.min(at)));
    }

    fn further_copy(&mut self, now: Instant) -> Option<NextSend> {
        while let Some((at, start, _, _)) = self.sender.copies.front().copied() {
            let i = self.cache.place(start);
            let flies =
                self.cache.pieces.get(i).is_some_and(|p| p.start == start && p.state == PieceState::InFlight);
            if !flies {
                self.sender.copies.pop_front();
            } else if at <= now {
                return Some(NextSend::Copy(i));
            } else {
                self.sender.wake_at = Some(at);
                return None;
            }
        }
        None
    }

    /// True if `at` is beyond the receiver's window and behind a gap that was lost in front of the gateway.
    fn is_beyond_gap(&self, at: u64) -> bool {
        at >= self.receiver.edge && self.cache.gap_before(self.una, at)
    }

    /// Returns how many bytes of the first queued packet may be sent.
    fn fresh(&self, limit: u64, shared: &Shared) -> u64 {
        let Some(first) = self.cache.queue.front() else { return 0 };
        let whole = first.end - first.start;
        let (segment, len) = (first.packet.segment, u64::from(first.packet.body.len));
        let largest = u64::from(shared.shaper.largest(segment)).min(self.swallowable(segment));
        let gap = self.cache.gap_before(self.una, first.start);
        let limit = if gap { limit.min(self.receiver.edge) } else { limit };
        let room = limit.saturating_sub(first.start);
        if room >= whole && (len <= largest || segment == 0) || first.whole() {
            return whole;
        }
        let n = room.min(largest).min(len);
        let segments = n - n % u64::from(segment.max(1));
        if segment > 0 && segments > 0 {
            return segments;
        }
        // a receiver whose whole window is smaller than a segment gets as much as it can accept
        let alone = self.cache.pieces.is_empty() && first.start == self.una;
        if alone { n.min(self.receiver.window(self.una)) } else { 0 }
    }

    /// Sends one packet or nothing, when granted the hop; returns the bytes that the hop counts for it.
    pub(crate) fn serve(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) -> Size {
        let sent = match self.choose(cx.now, shared) {
            None => return Size::ZERO,
            Some(NextSend::Hole(i)) => {
                shared.counters.repairs += 1;
                // a lost repair costs another round trip, and a second copy of it almost nothing. But the
                // data that a reader had no room for may be a whole bandwidth-delay product, and the window
                // reaches it gradually
                let is_hole = self.cache.pieces.get(i).is_some_and(|p| self.recovery.is_hole(p.start));
                let left = self.recovery.copies.max(if is_hole { REPAIR_COPIES } else { 1 }) - 1;
                self.fit(cx, i);
                self.send_piece(cx, i, (left, false), shared)
            }
            Some(NextSend::Due(i)) => {
                shared.counters.resent += 1;
                let left = self.recovery.copies.saturating_sub(1);
                self.fit(cx, i);
                self.send_piece(cx, i, (left, false), shared)
            }
            Some(NextSend::Probe) => self.send_probe(cx, shared),
            Some(NextSend::Copy(i)) => {
                let left = self.sender.copies.pop_front().map_or(0, |c| c.3);
                shared.counters.copies += 1;
                self.send_piece(cx, i, (left, true), shared)
            }
            Some(NextSend::New(n)) => {
                shared.counters.forwarded += 1;
                let i = self.next_piece(cx, n);
                let left = self.recovery.copies.saturating_sub(1);
                self.send_piece(cx, i, (left, false), shared)
            }
            Some(NextSend::Reset) => self.send_reset(cx, shared),
        };
        self.account(shared);
        sent
    }

    fn send_reset(&mut self, cx: &mut Cx<'_>, shared: &Shared) -> Size {
        let Some(reset) = &mut self.sender.reset else { return Size::ZERO };
        reset.sent = true;
        let packet = cx.duplicate(&reset.packet);
        let size = shared.shaper.cost(&packet);
        cx.send(SATELLITE, packet);
        size
    }

    fn send_probe(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) -> Size {
        self.probed(cx.now, shared);
        if self.cache.pieces.is_empty() {
            let n = self.cache.queue.front().map_or(0, |p| match u64::from(p.packet.segment) {
                segment if segment > 0 && !p.whole() => segment.min(p.end - p.start),
                _ => p.end - p.start,
            });
            self.next_piece(cx, n);
        }
        self.fit(cx, 0);
        self.send_piece(cx, 0, (0, false), shared)
    }

    /// Bytes that are sent at once with this segment size when the window may be closed on arrival: half the
    /// window, since the receiver accepts a super-packet whole or not at all. Linux does so since 6.17 with
    /// packets that GRO has joined.
    fn swallowable(&self, segment: u16) -> u64 {
        (self.receiver.window(self.una) / 2).max(u64::from(segment))
    }

    /// Cuts piece `i` to the size that the receiver can accept: whole segments, unless its window is smaller
    /// than one.
    fn fit(&mut self, cx: &mut Cx<'_>, i: usize) {
        let Some(piece) = self.cache.pieces.get(i) else { return };
        let (start, len) = (piece.start, piece.packet.body.len);
        let segment = match piece.packet.segment {
            0 => u64::from(len),
            of => u64::from(of),
        };
        let room = match self.receiver.edge.saturating_sub(start) {
            0 => self.swallowable(piece.packet.segment),
            room => room,
        };
        let n = if room < segment && start <= self.una {
            room
        } else {
            (room - room % segment.max(1)).max(segment)
        };
        if n > 0 && n < u64::from(len) {
            self.cache.split(cx, start + n);
        }
    }

    /// Moves the first `n` queued bytes to the forwarded pieces; returns the index of their piece.
    fn next_piece(&mut self, cx: &mut Cx<'_>, n: u64) -> usize {
        if let Some(mut piece) = self.cache.queue.pop_front() {
            let at = piece.start + n;
            if at < piece.end {
                let copy = cx.duplicate(&piece.packet);
                self.cache.queue.push_front(piece.cut(at, copy));
                self.cache.cost += PLACE;
            }
            self.cache.push_forwarded(piece);
        }
        self.cache.pieces.len().saturating_sub(1)
    }

    /// Sends piece `i`, with `left` copies to follow; `copy`: this is itself a redundant copy.
    fn send_piece(
        &mut self,
        cx: &mut Cx<'_>,
        i: usize,
        (left, copy): (u8, bool),
        shared: &mut Shared,
    ) -> Size {
        let Some(piece) = self.cache.pieces.get(i) else { return Size::ZERO };
        let (start, end) = (piece.start, piece.end);
        let mut packet = cx.duplicate(&piece.packet);
        self.cache.stamp(i, cx.now, copy);
        self.refresh(&mut packet);
        self.stamp(&mut packet);
        let size = shared.shaper.cost(&packet);
        if left > 0 {
            self.sender.copies.push_back((cx.now + APART, start, end, left - 1));
        }
        // only one of the copies counts in the pacing for the reader
        if !copy && end > self.receiver.reader.at_once(cx.now, self.una, self.receiver.edge) {
            self.receiver.reader.sent(cx.now, u64::from(packet.body.len));
        }
        self.recovery.sent(cx.now, self.hop_rtt.timeout());
        let path = self.path(cx.now, shared);
        (self.recovery.copies, self.recovery.spare) = self.copies(&path, shared);
        cx.send(SATELLITE, packet);
        size
    }
}
