//! From the sender to the receiver: which data is held. `serve.rs` decides which data is sent, and when.
//!
//! - Nothing overtakes queued packets: a packet without room behind them is dropped. The advertised windows
//!   are such that this does not happen to a sender that respects them.
//! - Data is held until the receiver has acknowledged it. A segment whose data is all held, or has arrived,
//!   is a duplicate and is dropped: the first copy is in flight, or is repaired here. When the gateway's own
//!   retries are used up, the sender's duplicate triggers another retransmission of the head.
//! - Bytes that fill a gap (they were lost in front of the gateway) go before queued data.
//! - A packet leaves with the sender's latest acknowledgment, window and timestamp echo: queued data must not
//!   carry outdated fields (RFC 5961, section 5.2, rejects an ACK that is too old).
//! - A pure ACK passes at once. If data is forwarded beyond the receiver's window, the ACK's sequence number
//!   would be beyond it too and the ACK would be discarded (RFC 9293, section 3.10.7.4), so it carries the
//!   number that the receiver expects when it arrives. If the receiver may have discarded the data in flight,
//!   a second copy carries the number that it expects in that case; it accepts one of the two. The timestamp
//!   is not newer than that of data still to come, or that data would be rejected (PAWS, RFC 7323, section
//!   5). For the same reason timestamps never decrease: a repair, or data queued behind a retransmission by
//!   the sender, carries the latest timestamp sent.
//! - An RST waits for the data before it, as in a queue, but not for their repair. If nothing more of that
//!   data is acknowledged for a second and a timeout, or after a minute, the data is dropped (RFC 9293,
//!   section 3.10.5). The RST then goes with the sequence numbers that the receiver may expect, since it
//!   accepts no others (RFC 5961, section 3.2).

use super::cache::{PLACE, Piece};
use super::header::{later, set_sack};
use super::repair::PROBE;
use super::{Flow, Shared};
use crate::memory::cost_of;
use crate::report::State;
use crate::sides::LAN;
use bentpipe_base::{Cx, Duration, Flags, Instant, Packet, Pkt, SackList, Seq, Size, TcpHeader};
use std::collections::VecDeque;

/// A segment that starts further beyond the advertised edge is not taken for one of the sender.
const BEYOND: u64 = 1 << 20;
/// Largest number of bandwidth-delay products held for one flow.
const MOST_PRODUCTS: u64 = 3;
/// Bytes held regardless of the product.
const LEAST_HELD: u64 = 256 << 10;
/// Assumed memory cost per payload byte while little is held: full packets, not joined.
const COST: f64 = 1.5;
/// Share of the limits that the advertised windows use: the memory cost per byte may rise later.
const HOLDABLE: f64 = 0.8;
const LONGEST_RESET: Duration = Duration::from_secs(60);

/// An RST that waits for the data before it.
#[derive(Debug)]
pub(super) struct Reset {
    pub(super) packet: Pkt,
    /// When it arrived, and when the receiver last acknowledged something.
    since: Instant,
    pub(super) moved: Instant,
    /// It was sent behind the data, which is not acknowledged yet.
    pub(super) sent: bool,
}

/// Information about the sender.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// Position after its last byte seen.
    pub(super) top: u64,
    /// Its latest header: acknowledgment, window and timestamps.
    last_header: Option<TcpHeader>,
    /// The last acknowledgment sent to the receiver.
    last_ack_sent: Option<u32>,
    stamp: Option<u32>,
    /// Its RST, while data is before it.
    pub(super) reset: Option<Box<Reset>>,
    /// Scheduled copies: time, range, and number of copies after this one.
    pub(super) copies: VecDeque<(Instant, u64, u64, u8)>,
    /// When something may be sent that may not be sent now.
    pub(super) wake_at: Option<Instant>,
    /// Payload and header bytes of the largest packet.
    sizes: (u32, u32),
    pub(super) duplicates_dropped: u64,
}

impl Sender {
    pub(super) fn stamps(&self) -> bool {
        self.last_header.as_ref().is_some_and(|n| n.timestamps.is_some())
    }

