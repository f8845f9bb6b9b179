//! The flow router.
//!
//! Sources: TIA-1039 (2006); L. G. Roberts' explicit-rate TCP with in-band QoS signalling.
//! It stands before one direction of a link, of which it gives out C u (rate times utilisation):
//!   a request gets AR := min(AR, share), and GR by admission; M := 1 if anything changed (`requests.rs`)
//!   share = min(limit, level of its class), where the levels divide what reservations leave (`classes.rs`)
//!   the response says what was agreed, perhaps less than offered (`answers.rs`)
//!   when the share falls below the grant, the flow's next data packet says so (`tell.rs`)
//!   what exceeds GR + AR for longer than the burst time is dropped (`police.rs`)
//! The other encodings have less: advice that nobody enforces (`scone_tcp.rs`), and a rate to begin with
//! (`quick_start.rs`); their flows are flows without signalling in all else.
//! A flow without signalling is a member from its first payload on, after some seconds with a limit by what
//! it uses (`plain_use.rs`); a flow that only acknowledges is none. AR never rises here: a flow gets more
//! when it asks. A flow leaves with its FIN or an RST, by CD 7, or after 10 s without data. Readings where
//! the source is silent: a SYN/ACK without a response ends the request that it would answer; data with the
//! code point of agreed rates, but without state, gets CD 4, every 200 ms and at most eight times, because
//! an end that only answers has nothing to ask; data with the default code point shows that the sender uses
//! no rate. What this code does not understand passes unchanged: other versions and protocols, signed
//! segments, TCP fast open. Without this encoding (`RouterConfig::encodings`) all flows are flows without
//! signalling. SCONE packets get the share as advice (`scone.rs`). A router behind whose link the queue
//! serves by marks (`mark`) marks each packet that it sends, ordinary ones with 0.

mod answers;
pub(crate) mod genuine;
mod members;
mod moves;
mod quick_start;
mod reconfigure;
mod requests;
mod scone;
mod scone_tcp;
mod tell;

pub use reconfigure::Fixed;

use crate::admission::Reservations;
use crate::charges::Charges;
use crate::classes::Classes;
use crate::config::RouterConfig;
use crate::encodings::RouterEncoding;
use crate::flow::{Phase, Timeouts};
use crate::flows::{FlowKey, Flows};
use crate::half_open::HalfOpen;
use crate::plain_use::PlainUse;
use crate::report::{Counts, Usage};
use bentpipe_advice::negotiation::Encoding;
use bentpipe_advice::tia1039::{QOS_FLOW, Structure};
use bentpipe_base::{
    Addr, Cx, Dscp, Duration, Flags, Input, Instant, Node, OtherOptions, Packet, Pkt, Port, Proto, Rate, Slot,
};
use genuine::By;

/// The side of the senders.
pub const SENDERS: Port = Port(0);
/// The side of the managed direction.
pub const MANAGED: Port = Port(1);

/// Interval at which silent flows are looked for.
const TICK: Duration = Duration::from_millis(100);

/// A flow router: one node with the ports [`SENDERS`] and [`MANAGED`].
#[derive(Debug)]
pub struct FlowRouter {
    config: RouterConfig,
    flows: Flows,
    classes: Classes,
    half_open: HalfOpen,
    reservations: Reservations,
    charges: Charges,
    /// What a datagram ahead of the present packet tells its flow.
    notice: Option<Structure>,
    approvals: quick_start::Approvals,
    counts: Counts,
    usage: Usage,
    /// When silent flows are looked for next.
    tick_at: Instant,
    /// The earliest wake-up requested and still pending.
    wake_requested_at: Instant,
}

/// True for a packet whose flow is followed.
fn is_readable(packet: &Packet) -> bool {
    matches!(packet.proto, Proto::Tcp | Proto::Udp) || packet.flow_label().is_some()
}

/// True for a packet that must pass unchanged: a signature covers it, or data follows its SYN.
fn is_untouchable(packet: &Packet) -> bool {
    let options = packet.other_options;
    options.has(OtherOptions::SIGNED) || options.has(OtherOptions::FAST_OPEN) && has(packet, Flags::SYN)
}

/// True for a TCP packet with all these flags.
fn has(packet: &Packet, flags: Flags) -> bool {
    packet.proto == Proto::Tcp && packet.tcp.flags.has(flags)
}

