//! From the sender to the receiver: what is held. What goes out of it, and when, is in `serve.rs`.
//!
//! - Nothing overtakes what waits: what finds no room behind it is dropped, and the windows shown are such
//!   that this does not happen to a sender which keeps to them.
//! - Data is held until the receiver has acknowledged it. A segment of which everything is held already, or
//!   has arrived, is a copy and is swallowed: its first is on the way, or is repaired here. When our own
//!   tries are used up, the sender's copy goes out.
//! - Bytes that fill a gap (their loss was in front of the gateway) go out before what waits.
//! - A packet leaves with the latest acknowledgment, window and echo that the sender has said since: data
//!   that waited must not carry old news (RFC 5961, section 5.2, refuses an ACK that is too old).
//! - A pure ACK passes at once. Its sequence number is beyond the receiver's window when data is forwarded
//!   beyond it, and then it would be discarded (RFC 9293, section 3.10.7.4): it carries the number that the
//!   receiver expects by the time it arrives. While it may be that the receiver has discarded what is on the
//!   way, a second one carries the number that it expects then: it takes the one or the other. Its timestamp
//!   is not newer than that of data which is still to come, or that would be refused (PAWS, RFC 7323, section
//!   5). For the same reason nothing leaves with an older timestamp than what left before it: a repair, or
//!   what waited behind a byte that the sender sent again, carries the latest that left.
//! - An RST waits for the data in front of it, as it would in a queue without us, but not for their repair.
//!   When nothing more of them arrives for a second and a timeout, or after a minute, they are flushed (RFC
//!   9293, section 3.10.5) and it goes with the numbers that the receiver may expect: no other is taken (RFC
//!   5961, section 3.2).

use super::cache::{PLACE, Piece};
use super::header::{later, set_sack};
use super::repair::PROBE;
use super::{Flow, Shared};
use crate::memory::cost_of;
use crate::report::State;
use crate::sides::LAN;
use bentpipe_base::{Cx, Duration, Flags, Instant, Packet, Pkt, SackList, Size, TcpHeader};
use std::collections::VecDeque;

/// Positions further beyond what was shown than this are not the sender's.
const BEYOND: u64 = 1 << 20;
/// Bandwidth-delay products that are held for one flow at most.
const MOST_PRODUCTS: u64 = 3;
/// Held in any case.
const LEAST_HELD: u64 = 256 << 10;
/// What a byte of payload is taken to cost while little is held: full packets, each by itself.
const COST: f64 = 1.5;
/// Share of the limits that windows are shown for: what a byte costs may rise later.
const HOLDABLE: f64 = 0.8;
/// A reset waits no longer than this.
const LONGEST_RESET: Duration = Duration::from_secs(60);

/// A reset while data is before it.
#[derive(Debug)]
pub(super) struct Reset {
    pub(super) packet: Pkt,
    /// When it came, and when the receiver last acknowledged something.
    since: Instant,
    pub(super) moved: Instant,
    /// It has gone behind the data, and nobody knows yet whether they arrived.
    pub(super) sent: bool,
}

/// What is known of the sender.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// Position after its last byte seen.
    pub(super) top: u64,
    /// Its latest acknowledgment of the other direction, window and timestamps.
    news: Option<TcpHeader>,
    /// The acknowledgment that the receiver knows.
    told: Option<u32>,
    /// The latest timestamp that left.
    stamp: Option<u32>,
    /// Its reset, while data is before it.
    pub(super) reset: Option<Box<Reset>>,
    /// Further copies: when, of what, and how many after that.
    pub(super) copies: VecDeque<(Instant, u64, u64, u8)>,
    /// When something may go that may not now.
    pub(super) wake_at: Option<Instant>,
    /// Payload and header bytes of the last full packet.
    sizes: (u32, u32),
    pub(super) swallowed: u64,
}

impl Sender {
    /// What it has acknowledged of the other direction.
    pub(super) fn acked(&self) -> bentpipe_base::Seq {
        self.news.map_or(bentpipe_base::Seq(0), |n| n.ack)
    }

    /// It sends timestamps.
    pub(super) fn stamps(&self) -> bool {
        self.news.is_some_and(|n| n.timestamps.is_some())
    }

    /// Share of the hop's bytes that is payload.
    pub(super) fn payload_share(&self, framing: Size) -> f64 {
        let (payload, header) = if self.sizes.0 == 0 { (1460, 40) } else { self.sizes };
        f64::from(payload) / (f64::from(payload + header) + framing.0 as f64)
    }

