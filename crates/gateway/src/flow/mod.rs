//! One accelerated connection: what its hosts send, from the SYN to the end.
//!
//! Source: TCP-SuperCharger (SC): a gateway before a hop with a large bandwidth-delay product forwards more than the receiver's window allows, since the window
//! will have moved when the data arrives. The paper does not say what becomes of losses, of windows that 16 bits cannot tell, of ACKs that would make the
//! sender halve; each has a file here:
//!
//! ```text
//! sender (LAN) -> forward.rs: hold -> [cache.rs] -> serve.rs, when shaper.rs grants the hop -> receiver (satellite)
//! sender <- acks.rs: withhold, strip, drip; window.rs: what is shown <- repair.rs: find losses; receiver.rs: what may be forwarded <- receiver
//! ```
//!
//! `model.rs` tells senders that cannot gain at all: they are passed.
//!
//! TCP's promise is kept: an ACK the sender sees is never beyond what the receiver acknowledged. Data of the other direction passes at once; the
//! acknowledgments it carries are treated as any.

mod acks;
mod cache;
mod copies;
mod forward;
mod handshake;
mod header;
mod model;
pub(crate) mod passing;
pub(crate) mod priority;
mod ranges;
mod reader;
mod receiver;
mod reorder;
mod repair;
mod rest;
mod serve;
pub(crate) mod shaper;
mod trip;
mod window;

use crate::config::{Config, Copies};
use crate::counters::{Counters, Why};
use crate::memory::Memory;
use crate::report::{FlowReport, State};
use crate::sides::{LAN, SATELLITE};
use acks::Acks;
use bentpipe_base::{Cx, Duration, Flags, Instant, Packet, Pkt, Port, Seq, Size};
use cache::Cache;
use forward::Sender;
use handshake::Handshake;
use model::Model;
use receiver::Receiver;
use repair::Recovery;
use serve::Choice;
use shaper::{Shaper, Want};
use trip::Trip;
use window::{Path, Shown};

/// What flows have in common.
pub(crate) struct Shared<'a> {
    pub(crate) config: &'a Config,
    pub(crate) shaper: &'a mut Shaper,
    pub(crate) counters: &'a mut Counters,
    pub(crate) memory: &'a mut Memory,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Flow {
    state: State,
    why: Option<Why>,
    shake: Handshake,
    /// Everything before this has reached the receiver.
    una: u64,
    cache: Cache,
    trip: Trip,
    receiver: Receiver,
    recovery: Recovery,
    sender: Sender,
    acks: Acks,
    shown: Shown,
    /// What tells whether the sender can gain, while that is not known.
    model: Option<Box<Model>>,
    /// Ends of the two streams, once there was a FIN: of the sender's as a position, of the receiver's as its sequence number.
    fins: (Option<u64>, Option<u32>),
    fins_acked: (bool, bool),
    /// A SYN of this connection's ports that is not its own: came from the LAN, and what answers it acknowledges.
    stray: Option<(bool, Seq)>,
    /// Counted among the flows that use their share.
    active: bool,
    held_peak: u64,
    /// The share of `memory` that is ours: payload, and what it costs.
    held: u64,
    cost: u64,
    /// After a restart, until both sides have spoken.
    anchor: Option<rest::Anchor>,
}

impl Flow {
    /// From a SYN that came in at `from`; [`Flow::packet`] then takes it.
    pub(crate) fn begin(_: &mut Cx<'_>, _: Port, syn: &Packet, shared: &mut Shared<'_>) -> Result<Self, Why> {
        if !syn.tcp.flags.has(Flags::SYN) {
            return Err(Why::MidStream);
        }
        Handshake::judge(syn)?;
        Ok(Self::new(Handshake::default(), shared.config))
    }

    fn new(shake: Handshake, config: &Config) -> Self {
        Self {
            state: State::Opening,
            why: None,
            shake,
            una: 1,
            cache: Cache::default(),
            trip: Trip::assuming(config.trip),
            receiver: Receiver::new(config.mode),
            recovery: Recovery::default(),
            sender: Sender::default(),
            acks: Acks::default(),
            shown: Shown::default(),
            model: None,
            fins: (None, None),
            fins_acked: (false, false),
            stray: None,
            active: false,
            held_peak: 0,
            held: 0,
            cost: 0,
            anchor: None,
        }
    }

