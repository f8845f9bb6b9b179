//! One accelerated connection, from the SYN to the end.
//!
//! Source: TCP-SuperCharger (SC): a gateway in front of a hop with a large bandwidth-delay product forwards
//! more than the receiver's window allows, since the window will have moved when the data arrives. The paper
//! does not cover losses, windows too large for 16 bits, or ACKs that would make the sender reduce its cwnd;
//! each has a file here:
//!
//! ```text
//! sender (LAN) -> forward.rs: hold -> [cache.rs] -> serve.rs, when shaper.rs grants the hop -> receiver
//!   (satellite)
//! sender <- acks.rs: withhold, remove SACK, delay; window.rs: window <- repair.rs: find losses; receiver.rs:
//!   how much may be forwarded <- receiver
//! ```
//!
//! `model.rs` detects senders that gain nothing from acceleration, such as those with BBR; they then pass
//! unaccelerated.
//!
//! TCP stays end to end: the sender never sees an ACK beyond the receiver's own. Data in the other direction
//! passes at once; the acknowledgments that it carries are treated like all others.

mod acks;
mod cache;
mod copies;
mod forward;
pub(crate) mod handshake;
mod header;
mod hop_rtt;
mod keep_alive;
mod model;
mod next_send;
pub(crate) mod passing;
pub(crate) mod priority;
mod ranges;
mod reader;
mod receiver;
mod reorder;
mod repair;
mod resume;
pub(crate) mod shaper;
mod window;

use crate::config::{Config, Copies};
use crate::counters::{Counters, PassReason};
use crate::memory::Memory;
use crate::report::{FlowReport, State};
use crate::sides::{LAN, SATELLITE};
use acks::Acks;
use bentpipe_base::{Cx, Flags, Instant, Packet, Pkt, Port, Seq, Size};
use cache::Cache;
use forward::Sender;
use handshake::Handshake;
use hop_rtt::HopRtt;
use model::Model;
use next_send::NextSend;
use receiver::Receiver;
use repair::Recovery;
use shaper::{Shaper, Want};
use window::{AdvertisedWindow, Path};

/// State shared by all flows.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) shaper: Shaper,
    pub(crate) counters: Counters,
    pub(crate) memory: Memory,
}

#[derive(Debug, Default)]
pub(crate) struct Flow {
    state: State,
    pass_reason: Option<PassReason>,
    handshake: Handshake,
    /// The receiver has everything before this.
    una: u64,
    cache: Cache,
    hop_rtt: HopRtt,
    receiver: Receiver,
    recovery: Recovery,
    sender: Sender,
    acks: Acks,
    advertised: AdvertisedWindow,
    /// Detects senders that gain nothing from acceleration; none once that is decided.
    model: Option<Box<Model>>,
    /// Ends of the streams after a FIN: the sender's as a position, the receiver's as a sequence number.
    fins: (Option<u64>, Option<u32>),
    fins_acked: (bool, bool),
    /// A SYN with the same ports that does not belong to this connection: whether it came from the LAN, and
    /// the ACK number that its SYN/ACK must have.
    stray: Option<(bool, Seq)>,
    /// Keep-alives that the receiver has not answered.
    kept_alive: u8,
    /// Counted among the flows that use a good part of their share.
    active: bool,
    held_peak: u64,
    /// This flow's part of `memory`: payload and total cost.
    held: u64,
    cost: u64,
    /// After a restart, until packets from both sides were seen.
    resume_point: Option<resume::ResumePoint>,
}

impl Flow {
    /// Returns a flow with an empty handshake, whose SYN [`Flow::packet`] must process next, or with a
    /// restored one.
    pub(crate) fn new(shake: Handshake, config: &Config) -> Self {
        let (trip, receiver) = (HopRtt::new(config), Receiver::new(config));
        Self { handshake: shake, una: 1, hop_rtt: trip, receiver, ..Self::default() }
    }

    /// Processes a packet of this connection: it is sent, held or dropped.
    pub(crate) fn packet(&mut self, cx: &mut Cx<'_>, from: Port, mut packet: Pkt, shared: &mut Shared) {
        if self.resume_point.is_some() {
            self.packet_after_resume(cx, from, packet, shared);
        } else if packet.tcp.flags.has(Flags::SYN) {
            self.syn(cx, from, &mut packet, shared);
            self.pass(cx, from, packet, shared);
        } else if self.handshake.lan().is_none() || self.handshake.satellite().is_none() {
            self.note_reset(&packet);
            self.pass(cx, from, packet, shared);
        } else {
            self.complete(cx.now, from);
            if from == LAN {
                self.take_data(cx, packet, shared);
            } else {
                self.take_ack(cx, packet, shared);
            }
            self.pass_if_found(cx, shared);
        }
        self.account(shared);
    }