    /// Share of the hop's bytes that is payload.
    pub(super) fn payload_share(&self, framing: Size) -> f64 {
        let (payload, header) = if self.sizes.0 == 0 { (1460, 40) } else { self.sizes };
        f64::from(payload) / (f64::from(payload + header) + framing.0 as f64)
    }

    /// The sequence number that it expects next from the receiver.
    pub(super) fn expects(&self) -> Option<Seq> {
        self.last_header.as_ref().map(|news| news.ack)
    }

    pub(super) fn clear(&mut self, cx: &mut Cx<'_>) {
        if let Some(reset) = self.reset.take() {
            cx.recycle(reset.packet);
        }
        self.copies.clear();
    }
}

impl Flow {
    /// Processes a packet of the sender after the handshake.
    pub(super) fn take_data(&mut self, cx: &mut Cx<'_>, mut packet: Pkt, shared: &mut Shared) {
        packet.tcp.window = self.handshake.window_for_receiver(packet.tcp.window);
        self.note(&packet);
        let flags = packet.tcp.flags;
        let position =
            self.handshake.lan().and_then(|lan| lan.isn.offset_near(packet.tcp.seq, self.sender.top));
        let near = position.filter(|start| *start <= self.advertised.edge.max(self.sender.top) + BEYOND);
        let Some(start) = near.filter(|_| self.is_accelerated()) else {
            if let Some(start) = near {
                self.sender.top = self.sender.top.max(start + packet.seq_len());
            }
            self.note_reset(&packet);
            self.pass(cx, LAN, packet, shared);
            return;
        };
        let end = start + packet.seq_len();
        if flags.has(Flags::RST) {
            self.reset(cx, packet, shared);
        } else if end == start {
            self.pure(cx, start, packet, shared);
        } else if self.is_keep_alive(start, end) {
            self.pass(cx, LAN, packet, shared);
        } else {
            self.data(cx, start, end, packet, shared);
        }
    }

    /// Notes the acknowledgment and window that the packet carries.
    fn note(&mut self, packet: &Packet) {
        let tcp = &packet.tcp;
        let before = self.sender.last_header.as_ref();
        if tcp.flags.has(Flags::ACK) && before.is_none_or(|n| !later(n.ack.0, tcp.ack.0)) {
            self.sender.last_header = Some(tcp.clone());
            if self.fins.1.is_some_and(|fin| !later(fin, tcp.ack.0)) {
                self.fins_acked.1 = true;
                self.settle_end();
            }
        }
    }

    /// Closes the connection once both FINs are acknowledged.
    pub(super) fn settle_end(&mut self) {
        if self.fins_acked == (true, true) {
            self.state = State::Closed;
        }
    }

    /// True for a keep-alive: one byte, or none, before the expected one (RFC 9293, section 3.8.4).
    fn is_keep_alive(&self, start: u64, end: u64) -> bool {
        self.una >= self.sender.top && start + 1 == self.una && end <= self.una
    }

    fn reset(&mut self, cx: &mut Cx<'_>, packet: Pkt, shared: &mut Shared) {
        self.state = State::Closed;
        let sent = self.cache.queue.is_empty();
        if !self.cache.is_empty() && self.sender.reset.is_none() {
            let copy = sent.then(|| cx.duplicate(&packet));
            self.sender.reset = Some(Box::new(Reset { packet, since: cx.now, moved: cx.now, sent }));
            if let Some(copy) = copy {
                self.pass(cx, LAN, copy, shared);
            }
        } else {
            self.pass(cx, LAN, packet, shared);
        }
    }

    /// When an RST goes without the data before it.
    pub(super) fn reset_deadline(&self) -> Option<Instant> {
        let patience = PROBE + self.hop_rtt.timeout();
        self.sender.reset.as_ref().map(|r| (r.moved + patience).min(r.since + LONGEST_RESET))
    }

