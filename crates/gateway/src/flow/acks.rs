//! Which acknowledgments the sender sees.
//!
//! Sources: Snoop (Balakrishnan et al., 1995) withholds duplicate ACKs for losses that are repaired in the
//! middle. What a modern sender would still notice, and how it is handled:
//! - SACK and DSACK blocks (RFC 2018, RFC 2883) are removed from every segment, data segments included,
//!   unless the missing byte never reached the gateway: then the sender must repair the loss, and duplicate
//!   ACKs and blocks pass.
//! - Tail loss probes and timeouts (RFC 8985, section 7; RFC 6298) fire after silence. ACKs lag by a few
//!   segments, the smaller of 14 and 1/128 of the flight, and one segment is released per 100 ms while
//!   nothing advances; all are released when nothing is outstanding.
//! - A dropped duplicate never reached the receiver, but it did reach the gateway: the first ACK at or past
//!   its end carries a DSACK for it. So the sender learns that the retransmission was needless and undoes its
//!   reaction (RFC 8985, section 7.4.2; RFC 3708).
//! - After a dropped duplicate of the head, the next ACK covers at least three segments: then F-RTO (RFC
//!   5682) detects a spurious timeout.
//! - A duplicate of data that has arrived already is answered with the ACK that the sender has missed.
//!
//! ACKs are the receiver's own, with changed fields; one is kept as a template for later ones.

use super::handshake::option_space;
use super::header::{later, set_sack};
use super::{Flow, Shared};
use crate::report::State;
use crate::sides::LAN;
use bentpipe_base::{Cx, Duration, Flags, Instant, Packet, Pkt, SackList, Seq};

/// Progress that is not acknowledged to the sender yet: at most this many segments, and this share of the
/// flight (a divisor).
const HELD_SEGMENTS: u64 = 14;
const HELD_SHARE: u64 = 128;
/// Interval between releases while nothing advances.
const DRIP: Duration = Duration::from_millis(100);
/// Factor of that interval while the advertised edge is too far ahead; then all progress is released at once.
const THIN: u64 = 4;
/// Segments that the first ACK after a timeout covers.
const FRTO_SEGMENTS: u64 = 3;
/// A SACK option with one block and padding, in bytes.
const BLOCK: u8 = 12;

/// Progress that the sender does not know yet.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    /// The last pure ACK, kept to build later ones.
    template: Option<Pkt>,
    /// When the next segment of progress is released.
    pub(super) drip_at: Option<Instant>,
    /// A dropped duplicate, to be reported by DSACK.
    dsack: Option<(u64, u64)>,
    /// Progress below this position is not acknowledged to the sender.
    until: u64,
}

impl Acks {
    pub(super) fn clear(&mut self, cx: &mut Cx<'_>) {
        if let Some(packet) = self.template.take() {
            cx.recycle(packet);
        }
        self.drip_at = None;
    }
}

impl Flow {
    /// Processes a packet of the receiver after the handshake.
    pub(super) fn take_ack(&mut self, cx: &mut Cx<'_>, packet: Pkt, shared: &mut Shared) {
        let flags = packet.tcp.flags;
        if flags.has(Flags::RST) {
            self.state = State::Closed;
            self.drop_all(cx, shared);
            cx.send(LAN, packet);
            return;
        }
        if flags.has(Flags::FIN) {
            self.fins.1 = Some(packet.tcp.seq.0.wrapping_add(packet.seq_len() as u32));
            self.state = if self.state == State::Closed { State::Closed } else { State::Closing };
        }
        let una = self.handshake.lan().and_then(|lan| lan.isn.offset_near(packet.tcp.ack, self.una));
        let Some(una) = una.filter(|una| flags.has(Flags::ACK) && (1..=self.sender.top).contains(una)) else {
            // it acknowledges nothing, not even the SYN, or data that was never sent: the sender decides what
            // to do
            cx.send(LAN, packet);
            return;
        };
        let window = u64::from(packet.tcp.window) << self.handshake.receiver_shift();
        if self.is_accelerated() {
            let sacks = self.blocks(&packet);
            self.process_ack(cx, una, window, &sacks, shared);
        } else {
            self.una = self.una.max(una);
            self.receiver.edge = self.receiver.edge.max(una + window);
        }
        if self.fins.0.is_some_and(|fin| self.una >= fin) {
            self.fins_acked.0 = true;
            self.settle_end();
        }
        self.answer(cx, una, packet, shared);
    }

