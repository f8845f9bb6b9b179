//! Data held for a flow: pieces that were forwarded and not acknowledged, and packets queued for forwarding.
//!
//! Both are in stream order and never overlap, so positions are found by binary search. A log in sending
//! order, as in RACK (RFC 8985), finds the data that was sent before other data that has arrived. A piece is
//! an original packet or a part of one.

use super::ranges::Ranges;
use bentpipe_base::{Cx, Flags, Instant, Packet, Pkt, Seq};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceState {
    /// In flight.
    InFlight,
    /// To be sent: lost, discarded by the receiver, or sent late because it filled a gap.
    Due,
    /// SACKed: beyond a hole, where the receiver keeps it for now (RFC 2018: it may still drop it).
    Sacked,
}

/// A part `[start, end)` of the stream; a FIN takes one position (RFC 9293, section 3.4).
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) state: PieceState,
    /// Number of transmissions, without redundant copies.
    pub(crate) transmissions: u8,
    /// Number of transmissions, with copies.
    sends: u8,
    /// Its last transmission was found missing and counted as lost.
    pub(crate) counted: bool,
    /// When it was last transmitted, and when the last copy of that transmission was sent.
    pub(crate) first: Instant,
    pub(crate) sent: Instant,
    /// When the last copy of the previous transmission was sent.
    pub(crate) before: Instant,
    /// Memory it costs, in bytes.
    cost: u64,
    pub(crate) packet: Pkt,
}

/// Memory that a piece costs besides its bytes: itself, its packet, and two log entries. A number, since
/// what a gateway holds must not depend on how a compiler lays out its types.
pub(crate) const PLACE: u64 = 232;
const _: () = {
    let sizes = size_of::<Piece>() + size_of::<Packet>() + 2 * size_of::<(Instant, u64, u64)>();
    // with the blocks of a SACK option, which few data packets have, it is as much as it says
    assert!(sizes as u64 <= PLACE + 8 && sizes as u64 + 36 >= PLACE);
};

#[derive(Debug, Default)]
pub(crate) struct Cache {
    pub(crate) pieces: VecDeque<Piece>,
    pub(crate) queue: VecDeque<Piece>,
    pub(crate) sacked: Ranges,
    /// Ranges sent, with their times, in sending order.
    log: VecDeque<(Instant, u64, u64)>,
    /// Start of each gap between pieces, ascending; bytes in a gap never reached the gateway.
    gaps: Vec<u64>,
    /// Number of due pieces, and a position before which none is.
    pub(crate) due: usize,
    cursor: u64,
    /// Payload bytes held.
    pub(crate) bytes: u64,
    /// Memory that all of it costs, in bytes.
    pub(crate) cost: u64,
}

/// The result of an acknowledgment for the transmissions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckCredit {
    /// Latest sending time of anything that has arrived.
    pub(crate) sent: Option<Instant>,
    /// Latest sending time of a piece that was sent once: an unambiguous RTT sample (Karn).
    pub(crate) sample: Option<Instant>,
    /// Segments newly known to have arrived.
    pub(crate) arrived: u32,
    /// Copies of those sent several times together: it is unknown which of them were lost.
    pub(crate) copied: u32,
    /// Segments counted as lost that arrived before their retransmission could have, and the earliest sent.
    pub(crate) late: u32,
    pub(crate) late_sent: Option<Instant>,
}