    /// Sends an RST although the data before it has not arrived.
    pub(super) fn reset_at_last(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        if self.reset_deadline().is_none_or(|at| at > cx.now) {
            return;
        }
        let (Some(reset), Some(lan)) = (self.sender.reset.take(), self.handshake.lan()) else { return };
        let mut packet = reset.packet;
        // with another sequence number its text, which is only informative (RFC 9293, section 3.10.7), would
        // overlap other bytes
        packet.body.len = 0;
        packet.segment = 0;
        packet.tcp.flags.0 &= !(Flags::FIN.0 | Flags::PSH.0 | Flags::URG.0);
        let forwarded = self.cache.forwarded(self.una);
        if forwarded > self.una {
            let mut first = cx.duplicate(&packet);
            first.tcp.seq = lan.isn.at(self.una);
            self.pass(cx, LAN, first, shared);
        }
        packet.tcp.seq = lan.isn.at(forwarded);
        self.pass(cx, LAN, packet, shared);
        self.drop_all(cx, shared);
    }

    fn pure(&mut self, cx: &mut Cx<'_>, start: u64, mut packet: Pkt, shared: &mut Shared) {
        let mut other = None;
        if start >= self.una
            && let Some(lan) = self.handshake.lan()
        {
            let expected = self.cache.expected(self.una).min(start);
            packet.tcp.seq = lan.isn.at(expected);
            let refused = expected > self.una && expected >= self.receiver.edge;
            other = (refused && self.may_stand_still(cx.now)).then(|| lan.isn.at(self.una));
        }
        if let (Some(stamp), Some(oldest)) = (&mut packet.tcp.timestamps, self.oldest_stamp())
            && later(stamp.value, oldest)
        {
            stamp.value = oldest;
        }
        self.sender.last_ack_sent = Some(packet.tcp.ack.0);
        if let Some(seq) = other {
            let mut copy = cx.duplicate(&packet);
            copy.tcp.seq = seq;
            self.pass(cx, LAN, copy, shared);
        }
        self.pass(cx, LAN, packet, shared);
    }

    /// Timestamp of the first byte that the receiver may still have to accept.
    fn oldest_stamp(&self) -> Option<u32> {
        let head = self.cache.pieces.front().or(self.cache.queue.front())?;
        head.packet.tcp.timestamps.map(|t| t.value)
    }

    fn data(&mut self, cx: &mut Cx<'_>, start: u64, end: u64, packet: Pkt, shared: &mut Shared) {
        let flags = packet.tcp.flags;
        if flags.has(Flags::FIN) {
            self.fins.0 = Some(end);
            self.state = if self.state == State::Closed { State::Closed } else { State::Closing };
        }
        let news = end.saturating_sub(start.max(self.sender.top));
        self.sender.top = self.sender.top.max(end);
        self.observe_data(cx.now, news);
        if packet.body.len > self.sender.sizes.0.min(u32::from(u16::MAX)) && packet.segment == 0 {
            self.sender.sizes = (packet.body.len, u32::from(packet.header_len));
        }
        let missing = if end <= self.una { Vec::new() } else { self.cache.missing(start.max(self.una), end) };
        if missing.is_empty() {
            self.drop_duplicate(cx, start, end, packet, shared);
            return;
        }
        let cost = cost_of(&packet);
        let is_odd = flags.has(Flags::URG) && missing != [(start, end)];
        if is_odd || self.is_full(cost, u64::from(packet.body.len), shared) {
            self.no_room(cx, packet, shared);
            return;
        }
        self.keep(cx, (start, end), packet, &missing, cost);
        self.tell_receiver(cx, shared);
    }

    /// Passes a packet that cannot be held; drops it if it would overtake queued packets.
    fn no_room(&mut self, cx: &mut Cx<'_>, packet: Pkt, shared: &mut Shared) {
        if self.cache.queue.is_empty() {
            shared.counters.overflow += 1;
            self.pass(cx, LAN, packet, shared);
        } else {
            shared.counters.no_room += 1;
            cx.recycle(packet);
        }
    }

    fn keep(
        &mut self,
        cx: &mut Cx<'_>,
        (start, end): (u64, u64),
        packet: Pkt,
        missing: &[(u64, u64)],
        cost: u64,
    ) {
        if missing == [(start, end)] {
            self.cache.hold(self.una, Piece::new(start, end, packet).with_bytes(cost));
            return;
        }
        for (i, (from, to)) in missing.iter().enumerate() {
            let mut piece = Piece::new(start, end, cx.duplicate(&packet));
            if i + 1 == missing.len() {
                piece = piece.with_bytes(cost);
            }
            piece.drop_front(*from);
            piece.drop_back(*to);
            self.cache.hold(self.una, piece);
        }
        cx.recycle(packet);
    }