    /// Returns the SACK blocks as positions, without those for data that has arrived in order.
    fn blocks(&self, packet: &Packet) -> Vec<(u64, u64)> {
        let Some(lan) = self.handshake.lan().filter(|_| !packet.tcp.sack.is_empty()) else {
            return Vec::new();
        };
        let place = |seq| lan.isn.offset_near(seq, self.una);
        let blocks = packet.tcp.sack.as_slice().iter();
        let blocks = blocks.filter_map(|(left, right)| Some((place(*left)?, place(*right)?)));
        blocks.filter(|(left, right)| left < right && *left > self.una && *right <= self.sender.top).collect()
    }

    fn answer(&mut self, cx: &mut Cx<'_>, una: u64, packet: Pkt, shared: &mut Shared) {
        let now = cx.now;
        self.keep_template(cx, &packet);
        let before = (self.advertised.ack, self.advertised.edge);
        let pure = packet.seq_len() == 0;
        let theirs = !self.is_accelerated() || self.cache.gap_at(self.una) || self.una >= self.sender.top;
        let wished = self.wished_edge(now, shared);
        let ack = if self.is_accelerated() { self.thinned(self.acknowledgeable(), wished) } else { self.una };
        let news = ack > before.0 || wished > before.1 + (before.1 - before.0) / 4;
        if pure && !news && !(theirs && una >= self.advertised.ack) {
            shared.counters.acks_withheld += 1;
            cx.recycle(packet);
        } else {
            self.send_ack(cx, ack, wished, packet, theirs);
        }
        if self.una >= self.sender.top {
            self.acks.clear(cx);
        } else if self.advertised.ack < self.una {
            if self.advertised.ack > before.0 || self.acks.drip_at.is_none() {
                self.acks.drip_at = Some(now + self.drip_interval(wished));
            }
        } else {
            self.acks.drip_at = None;
        }
    }

    fn wished_edge(&mut self, now: Instant, shared: &Shared) -> u64 {
        if !self.is_accelerated() {
            return self.receiver.edge;
        }
        let path = self.path(now, shared);
        let shortest = self.hop_rtt.minimum() + self.handshake.lan_rtt.unwrap_or_default();
        self.advertised.delivered(now, self.una, shortest.max(Duration::from_millis(1)));
        match shared.config.mode {
            crate::config::Mode::Open => {
                self.una + self.advertised.window(&path, self.receiver.largest).min(self.holdable(shared))
            }
            crate::config::Mode::Strict => {
                let room = self.advertised.room(&path);
                let most = self.una + self.advertised.window(&path, 0).min(self.holdable(shared));
                self.receiver.limit(now, self.hop_rtt.smoothed(), room).min(most)
            }
        }
    }

    /// The position that may be acknowledged to the sender.
    fn acknowledgeable(&self) -> u64 {
        let outstanding = self.sender.top - self.una;
        // the sender must see exactly where data was lost in front of the gateway
        if outstanding == 0 || self.cache.gap_at(self.una) {
            return self.una;
        }
        if self.una < self.acks.until.min(self.sender.top) {
            return self.advertised.ack;
        }
        let mss = self.handshake.mss();
        let held = (outstanding / mss / HELD_SHARE).min(HELD_SEGMENTS) * mss;
        self.una.saturating_sub(held).max(self.advertised.ack).max(self.acks.until.min(self.una))
    }

    /// True if the advertised edge is too far ahead of `wished`, so that fewer ACKs must be sent. A window
    /// field is rounded up to the granularity of the shift, since the edge must not move left. So each ACK
    /// that covers less than this granularity moves the edge forward, even if it should stay.
    fn runs_ahead(&self, wished: u64) -> bool {
        let grain = 1 << self.handshake.advertised_shift();
        grain * 2 > self.handshake.mss() && self.advertised.edge > wished + 4 * grain
    }

    /// While the edge runs ahead, acknowledges at least twice the window granularity at a time.
    fn thinned(&self, ack: u64, wished: u64) -> u64 {
        let few = ack < self.advertised.ack + (2 << self.handshake.advertised_shift())
            && self.una < self.sender.top;
        if few && self.runs_ahead(wished) && !self.cache.gap_at(self.una) { self.advertised.ack } else { ack }
    }

    fn drip_interval(&self, wished: u64) -> Duration {
        if self.runs_ahead(wished) { DRIP * THIN } else { DRIP }
    }