    fn syn(&mut self, cx: &mut Cx<'_>, from: Port, packet: &mut Packet, shared: &mut Shared) {
        let known = if from == LAN { self.handshake.lan() } else { self.handshake.satellite() };
        if known.is_some_and(|k| k.isn != packet.tcp.seq) && self.state != State::Opening {
            // another connection with the same ports, or a stray: it passes unchanged. Only a SYN/ACK that
            // answers an earlier SYN proves another connection, since anybody could forge one of the two
            let answers =
                packet.tcp.flags.has(Flags::ACK) && self.stray == Some((from != LAN, packet.tcp.ack));
            if answers || self.state == State::Closed {
                self.give_up(cx, PassReason::Reused, shared);
            } else if !packet.tcp.flags.has(Flags::ACK) {
                self.stray = Some((from == LAN, packet.tcp.seq.at(1)));
            }
            return;
        }
        if self.pass_reason.is_some() {
            return;
        }
        if let Err(why) = self.handshake.syn(cx.now, from, packet, (shared.config.rate, shared.config.rtt)) {
            self.pass_reason = Some(why);
        }
        if from != LAN && self.state == State::Opening {
            // the window in a SYN is never scaled
            self.receiver.edge = 1 + u64::from(packet.tcp.window);
            self.advertised.edge = self.receiver.edge;
        }
        if let (State::Opening, Some(lan), Some(_)) =
            (self.state, self.handshake.lan(), self.handshake.satellite())
        {
            self.state = State::Established;
            self.una = 1;
            self.sender.top = u64::from(lan.len);
            self.advertised.ack = 1;
            self.start_detection(u64::from(packet.tcp.window));
            if let Some(trip) = self.handshake.hop_rtt {
                self.hop_rtt.sample(cx.now, trip);
            }
        }
    }

    /// The opener's answer to the SYN/ACK gives the other RTT sample.
    fn complete(&mut self, now: Instant, from: Port) {
        let known = self.handshake.hop_rtt;
        self.handshake.acknowledged(now, from);
        if let (None, Some(trip)) = (known, self.handshake.hop_rtt) {
            self.hop_rtt.sample(now, trip);
        }
    }

    /// Sends a packet on: at once, or in its turn if the connection is not accelerated any more.
    fn pass(&mut self, cx: &mut Cx<'_>, from: Port, mut packet: Pkt, shared: &mut Shared) {
        if from == LAN {
            self.stamp(&mut packet);
            if self.pass_reason.is_none() {
                shared.shaper.charge(cx.now, shared.shaper.cost(&packet));
                cx.send(SATELLITE, packet);
            } else if let Some(packet) = shared.shaper.pass(cx.now, packet) {
                cx.send(SATELLITE, packet);
            }
        } else {
            cx.send(LAN, packet);
        }
    }

    fn note_reset(&mut self, packet: &Packet) {
        if packet.tcp.flags.has(Flags::RST) {
            self.state = State::Closed;
        }
    }

    /// Drops all state: nothing is known of this connection any more.
    fn give_up(&mut self, cx: &mut Cx<'_>, why: PassReason, shared: &mut Shared) {
        self.cache.clear(cx);
        self.acks.clear(cx);
        self.sender.clear(cx);
        self.handshake = Handshake::default();
        self.pass_reason = Some(why);
        self.account(shared);
    }

    /// The flow's path and its share of the rate.
    fn path(&self, now: Instant, shared: &Shared) -> Path {
        let share = f64::from(shared.shaper.active.max(1));
        let rate = shared.config.rate.map(|rate| {
            let bytes = rate.bps() as f64 / 8.0 * shared.config.share.clamp(0.01, 1.0) / share;
            bytes * self.sender.payload_share(shared.config.framing)
        });
        let mut path =
            Path { rate, rtt: self.path_rtt(), lossy: shared.shaper.losses.recent(now), judged: false };
        path.judged = self.model.is_some() && path.bdp().is_some_and(|p| self.may_hold(p));
        path
    }