impl AckCredit {
    /// Credits the arrival of a piece to its last copy, or to an earlier one if the last is too recent to
    /// have been acknowledged. Data that was sent several times within an RTT gives no sending time.
    fn take(&mut self, piece: &Piece, now: Instant, shortest: u64) {
        self.arrived += piece.segments();
        let copies = piece.sends.saturating_sub(piece.transmissions);
        self.copied += if copies > 0 { piece.segments() * (u32::from(copies) + 1) } else { 0 };
        let returned = |sent: &Instant| now.since(*sent).0 >= shortest;
        if piece.counted && (piece.state == PieceState::Due || !returned(&piece.first)) {
            self.late += piece.segments();
            let sent = if piece.state == PieceState::Due { piece.sent } else { piece.before };
            self.late_sent = [self.late_sent, Some(sent)].into_iter().flatten().min();
        }
        let once = piece.transmissions < 2;
        let sent = if once && piece.first == piece.sent { Some(piece.sent) } else { None };
        let candidates = [piece.sent, piece.first, piece.before];
        let known = if once { &candidates[..2] } else { &candidates };
        let sent = sent.or_else(|| known.iter().copied().find(returned)).or(once.then_some(piece.first));
        self.sent = self.sent.max(sent);
        if once && sent == Some(piece.first) {
            self.sample = self.sample.max(sent);
        }
    }
}

impl Piece {
    pub(crate) const fn new(start: u64, end: u64, packet: Pkt) -> Self {
        Self {
            start,
            end,
            state: PieceState::Due,
            transmissions: 0,
            sends: 0,
            counted: false,
            first: Instant::ZERO,
            sent: Instant::ZERO,
            before: Instant::ZERO,
            cost: PLACE,
            packet,
        }
    }

    /// Number of packets on the hop that carry it; each may be lost independently.
    pub(crate) fn segments(&self) -> u32 {
        let of = u64::from(self.packet.segment);
        if of == 0 { 1 } else { (self.end - self.start).div_ceil(of) as u32 }
    }

    /// Charges the packet's bytes, `cost`, to this piece.
    pub(crate) const fn with_bytes(mut self, cost: u64) -> Self {
        self.cost = PLACE + cost;
        self
    }

    /// Cuts it at `at` and returns the later part, with `copy` of its packet and the cost of the bytes.
    pub(crate) fn cut(&mut self, at: u64, copy: Pkt) -> Self {
        let mut rest = Self { packet: copy, ..*self };
        self.cost = PLACE;
        rest.drop_front(at);
        self.drop_back(at);
        rest
    }

    /// True if it must not be cut: its urgent pointer counts from its start.
    pub(crate) const fn whole(&self) -> bool {
        self.packet.tcp.flags.has(Flags::URG)
    }

    /// Drops the part before `at`; returns the payload bytes dropped.
    pub(crate) fn drop_front(&mut self, at: u64) -> u64 {
        if at <= self.start || at >= self.end || self.whole() {
            return 0;
        }
        let n = at - self.start;
        self.start = at;
        let p = &mut self.packet;
        let payload = n.min(u64::from(p.body.len));
        p.body.off += payload;
        p.body.len -= payload as u32;
        p.tcp.seq = Seq(p.tcp.seq.0.wrapping_add(n as u32));
        p.tcp.flags.0 &= !Flags::CWR.0;
        settle_segment(p);
        payload
    }

    /// Drops the part from `at` on.
    pub(crate) fn drop_back(&mut self, at: u64) {
        if at <= self.start || at >= self.end || self.whole() {
            return;
        }
        self.end = at;
        let p = &mut self.packet;
        p.body.len = p.body.len.min((at - self.start) as u32);
        p.tcp.flags.0 &= !(Flags::FIN.0 | Flags::PSH.0);
        settle_segment(p);
    }
}

fn settle_segment(p: &mut Pkt) {
    if p.body.len <= u32::from(p.segment) {
        p.segment = 0;
    }
}

impl Cache {
    /// Index of the first piece that ends beyond `at`.
    pub(crate) fn place(&self, at: u64) -> usize {
        self.pieces.partition_point(|p| p.end <= at)
    }

    /// Position after the last forwarded byte; `una` if nothing is held.
    pub(crate) fn forwarded(&self, una: u64) -> u64 {
        self.pieces.back().map_or(una, |p| p.end).max(una)
    }

    /// Position after the last held byte.
    pub(crate) fn top(&self, una: u64) -> u64 {
        self.queue.back().map_or_else(|| self.forwarded(una), |p| p.end).max(una)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.queue.is_empty()
    }