    /// True if the flow would then hold more than three products or the limits allow, which the advertised
    /// window avoids.
    fn is_full(&self, cost: u64, len: u64, shared: &Shared) -> bool {
        let whole = shared.config.rate.map(|r| r.bytes_in(self.path_rtt()).0 * MOST_PRODUCTS);
        // the sender may use the advertised window even if the product has shrunk since
        let shown = self.advertised.edge.saturating_sub(self.una);
        let most = whole.unwrap_or(u64::MAX).max(LEAST_HELD).max(shown);
        let cost = PLACE + cost;
        self.cache.bytes + len > most
            || self.cache.cost + cost > shared.config.limits.per_flow.0
            || shared.memory.used + cost > shared.memory.limit
    }

    /// Payload bytes that the flow can hold by its limit and its part of the memory, at its memory cost per
    /// byte.
    pub(super) fn holdable(&self, shared: &Shared) -> u64 {
        let left = shared.memory.limit.saturating_sub(shared.memory.used);
        let part = self.cost + left / u64::from(shared.shaper.active.max(1));
        let most = shared.config.limits.per_flow.0.min(part) as f64 * HOLDABLE;
        let known = self.cache.bytes >= LEAST_HELD;
        let cost = if known { self.cache.cost as f64 / self.cache.bytes as f64 } else { COST };
        (most / cost.max(1.0)) as u64
    }

    pub(super) fn path_rtt(&self) -> Duration {
        self.hop_rtt.smoothed() + self.handshake.lan_rtt.unwrap_or_default()
    }

    /// Sends the sender's acknowledgment as a pure ACK if the data that could carry it must wait in the
    /// queue.
    fn tell_receiver(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        let Some(news) = &self.sender.last_header else { return };
        let fresh = self.sender.last_ack_sent != Some(news.ack.0) || !news.sack.is_empty();
        if !fresh || self.choose(cx.now, shared).is_some() {
            return;
        }
        let Some(last) = self.cache.queue.back().filter(|p| !p.whole()) else { return };
        let mut ack = cx.duplicate(&last.packet);
        ack.body.len = 0;
        ack.segment = 0;
        ack.tcp.flags.0 &= !(Flags::FIN.0 | Flags::PSH.0 | Flags::CWR.0);
        if let Some(lan) = self.handshake.lan() {
            let start = self.cache.top(self.una);
            ack.tcp.seq = lan.isn.at(start);
            self.pure(cx, start, ack, shared);
        }
    }

    pub(super) fn stamp(&mut self, packet: &mut Packet) {
        let Some(stamp) = &mut packet.tcp.timestamps else { return };
        if let Some(latest) = self.sender.stamp.filter(|latest| later(*latest, stamp.value)) {
            stamp.value = latest;
        }
        self.sender.stamp = Some(stamp.value);
    }

    /// Updates a packet with the sender's latest acknowledgment, window and timestamp echo.
    pub(super) fn refresh(&mut self, packet: &mut Packet) {
        let news = self.sender.last_header.as_ref().filter(|_| packet.tcp.flags.has(Flags::ACK));
        let Some(news) = news else { return };
        self.sender.last_ack_sent = Some(news.ack.0);
        if packet.tcp.ack == news.ack && packet.tcp.window == news.window {
            return;
        }
        packet.tcp.ack = news.ack;
        packet.tcp.window = news.window;
        if let (Some(stamp), Some(latest)) = (&mut packet.tcp.timestamps, news.timestamps) {
            stamp.echo = latest.echo;
        }
        if !packet.tcp.sack.is_empty() {
            let mut kept = SackList::default();
            for &(left, right) in packet.tcp.sack.as_slice() {
                if later(left.0, news.ack.0) {
                    kept.push(left, right);
                }
            }
            set_sack(packet, kept);
        }
    }

    pub(super) fn flush(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        while let Some(piece) = self.cache.queue.pop_front() {
            let mut packet = piece.packet;
            self.refresh(&mut packet);
            self.pass(cx, LAN, packet, shared);
        }
        if let Some(reset) = self.sender.reset.take() {
            self.pass(cx, LAN, reset.packet, shared);
        }
    }
}