    /// A packet of this connection: it is sent, held or given back.
    pub(crate) fn packet(&mut self, cx: &mut Cx<'_>, from: Port, mut packet: Pkt, shared: &mut Shared<'_>) {
        if self.anchor.is_some() {
            self.anchored(cx, from, packet, shared);
        } else if packet.tcp.flags.has(Flags::SYN) {
            self.syn(cx, from, &mut packet, shared);
            self.pass(cx, from, packet, shared);
        } else if self.shake.lan().is_none() || self.shake.satellite().is_none() {
            self.ends(&packet);
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

    fn syn(&mut self, cx: &mut Cx<'_>, from: Port, packet: &mut Packet, shared: &mut Shared<'_>) {
        let known = if from == LAN { self.shake.lan() } else { self.shake.satellite() };
        if known.is_some_and(|k| k.isn != packet.tcp.seq) && self.state != State::Opening {
            // another connection between the same ports, or a stray: it goes its way untouched. Only an answer to the SYN that went before it proves
            // another connection; anybody could send one of the two
            let answers =
                packet.tcp.flags.has(Flags::ACK) && self.stray == Some((from != LAN, packet.tcp.ack));
            if answers || self.state == State::Closed {
                self.give_up(cx, Why::Reused, shared);
            } else if !packet.tcp.flags.has(Flags::ACK) {
                self.stray = Some((from == LAN, packet.tcp.seq.at(1)));
            }
            return;
        }
        if self.why.is_some() {
            return;
        }
        if let Err(why) = self.shake.syn(cx.now, from, packet, (shared.config.rate, shared.config.trip)) {
            self.why = Some(why);
        }
        if from != LAN && self.state == State::Opening {
            // a window in a SYN is never scaled, and both ends know it
            self.receiver.edge = 1 + u64::from(packet.tcp.window);
            self.shown.edge = self.receiver.edge;
        }
        if let (State::Opening, Some(lan), Some(_)) = (self.state, self.shake.lan(), self.shake.satellite()) {
            self.state = State::Established;
            self.una = 1;
            self.sender.top = u64::from(lan.len);
            self.shown.ack = 1;
            self.judge(u64::from(packet.tcp.window));
            if let Some(trip) = self.shake.hop_trip {
                self.trip.sample(cx.now, trip);
            }
        }
    }

    /// The opener's answer to the SYN/ACK tells the other round trip.
    fn complete(&mut self, now: Instant, from: Port) {
        let known = self.shake.hop_trip;
        self.shake.acknowledged(now, from);
        if let (None, Some(trip)) = (known, self.shake.hop_trip) {
            self.trip.sample(now, trip);
        }
    }

    /// A packet goes on as it is, but for windows where their scale differs: at once, or of a connection that is not accelerated any more in its turn.
    fn pass(&mut self, cx: &mut Cx<'_>, from: Port, mut packet: Pkt, shared: &mut Shared<'_>) {
        if from == LAN {
            self.stamp(&mut packet);
            if self.why.is_none() {
                shared.shaper.charge(cx.now, shared.shaper.cost(&packet));
                cx.send(SATELLITE, packet);
            } else if let Some(packet) = shared.shaper.pass(cx.now, packet) {
                cx.send(SATELLITE, packet);
            }
        } else {
            cx.send(LAN, packet);
        }
    }

    /// A reset ends a connection that is opening.
    fn ends(&mut self, packet: &Packet) {
        if packet.tcp.flags.has(Flags::RST) {
            self.state = State::Closed;
        }
    }

    /// Nothing is known of this connection any more.
    fn give_up(&mut self, cx: &mut Cx<'_>, why: Why, shared: &mut Shared<'_>) {
        self.cache.clear(cx);
        self.acks.clear(cx);
        self.sender.clear(cx);
        self.shake = Handshake::default();
        self.why = Some(why);
        self.account(shared);
    }

    /// The flow's path and its share of it.
    fn path(&self, now: Instant, shared: &Shared<'_>) -> Path {
        let lan = self.shake.lan_trip.unwrap_or(Duration::ZERO);
        let share = f64::from(shared.shaper.active.max(1));
        let rate = shared.config.rate.map(|rate| {
            let bytes = rate.bps() as f64 / 8.0 * shared.config.share.clamp(0.01, 1.0) / share;
            bytes * self.sender.payload_share(shared.config.framing)
        });
        let mut path = Path {
            rate,
            trip: self.trip.smoothed() + lan,
            lossy: shared.shaper.losses.recent(now),
            judged: false,
        };
        path.judged = self.model.is_some() && path.product().is_some_and(|p| self.may_hold(p));
        path
    }

    /// Copies of each packet: several only for a receiver that discards what lies beyond a hole, or where the hop has room to spare; then new data goes before them.
    fn copies(&self, path: &Path, shared: &Shared<'_>) -> (u8, bool) {
        let Some(product) = path.product() else { return (1, false) };
        let packets = product as f64 / self.shake.mss() as f64;
        let losses = &shared.shaper.losses;
        let can_grow = self.may_hold(product);
        let is_small = can_grow && self.cache.bytes * 3 < product;
        let pays = losses.many(packets) || (self.una < product && losses.pay_at_start(packets));
        // where others use the hop they would pay for the copies
        if is_small && pays && shared.shaper.is_idle() && shared.config.copies == Copies::Auto {
            return (2, true);
        }
        let under_way = self.cache.forwarded(self.una).saturating_sub(self.una);
        // it discards what lies beyond a hole: its window is smaller than what is under way, or will be when the hop is full
        if self.receiver.largest < if can_grow { under_way.min(product) } else { product } {
            // what a slow reader leaves of the hop is for its copies, unless others use it
            let read = self.receiver.rate().filter(|_| shared.shaper.users() == 1).zip(path.rate);
            let share = read.map_or(1.0, |(read, rate)| (read / rate).min(1.0));
            // flows that hold little have their part of the hop as well
            let active = shared.shaper.active.max(1);
            let packets = packets * f64::from(active) / f64::from(shared.shaper.users().max(active));
            (losses.copies(shared.config.copies, self.recovery.copies.max(1), packets, share), false)
        } else {
            (1, false)
        }
    }

    /// Keeps the common accounts true.
    fn account(&mut self, shared: &mut Shared<'_>) {
        shared.memory.used = (shared.memory.used + self.cache.cost).saturating_sub(self.cost);
        shared.memory.payload = (shared.memory.payload + self.cache.bytes).saturating_sub(self.held);
        (self.held, self.cost) = (self.cache.bytes, self.cache.cost);
        self.held_peak = self.held_peak.max(self.held);
        // a flow counts when it uses a good part of its share: many small ones must not shrink the window of a large one
        let fair = shared.config.rate.map_or(u64::MAX, |r| {
            r.bytes_in(self.trip.smoothed()).0 / u64::from(shared.shaper.active.max(1))
        });
        let counts = self.held > (fair / if self.active { 8 } else { 4 }).min(65_536);
        if counts != self.active {
            self.active = counts;
            let active = shared.shaper.active;
            shared.shaper.active = if counts { active + 1 } else { active.saturating_sub(1) };
        }
    }

    /// Accelerated, and able to be.
    const fn works(&self) -> bool {
        self.why.is_none()
    }

    /// Its deadline has come, or an early call.
    pub(crate) fn timer(&mut self, cx: &mut Cx<'_>, shared: &mut Shared<'_>) {
        if self.works() && self.state != State::Opening {
            self.timeouts(cx, shared);
            self.drip(cx, shared);
            self.reset_at_last(cx, shared);
        }
        self.account(shared);
    }

    /// When [`Flow::timer`] must be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if !self.works() || self.state == State::Opening {
            return None;
        }
        let own = [self.recovery.deadline(), self.acks.drip_at, self.paced_until(), self.reset_deadline()];
        own.into_iter().flatten().min()
    }