    /// The sequence number it expects of the other direction.
    pub(super) fn expects(&self) -> Option<u32> {
        self.news.map(|news| news.ack.0)
    }

    pub(super) fn clear(&mut self, cx: &mut Cx<'_>) {
        if let Some(reset) = self.reset.take() {
            cx.recycle(reset.packet);
        }
        self.copies.clear();
    }
}

impl Flow {
    /// A packet of the sender, the handshake aside.
    pub(super) fn take_data(&mut self, cx: &mut Cx<'_>, mut packet: Pkt, shared: &mut Shared<'_>) {
        packet.tcp.window = self.shake.window_for_receiver(packet.tcp.window);
        self.note(&packet);
        let flags = packet.tcp.flags;
        let position = self.shake.lan().and_then(|lan| lan.isn.offset_near(packet.tcp.seq, self.sender.top));
        let near = position.filter(|start| *start <= self.shown.edge.max(self.sender.top) + BEYOND);
        let Some(start) = near.filter(|_| self.works()) else {
            if let Some(start) = near {
                self.sender.top = self.sender.top.max(start + packet.seq_len());
            }
            self.ends(&packet);
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

    /// Notes what the sender says of the other direction.
    fn note(&mut self, packet: &Packet) {
        let tcp = packet.tcp;
        if tcp.flags.has(Flags::ACK) && self.sender.news.is_none_or(|n| !later(n.ack.0, tcp.ack.0)) {
            self.sender.news = Some(tcp);
            if self.fins.1.is_some_and(|fin| !later(fin, tcp.ack.0)) {
                self.fins_acked.1 = true;
                self.settle_end();
            }
        }
    }

    /// Both ends have closed and know it of each other.
    pub(super) fn settle_end(&mut self) {
        if self.fins_acked == (true, true) {
            self.state = State::Closed;
        }
    }

    /// A probe that nothing is missing: one byte, or none, before what is expected (RFC 9293, section 3.8.4).
    fn is_keep_alive(&self, start: u64, end: u64) -> bool {
        self.una >= self.sender.top && start + 1 == self.una && end <= self.una
    }

    fn reset(&mut self, cx: &mut Cx<'_>, packet: Pkt, shared: &mut Shared<'_>) {
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

    /// When a reset goes without the data in front of it.
    pub(super) fn reset_deadline(&self) -> Option<Instant> {
        let patience = PROBE + self.trip.timeout();
        self.sender.reset.as_ref().map(|r| (r.moved + patience).min(r.since + LONGEST_RESET))
    }

    /// The data in front of a reset does not get through.
    pub(super) fn reset_at_last(&mut self, cx: &mut Cx<'_>, shared: &mut Shared<'_>) {
        if self.reset_deadline().is_none_or(|at| at > cx.now) {
            return;
        }
        let (Some(reset), Some(lan)) = (self.sender.reset.take(), self.shake.lan()) else { return };
        let mut packet = reset.packet;
        // with another number its text, which only explains (RFC 9293, section 3.10.7), would stand where
        // other bytes do
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

    fn pure(&mut self, cx: &mut Cx<'_>, start: u64, mut packet: Pkt, shared: &mut Shared<'_>) {
        let mut other = None;
        if start >= self.una
            && let Some(lan) = self.shake.lan()
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
        self.sender.told = Some(packet.tcp.ack.0);
        if let Some(seq) = other {
            let mut copy = cx.duplicate(&packet);
            copy.tcp.seq = seq;
            self.pass(cx, LAN, copy, shared);
        }
        self.pass(cx, LAN, packet, shared);
    }

    /// Timestamp of the first byte that the receiver may still have to take.
    fn oldest_stamp(&self) -> Option<u32> {
        let head = self.cache.pieces.front().or(self.cache.queue.front())?;
        head.packet.tcp.timestamps.map(|t| t.value)
    }

    /// Bytes `[start, end)` of the sender.
    fn data(&mut self, cx: &mut Cx<'_>, start: u64, end: u64, packet: Pkt, shared: &mut Shared<'_>) {
        let flags = packet.tcp.flags;
        if flags.has(Flags::FIN) {
            self.fins.0 = Some(end);
            self.state = if self.state == State::Closed { State::Closed } else { State::Closing };
        }
        let news = end.saturating_sub(start.max(self.sender.top));
        self.sender.top = self.sender.top.max(end);
        self.watch_sent(cx.now, news);
        if packet.body.len > self.sender.sizes.0.min(u32::from(u16::MAX)) && packet.segment == 0 {
            self.sender.sizes = (packet.body.len, u32::from(packet.header_len));
        }
        let missing = if end <= self.una { Vec::new() } else { self.cache.missing(start.max(self.una), end) };
        if missing.is_empty() {
            self.swallow(cx, start, end, packet, shared);
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

    /// What cannot be held passes, unless it would overtake what waits.
    fn no_room(&mut self, cx: &mut Cx<'_>, packet: Pkt, shared: &mut Shared<'_>) {
        if self.cache.queue.is_empty() {
            shared.counters.overflow += 1;
            self.pass(cx, LAN, packet, shared);
        } else {
            shared.counters.no_room += 1;
            cx.recycle(packet);
        }
    }

    /// Holds those parts of a packet that are missing.
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

    /// No more is held than three products, or what the limits allow; the window shown keeps a sender below
    /// that.
    fn is_full(&self, cost: u64, len: u64, shared: &Shared<'_>) -> bool {
        let whole = shared.config.rate.map(|r| r.bytes_in(self.path_trip()).0 * MOST_PRODUCTS);
        // what the sender was shown it may send, also when the product has become smaller since
        let shown = self.shown.edge.saturating_sub(self.una);
        let most = whole.unwrap_or(u64::MAX).max(LEAST_HELD).max(shown);
        let cost = PLACE + cost;
        self.cache.bytes + len > most
            || self.cache.cost + cost > shared.config.limits.per_flow.0
            || shared.memory.used + cost > shared.memory.limit
    }

    /// Bytes of payload that can be held for this flow: what its limit allows and, where memory is short, its
    /// part of what is left, by what a byte of it costs lately.
    pub(super) fn holdable(&self, shared: &Shared<'_>) -> u64 {
        let left = shared.memory.limit.saturating_sub(shared.memory.used);
        let part = self.cost + left / u64::from(shared.shaper.active.max(1));
        let most = shared.config.limits.per_flow.0.min(part) as f64 * HOLDABLE;
        let known = self.cache.bytes >= LEAST_HELD;
        let cost = if known { self.cache.cost as f64 / self.cache.bytes as f64 } else { COST };
        (most / cost.max(1.0)) as u64
    }

    fn path_trip(&self) -> Duration {
        self.trip.smoothed() + self.shake.lan_trip.unwrap_or_default()
    }

    /// What waits may carry news of the other direction for which it would wait too long: then a part without
    /// data goes now.
    fn tell_receiver(&mut self, cx: &mut Cx<'_>, shared: &mut Shared<'_>) {
        let Some(news) = self.sender.news else { return };
        let fresh = self.sender.told != Some(news.ack.0) || !news.sack.is_empty();
        if !fresh || self.choose(cx.now, shared).is_some() {
            return;
        }
        let Some(last) = self.cache.queue.back().filter(|p| !p.whole()) else { return };
        let mut ack = cx.duplicate(&last.packet);
        ack.body.len = 0;
        ack.segment = 0;
        ack.tcp.flags.0 &= !(Flags::FIN.0 | Flags::PSH.0 | Flags::CWR.0);
        if let Some(lan) = self.shake.lan() {
            let start = self.cache.top(self.una);
            ack.tcp.seq = lan.isn.at(start);
            self.pure(cx, start, ack, shared);
        }
    }

    /// Timestamps do not go back.
    pub(super) fn stamp(&mut self, packet: &mut Packet) {
        let Some(stamp) = &mut packet.tcp.timestamps else { return };
        if let Some(latest) = self.sender.stamp.filter(|latest| later(*latest, stamp.value)) {
            stamp.value = latest;
        }
        self.sender.stamp = Some(stamp.value);
    }

    /// What the sender has said since the packet came.
    pub(super) fn refresh(&mut self, packet: &mut Packet) {
        let Some(news) = self.sender.news.filter(|_| packet.tcp.flags.has(Flags::ACK)) else { return };
        self.sender.told = Some(news.ack.0);
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

    /// Everything that waits leaves at once.
    pub(super) fn flush(&mut self, cx: &mut Cx<'_>, shared: &mut Shared<'_>) {
        while let Some(piece) = self.cache.queue.pop_front() {
            let mut packet = piece.packet;
            self.refresh(&mut packet);
            self.pass(cx, LAN, packet, shared);
        }
        if let Some(reset) = self.sender.reset.take() {
            self.pass(cx, LAN, reset.packet, shared);
        }
    }

    pub(super) const fn paced_until(&self) -> Option<Instant> {
        self.sender.wake_at
    }
}