    /// Parts of `[start, end)` that are not held.
    pub(crate) fn missing(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut missing = Vec::new();
        let mut at = start;
        let queued = self.queue.partition_point(|p| p.end <= start);
        let held = self.pieces.range(self.place(start)..).chain(self.queue.range(queued..));
        for piece in held.take_while(|p| p.start < end) {
            if piece.start > at {
                missing.push((at, piece.start));
            }
            at = at.max(piece.end);
        }
        if at < end {
            missing.push((at, end));
        }
        missing
    }

    /// Holds a piece that overlaps nothing. One before the forwarded data becomes due at once.
    pub(crate) fn hold(&mut self, una: u64, piece: Piece) {
        self.bytes += u64::from(piece.packet.body.len);
        self.cost += piece.cost;
        if !self.pieces.is_empty() && piece.start < self.forwarded(una) {
            self.cursor = self.cursor.min(piece.start);
            self.due += 1;
            let i = self.place(piece.start);
            self.pieces.insert(i, piece);
            self.find_gaps();
        } else if self.queue.back().is_none_or(|last| last.end <= piece.start) {
            self.queue.push_back(piece);
        } else {
            let place = self.queue.partition_point(|p| p.end <= piece.start);
            self.queue.insert(place, piece);
        }
    }

    fn find_gaps(&mut self) {
        let pairs = self.pieces.iter().zip(self.pieces.iter().skip(1));
        self.gaps = pairs.filter(|(a, b)| a.end < b.start).map(|(a, _)| a.end).collect();
    }

    /// True if the next bytes were never seen, though later ones were: a loss in front of the gateway.
    pub(crate) fn gap_at(&self, una: u64) -> bool {
        let first = self.pieces.front().or(self.queue.front());
        first.is_some_and(|p| p.start > una)
    }

    /// True if bytes between `una` and `at` were never seen.
    pub(crate) fn gap_before(&self, una: u64, at: u64) -> bool {
        let gap = self.gaps.first().copied();
        gap.is_some_and(|gap| gap < at) || (self.gap_at(una) && at > una)
    }

    /// Moves a queued piece to the forwarded ones.
    pub(crate) fn push_forwarded(&mut self, piece: Piece) {
        if let Some(last) = self.pieces.back().filter(|last| last.end < piece.start) {
            self.gaps.push(last.end);
        }
        self.due += 1;
        self.pieces.push_back(piece);
    }

    /// Frees everything before `una`, which has arrived.
    pub(crate) fn acknowledge(&mut self, cx: &mut Cx<'_>, una: u64, shortest: u64, credit: &mut AckCredit) {
        let mut again = false;
        while let Some(piece) = self.pieces.pop_front() {
            if piece.end > una {
                self.pieces.push_front(piece);
                break;
            }
            self.due -= usize::from(piece.state == PieceState::Due);
            if piece.state != PieceState::Sacked && piece.transmissions > 0 {
                credit.take(&piece, cx.now, shortest);
                again |= piece.transmissions > 1;
            }
            self.give_back(cx, piece);
        }
        if again {
            // data behind a retransmitted piece has waited for it at the receiver, so its time is no RTT
            // (Karn and Partridge, 1987)
            credit.sample = None;
        }
        if let Some(head) = self.pieces.front_mut() {
            self.bytes -= head.drop_front(una);
        }
        // queued data can be acknowledged: an earlier packet with it has passed, when there was no room to
        // hold it
        while self.pieces.is_empty() && self.queue.front().is_some_and(|p| p.end <= una) {
            if let Some(piece) = self.queue.pop_front() {
                self.give_back(cx, piece);
            }
        }
        if self.pieces.is_empty()
            && let Some(head) = self.queue.front_mut()
        {
            self.bytes -= head.drop_front(una);
        }
        self.sacked.drop_before(una);
        self.gaps.retain(|gap| *gap > una);
        self.cursor = self.cursor.max(una);
        while self.log.front().is_some_and(|(_, _, end)| *end <= una) {
            self.log.pop_front();
        }
    }