    /// What it would send if the hop were free now.
    pub(crate) fn wants(&mut self, now: Instant, shared: &Shared<'_>) -> Option<Want> {
        match self.choose(now, shared)? {
            Choice::Hole(_) | Choice::Probe => Some(Want::Repair),
            _ => Some(Want::Data),
        }
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// Stops accelerating: what waits leaves now, what is held back is told, and from now on everything passes, its windows translated.
    pub(crate) fn release(&mut self, cx: &mut Cx<'_>, shared: &mut Shared<'_>) {
        self.stop(cx, Why::Released, shared);
    }

    fn stop(&mut self, cx: &mut Cx<'_>, why: Why, shared: &mut Shared<'_>) {
        if !self.works() {
            return;
        }
        self.flush(cx, shared);
        self.tell_all(cx, shared);
        self.cache.clear(cx);
        self.acks.clear(cx);
        self.recovery = Recovery::default();
        self.model = None;
        self.why = Some(why);
        self.account(shared);
    }

    /// The flow leaves the table: everything held is given back.
    pub(crate) fn drop_all(&mut self, cx: &mut Cx<'_>, shared: &mut Shared<'_>) {
        self.cache.clear(cx);
        self.acks.clear(cx);
        self.sender.clear(cx);
        self.account(shared);
    }

    /// `share` is what the hop loses of what is sent once.
    pub(crate) fn report(&self, share: f64) -> FlowReport {
        FlowReport {
            delivered: Size(self.una.saturating_sub(1)),
            hop_trip: self.trip.smoothed(),
            reader: self.receiver.rate(),
            shown: Size(self.shown.edge.saturating_sub(self.shown.ack)),
            advertised: Size(self.receiver.window(self.una)),
            held: Size(self.held),
            held_peak: Size(self.held_peak),
            losses: self.recovery.losses.estimate(share),
            timeouts: self.recovery.timeouts,
            swallowed: self.sender.swallowed,
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