impl FlowRouter {
    /// Returns a router with this configuration. One that [`RouterConfig::check`] refuses does no harm, but
    /// gives no flow a useful rate.
    pub fn new(config: RouterConfig) -> Self {
        let mut router = Self {
            flows: Flows::new(config.flows, Timeouts::of(&config)),
            classes: Classes::new(&config.classes, 0),
            half_open: HalfOpen::new(config.half_open),
            reservations: Reservations::default(),
            charges: Charges::new(config.policy.rules.len()),
            notice: None,
            approvals: quick_start::Approvals::default(),
            counts: Counts::default(),
            usage: Usage::default(),
            tick_at: Instant::ZERO,
            wake_requested_at: Instant::NEVER,
            config,
        };
        router.update_pool();
        router
    }

    /// The current configuration.
    pub const fn config(&self) -> &RouterConfig {
        &self.config
    }

    /// Sets the rate of the direction. All shares follow: each flow that has more than its new share is told
    /// in its next data packet. Reservations that do not fit any more are withdrawn, the lowest priority
    /// first.
    pub fn set_rate(&mut self, cx: &mut Cx<'_>, rate: Rate) {
        self.config.rate = rate;
        self.apply_capacity(cx);
    }

    /// After a change of the capacity.
    fn apply_capacity(&mut self, cx: &mut Cx<'_>) {
        self.tick(cx.now);
        for class in 0..self.config.classes.len() {
            let reservable = self.reservable(class);
            for key in self.reservations.shrink(class, reservable) {
                self.preempt(&key);
            }
        }
        self.update_pool();
        self.request_wake(cx);
    }

    /// True if it keeps no state of any flow: no entry, no member of a class, no reservation.
    pub fn is_empty(&self) -> bool {
        let holds_rates = self.classes.has_members() || self.reservations.total() > 0;
        self.flows.is_empty() && self.half_open.is_empty() && !holds_rates
    }

    /// True if it answers flows in this encoding.
    fn speaks(&self, encoding: impl Into<RouterEncoding>) -> bool {
        self.config.encodings.has(encoding)
    }

    /// A packet from the senders.
    fn outward(&mut self, cx: &mut Cx<'_>, mut packet: Pkt) {
        let is_marked = if is_readable(&packet) { self.follow(cx, &mut packet) } else { Some(false) };
        let Some(is_marked) = is_marked else {
            self.counts.policed += 1;
            return cx.recycle(packet);
        };
        packet.priority = if is_marked { self.mark(cx.now, &packet) } else { 0 };
        self.send_notice(cx, &packet);
        self.usage.add(cx.now, packet.wire_len());
        self.approvals.note(cx.now, packet.wire_len());
        cx.send(MANAGED, packet);
    }

    /// Who is served first in a queue that looks at marks.
    fn mark(&mut self, now: Instant, packet: &Packet) -> u8 {
        self.flows.get_mut(&FlowKey::of(packet)).map_or(0, |flow| flow.mark(now, packet.wire_len()))
    }

    /// Follows a packet from the senders; `None` if it must be dropped, else whether it belongs to its flow.
    fn follow(&mut self, cx: &Cx<'_>, packet: &mut Packet) -> Option<bool> {
        let (key, now) = (FlowKey::of(packet), cx.now);
        let has_payload = packet.body.len > 0;
        let (is_sealed, tells) = (is_untouchable(packet), self.speaks(Encoding::Tia1039));
        if is_sealed && has(packet, Flags::SYN) {
            return Some(false);
        }
        if !self.is_genuine(&key, packet, By::Sender) {
            // it neither uses up the rate of the flow nor has its priority
            if tells && !is_sealed {
                self.lower_only(&key, packet);
            }
            return Some(false);
        }
        if has_payload && !self.is_within_rate(now, &key, packet) {
            return None;
        }
        if is_sealed {
            if has_payload {
                self.note_payload(cx, key, packet);
            }
            self.note_number(cx.now, &key, packet);
            return Some(true);
        }
        if tells {
            self.signals(cx, key, packet);
        }
        if has_payload {
            match self.note_payload(cx, key, packet) {
                Some(Phase::Capable) => self.tell(now, &key, packet),
                Some(Phase::Plain) if tells => self.tell_missed(now, &key, packet),
                _ => {}
            }
        }
        if packet.signal.is_some() {
            self.advise_datagram(cx, &key, packet);
            self.advise(cx, &key, packet);
            self.quick_start(now, key, packet);
        }
        self.note_number(cx.now, &key, packet);
        if has(packet, Flags::FIN) || has(packet, Flags::RST) {
            self.close(now, key);
        }
        Some(true)
    }