    fn give_back(&mut self, cx: &mut Cx<'_>, piece: Piece) {
        self.bytes -= u64::from(piece.packet.body.len);
        self.cost -= piece.cost;
        cx.recycle(piece.packet);
    }

    /// Marks `[start, end)` as SACKed.
    pub(crate) fn sack(&mut self, cx: &mut Cx<'_>, range: (u64, u64), shortest: u64, credit: &mut AckCredit) {
        let forwarded = self.pieces.back().map_or(0, |p| p.end);
        let (start, end) = (range.0, range.1.min(forwarded));
        for (start, end) in self.sacked.insert(start, end) {
            self.split(cx, start);
            self.split(cx, end);
            let mut i = self.place(start);
            while let Some(piece) = self.pieces.get_mut(i).filter(|p| p.end <= end) {
                if piece.state != PieceState::Sacked && piece.transmissions > 0 {
                    credit.take(piece, cx.now, shortest);
                    self.due -= usize::from(piece.state == PieceState::Due);
                    piece.state = PieceState::Sacked;
                }
                i += 1;
            }
        }
    }

    /// Cuts the piece at `at`, if there is one.
    pub(crate) fn split(&mut self, cx: &mut Cx<'_>, at: u64) {
        let i = self.place(at);
        let Some(piece) = self.pieces.get_mut(i).filter(|p| p.start < at && !p.whole()) else { return };
        let copy = cx.duplicate(&piece.packet);
        let rest = piece.cut(at, copy);
        self.cost += PLACE;
        self.due += usize::from(rest.state == PieceState::Due);
        self.pieces.insert(i + 1, rest);
    }

    /// The receiver has dropped SACKed data (RFC 2018, section 8): makes all SACKed pieces due.
    pub(crate) fn renege(&mut self) {
        self.sacked = Ranges::default();
        for piece in &mut self.pieces {
            if piece.state == PieceState::Sacked {
                piece.state = PieceState::Due;
                self.due += 1;
            }
        }
        self.cursor = 0;
    }

    /// Makes due the data that was last sent before `sent` and has not arrived: it is lost, since the hop
    /// keeps order. Calls `found` for each piece, which returns whether it counts as a loss.
    pub(crate) fn overtaken(&mut self, sent: Instant, mut found: impl FnMut(&Piece) -> bool) {
        while let Some((at, start, end)) = self.log.front().copied().filter(|l| l.0 < sent) {
            self.log.pop_front();
            let mut i = self.place(start);
            while let Some(piece) = self.pieces.get_mut(i).filter(|p| p.start < end) {
                if piece.sent == at && piece.state == PieceState::InFlight {
                    piece.counted = found(piece);
                    self.make_due(i);
                }
                i += 1;
            }
        }
    }

    /// Marks piece `i` to be sent again.
    pub(crate) fn make_due(&mut self, i: usize) {
        if let Some(piece) = self.pieces.get_mut(i).filter(|p| p.state == PieceState::InFlight) {
            piece.state = PieceState::Due;
            self.due += 1;
            self.cursor = self.cursor.min(piece.start);
        }
    }

    /// Makes due the pieces that reach beyond `at` and were sent no later than `sent`; true if there were
    /// any.
    pub(crate) fn rewind(&mut self, at: u64, sent: Instant) -> bool {
        let before = self.due;
        for i in self.place(at)..self.pieces.len() {
            if self.pieces[i].sent <= sent {
                self.make_due(i);
            }
        }
        self.due > before
    }

    pub(crate) fn first_due(&mut self) -> Option<usize> {
        if self.due == 0 {
            return None;
        }
        let from = self.place(self.cursor);
        let found = self.pieces.range(from..).position(|p| p.state == PieceState::Due).map(|n| from + n);
        if let Some(i) = found {
            self.cursor = self.pieces[i].start;
        }
        found
    }