    /// Keeps a template for later acknowledgments.
    fn keep_template(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        if !self.is_accelerated() || self.una >= self.sender.top {
            return;
        }
        let template = self.acks.template.get_or_insert_with(|| {
            let mut copy = cx.duplicate(packet);
            copy.tcp.seq = packet.tcp.seq.at(packet.seq_len());
            copy.body.len = 0;
            copy.segment = 0;
            copy.tcp.flags = Flags(packet.tcp.flags.0 & !(Flags::FIN.0 | Flags::PSH.0 | Flags::URG.0));
            set_sack(&mut copy, SackList::default());
            copy
        });
        // an old segment that arrives late must not move the template's sequence number or timestamp back:
        // the sender accepts only segments that start in its window and are not older (PAWS)
        let end = packet.tcp.seq.at(packet.seq_len());
        if later(end.0, template.tcp.seq.0) {
            template.tcp.seq = end;
        }
        if let (Some(old), Some(new)) = (&mut template.tcp.timestamps, packet.tcp.timestamps)
            && later(new.value, old.value)
        {
            *old = new;
        }
    }

    /// Sends a packet of the receiver to the sender with `ack` and an edge at `wished`. SACK blocks stay if
    /// the sender must repair the loss (`theirs`).
    fn send_ack(&mut self, cx: &mut Cx<'_>, ack: u64, wished: u64, mut packet: Pkt, theirs: bool) {
        let field = self.advertised.field(ack, wished, self.handshake.advertised_shift());
        if let Some(lan) = self.handshake.lan() {
            packet.tcp.ack = lan.isn.at(self.advertised.ack);
            packet.tcp.window = field;
            if !theirs && !packet.tcp.sack.is_empty() {
                set_sack(&mut packet, SackList::default());
            }
            self.add_dsack(&mut packet, lan.isn);
        }
        let tells_loss = packet.tcp.flags.has(Flags::ECE) || (theirs && !packet.tcp.sack.is_empty());
        self.observe_ack(cx.now, tells_loss);
        cx.send(LAN, packet);
    }

    fn add_dsack(&mut self, packet: &mut Packet, isn: Seq) {
        let Some((start, end)) = self.acks.dsack.filter(|(_, end)| *end <= self.advertised.ack) else {
            return;
        };
        if packet.tcp.sack.is_empty() && option_space(packet) >= BLOCK && packet.seq_len() == 0 {
            let mut list = SackList::default();
            list.push(isn.at(start), isn.at(end));
            set_sack(packet, list);
            self.acks.dsack = None;
        }
    }

    /// Drops a segment whose data is all held or has arrived.
    pub(super) fn drop_duplicate(
        &mut self,
        cx: &mut Cx<'_>,
        start: u64,
        end: u64,
        packet: Pkt,
        shared: &mut Shared,
    ) {
        if end <= self.una && self.acks.template.is_none() {
            // the sender has missed the ACK, and there is no template to repeat it: the receiver repeats it
            self.pass(cx, LAN, packet, shared);
            return;
        }
        self.sender.duplicates_dropped += 1;
        shared.counters.duplicates_dropped += 1;
        cx.recycle(packet);
        if self.handshake.sack() {
            self.acks.dsack = Some((start, end));
        }
        if end <= self.una {
            self.repeat(cx, self.una, shared);
            return;
        }
        if self.recovery.exhausted() {
            self.head_again();
        }
        if start <= self.advertised.ack {
            self.acks.until = self.advertised.ack + FRTO_SEGMENTS * self.handshake.mss();
        }
    }

    /// Sends `ack` to the sender once more, if there is a template.
    fn repeat(&mut self, cx: &mut Cx<'_>, ack: u64, shared: &mut Shared) {
        let Some(template) = &self.acks.template else { return };
        let mut packet = cx.duplicate(template);
        if let Some(expected) = self.sender.expects().filter(|seq| later(seq.0, packet.tcp.seq.0)) {
            packet.tcp.seq = expected;
        }
        let wished = self.wished_edge(cx.now, shared);
        self.send_ack(cx, ack, wished, packet, false);
    }

    /// Releases a segment of progress when its time has come.
    pub(super) fn release_segment(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        if self.acks.drip_at.is_none_or(|at| at > cx.now) {
            return;
        }
        if self.cache.gap_at(self.una) {
            self.repeat(cx, self.una, shared);
        } else if self.una >= self.acks.until.min(self.sender.top) {
            let next = (self.advertised.ack + self.handshake.mss()).max(self.acks.until).min(self.una);
            let wished = self.wished_edge(cx.now, shared);
            let next = if self.runs_ahead(wished) { self.una } else { next };
            self.repeat(cx, next, shared);
        }
        let wished = self.wished_edge(cx.now, shared);
        self.acks.drip_at = (self.advertised.ack < self.una).then_some(cx.now + self.drip_interval(wished));
    }

    pub(super) fn release_acks(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        if self.advertised.ack < self.una {
            self.repeat(cx, self.una, shared);
        }
    }
}