    /// Counts a packet with payload for its flow, which is new if it was unknown, and returns its phase then;
    /// `None` if the table has no room.
    fn note_payload(&mut self, cx: &Cx<'_>, key: FlowKey, packet: &Packet) -> Option<Phase> {
        let now = cx.now;
        if self.flows.get(&key).is_none() {
            let class = self.config.policy.allowance(cx.address(packet.src)).class;
            self.add(now, key, Phase::Plain, class);
        }
        let flow = self.flows.get_mut(&key)?;
        flow.last = now;
        flow.has_sent |= flow.phase != Phase::Closed;
        if flow.phase == Phase::Plain {
            flow.plain_use.get_or_insert(PlainUse::new(now)).add(now, packet.wire_len());
        }
        match flow.phase {
            Phase::HalfOpen | Phase::Capable if packet.dscp == Dscp::DEFAULT => self.lapse(now, key),
            Phase::HalfOpen if packet.dscp == QOS_FLOW => {
                flow.begin_by_data(now, self.config.half_open_time);
                self.note_answer(now, &key);
                self.set_phase(now, key, Phase::Capable);
                self.review_trust(now);
            }
            _ => self.recount(&key),
        }
        let flow = self.flows.get(&key)?;
        if flow.phase == Phase::Capable {
            self.charges.add(flow.payer, packet.wire_len());
        }
        Some(flow.phase)
    }

    /// True unless a packet exceeds the rate of its flow for longer than allowed.
    fn is_within_rate(&mut self, now: Instant, key: &FlowKey, packet: &Packet) -> bool {
        let Some(flow) = self.flows.get_mut(key) else { return true };
        if flow.phase != Phase::Capable || now < flow.policed_from {
            return true;
        }
        let rate = flow.allowed(now);
        if rate == 0 {
            // all of it was withdrawn, and the time to hear of that is over: it goes on without a rate
            self.refuse(now, *key);
            return true;
        }
        flow.bucket.admits(now, rate, flow.agreed.burst_exponent(), packet.wire_len())
    }

    /// Forgets silent flows and old evidence, if it is time.
    fn tick(&mut self, now: Instant) {
        if now < self.tick_at {
            return;
        }
        self.tick_at = now + TICK;
        while let Some(key) = self.flows.take_expired(now) {
            if self.flows.get(&key).is_some_and(|flow| flow.phase == Phase::HalfOpen) {
                self.half_open.note(None);
                self.lapse(now, key);
            } else {
                self.remove(&key);
            }
        }
        self.half_open.fade(now);
        self.review_trust(now);
    }

    /// Requests the next wake-up, unless one is pending that comes no later. Without flows there is none.
    fn request_wake(&mut self, cx: &mut Cx<'_>) {
        if self.wake_requested_at <= cx.now {
            self.wake_requested_at = Instant::NEVER;
        }
        if !self.flows.is_empty() && self.tick_at < self.wake_requested_at {
            self.wake_requested_at = self.tick_at;
            cx.wake(Slot(0), self.tick_at);
        }
    }
}

impl Node for FlowRouter {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        self.tick(cx.now);
        if let Input::Packet(port, packet) = input {
            if port == SENDERS {
                self.outward(cx, packet);
            } else {
                self.inward(cx, packet);
            }
        }
        self.request_wake(cx);
    }

    fn reads_signalling(&self) -> bool {
        true
    }

    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        self.flows.keys().flat_map(FlowKey::addresses).for_each(each);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let Counts { flows, requests, refused, preempted, reductions, policed, advised } = self.counts;
        let all = [
            ("flows", flows),
            ("requests", requests),
            ("refused", refused),
            ("preempted", preempted),
            ("reductions", reductions),
            ("policed", policed),
            ("advised", advised),
            ("reserved_bps", self.reservations.total()),
            ("given_bps", self.flows.given()),
            ("used_bps", self.usage.bps()),
        ];
        for (key, n) in all {
            each(key, n);
        }
        self.charges.counters(each);
    }
}