    /// The position that the receiver expects when something sent now arrives.
    pub(crate) fn expected(&mut self, una: u64) -> u64 {
        match self.first_due() {
            Some(i) => self.pieces[i].start.max(una),
            None => self.forwarded(una),
        }
    }

    /// Notes that piece `i`, or a redundant copy of it, is sent now.
    pub(crate) fn stamp(&mut self, i: usize, now: Instant, copy: bool) {
        let piece = &mut self.pieces[i];
        self.due -= usize::from(piece.state == PieceState::Due);
        piece.state = PieceState::InFlight;
        piece.sends = piece.sends.saturating_add(1);
        if !copy {
            piece.transmissions = piece.transmissions.saturating_add(1);
            (piece.before, piece.first) = (piece.sent, now);
        }
        piece.sent = now;
        self.log.push_back((now, piece.start, piece.end));
    }

    pub(crate) fn clear(&mut self, cx: &mut Cx<'_>) {
        for piece in self.pieces.drain(..).chain(self.queue.drain(..)) {
            cx.recycle(piece.packet);
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Body, Packet};

    /// The hop may lose each packet of a super-packet independently, so losses are counted per packet.
    #[test]
    fn a_super_packet_is_as_many_segments_as_the_hop_carries() {
        let of = |segment: u16, len: u32| {
            let packet = Packet { header_len: 40, segment, body: Body { off: 0, len }, ..Packet::default() };
            Piece::new(1000, 1000 + u64::from(len), Box::new(packet))
        };
        let counts = [(0, 1460), (1460, 1460), (1460, 2920), (1460, 4000)].map(|(s, n)| of(s, n).segments());
        assert_eq!(counts, [1, 1, 2, 3]);
        let mut credit = AckCredit::default();
        credit.take(&of(1460, 2920), Instant(5), 0);
        assert_eq!((credit.arrived, credit.copied), (2, 0));
    }

    /// Sent twice at once, lost, and sent twice again: two of the four may have been lost unseen.
    /// Retransmissions one at a time hide no losses.
    #[test]
    fn copies_beside_one_that_arrives_are_counted() {
        let mut cache = Cache::default();
        let packet = Packet { body: Body { off: 0, len: 1460 }, ..Packet::default() };
        cache.push_forwarded(Piece::new(1, 1461, Box::new(packet)));
        let copied = |cache: &Cache| {
            let mut credit = AckCredit::default();
            credit.take(&cache.pieces[0], Instant(9), 0);
            credit.copied
        };
        cache.stamp(0, Instant(1), false);
        cache.stamp(0, Instant(2), false);
        assert_eq!(copied(&cache), 0);
        cache.stamp(0, Instant(3), true);
        assert_eq!(copied(&cache), 2);
    }

    /// Found missing and sent again at 100. An arrival less than an RTT of 50 later is that of the first
    /// transmission, which was late.
    #[test]
    fn what_arrives_before_its_repair_can_have_was_not_lost() {
        let mut cache = Cache::default();
        let packet = Packet { body: Body { off: 0, len: 1460 }, ..Packet::default() };
        cache.push_forwarded(Piece::new(1, 1461, Box::new(packet)));
        let late = |cache: &Cache, now: u64| {
            let mut credit = AckCredit::default();
            credit.take(&cache.pieces[0], Instant(now), 50);
            credit.late
        };
        cache.stamp(0, Instant(1), false);
        cache.overtaken(Instant(2), |_| true);
        assert_eq!((cache.pieces[0].state, late(&cache, 99)), (PieceState::Due, 1));
        cache.stamp(0, Instant(100), false);
        assert_eq!((late(&cache, 120), late(&cache, 150)), (1, 0));
        cache.overtaken(Instant(101), |_| false);
        assert_eq!(late(&cache, 120), 0, "what the receiver had no room for is no loss");
    }
}