    /// Returns the number of copies of each packet, and whether new data has precedence over copies. Several
    /// are sent only if the receiver discards data that arrives beyond a hole, or if the hop has spare
    /// capacity; in the latter case new data goes first.
    fn copies(&self, path: &Path, shared: &Shared) -> (u8, bool) {
        let Some(product) = path.bdp() else { return (1, false) };
        let packets = product as f64 / self.handshake.mss() as f64;
        let losses = &shared.shaper.losses;
        let can_grow = self.may_hold(product);
        let is_small = can_grow && self.cache.bytes * 3 < product;
        let pays = losses.many(packets) || (self.una < product && losses.pay_at_start(packets));
        // on a busy hop the other flows would pay for the copies
        if is_small && pays && shared.shaper.is_idle() && shared.config.copies == Copies::Auto {
            return (2, true);
        }
        let under_way = self.cache.forwarded(self.una).saturating_sub(self.una);
        // the receiver discards data that arrives beyond a hole: its window is smaller than the data in
        // flight, or will be when the hop is full
        if self.receiver.largest < if can_grow { under_way.min(product) } else { product } {
            // capacity that a slow reader leaves unused is for its copies, unless others use the hop
            let read = self.receiver.rate().filter(|_| shared.shaper.users() == 1).zip(path.rate);
            let share = read.map_or(1.0, |(read, rate)| (read / rate).min(1.0));
            // flows that hold little data, and so are not `active`, use a part of the hop as well
            let active = shared.shaper.active.max(1);
            let packets = packets * f64::from(active) / f64::from(shared.shaper.users().max(active));
            (losses.copies(shared.config.copies, self.recovery.copies.max(1), packets, share), false)
        } else {
            (1, false)
        }
    }

    fn account(&mut self, shared: &mut Shared) {
        shared.memory.used = (shared.memory.used + self.cache.cost).saturating_sub(self.cost);
        shared.memory.payload = (shared.memory.payload + self.cache.bytes).saturating_sub(self.held);
        (self.held, self.cost) = (self.cache.bytes, self.cache.cost);
        self.held_peak = self.held_peak.max(self.held);
        // a flow counts if it uses a good part of its share: many small flows must not shrink the window of a
        // large one
        let fair = shared.config.rate.map_or(u64::MAX, |r| {
            r.bytes_in(self.hop_rtt.smoothed()).0 / u64::from(shared.shaper.active.max(1))
        });
        let counts = self.held > (fair / if self.active { 8 } else { 4 }).min(65_536);
        if counts != self.active {
            self.active = counts;
            let active = shared.shaper.active;
            shared.shaper.active = if counts { active + 1 } else { active.saturating_sub(1) };
        }
    }

    const fn is_accelerated(&self) -> bool {
        self.pass_reason.is_none()
    }

    /// Handles expired deadlines; may be called early.
    pub(crate) fn timer(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        if self.is_accelerated() && self.state != State::Opening {
            self.timeouts(cx, shared);
            self.release_segment(cx, shared);
            self.reset_at_last(cx, shared);
        }
        self.account(shared);
    }

    /// When [`Flow::timer`] must be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if !self.is_accelerated() || self.state == State::Opening {
            return None;
        }
        let own = [self.recovery.deadline(), self.acks.drip_at, self.sender.wake_at, self.reset_deadline()];
        own.into_iter().flatten().min()
    }

    /// What the flow would send if the hop were free now.
    pub(crate) fn wants(&mut self, now: Instant, shared: &Shared) -> Option<Want> {
        match self.choose(now, shared)? {
            NextSend::Hole(_) | NextSend::Probe => Some(Want::Repair),
            _ => Some(Want::Data),
        }
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// Stops accelerating: sends all that is held back. From then on everything passes, translated.
    pub(crate) fn release(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        self.stop(cx, PassReason::Released, shared);
    }

    fn stop(&mut self, cx: &mut Cx<'_>, why: PassReason, shared: &mut Shared) {
        if !self.is_accelerated() {
            return;
        }
        self.flush(cx, shared);
        self.release_acks(cx, shared);
        self.cache.clear(cx);
        self.acks.clear(cx);
        self.recovery = Recovery::default();
        self.model = None;
        self.pass_reason = Some(why);
        self.account(shared);
    }

    /// Frees everything held, when the flow leaves the table.
    pub(crate) fn drop_all(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        self.cache.clear(cx);
        self.acks.clear(cx);
        self.sender.clear(cx);
        self.account(shared);
    }

    /// Returns the flow's report; `share` is the loss rate of packets that are sent once.
    pub(crate) fn report(&self, share: f64) -> FlowReport {
        FlowReport {
            delivered: Size(self.una.saturating_sub(1)),
            hop_rtt: self.hop_rtt.known().unwrap_or_default(),
            read_rate: self.receiver.rate(),
            advertised_to_sender: Size(self.advertised.edge.saturating_sub(self.advertised.ack)),
            advertised_by_receiver: Size(self.receiver.window(self.una)),
            held: Size(self.held),
            held_peak: Size(self.held_peak),
            losses: self.recovery.losses.estimate(share),
            timeouts: self.recovery.timeouts,
            duplicates_dropped: self.sender.duplicates_dropped,
            ..FlowReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_does_not_grow_unseen() {
        assert!(size_of::<Flow>() <= 992, "{}", size_of::<Flow>());
    }
}
