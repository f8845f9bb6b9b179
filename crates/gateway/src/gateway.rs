//! The gateway node: finds the connection of a packet, processes or passes the packet, and runs all timers.
//!
//! If a connection cannot be accelerated (unseen SYN, full table, excluded by a rule, signed segments), its
//! packets pass. Packets towards the satellite wait for their turn if the hop has a configured rate; besides
//! these, only packets held by an accelerated connection are delayed.

mod admit;
mod closing;
mod keep_alive;
mod queries;
mod records;
mod sleeping;

pub use records::Restored;

use crate::census::Census;
use crate::config::Config;
use crate::counters::Counters;
use crate::flow::priority::EF;
use crate::flow::shaper::{SendGrant, Shaper};
use crate::flow::{Flow, Shared};
use crate::memory::Memory;
use crate::policy::Policy;
use crate::report::{EndReason, FlowReport, GoodputStats, State};
use crate::sides::{LAN, SATELLITE};
use crate::table::{Class, HashKey, Key, NONE, Slab, Table};
use bentpipe_base::{Addr, Cx, Duration, Input, Instant, Node, Pkt, Port, Proto, Purpose, Size, Slot};
use core::fmt;
use core::net::Ipv4Addr;
use std::collections::VecDeque;

const PORTS: [Port; 2] = [LAN, SATELLITE];
/// Shortest interval between timer calls of a connection that waits for the hop past its deadline.
const LEAST_WAIT: Duration = Duration::from_millis(1);

impl Shared {
    /// Sends a packet that is not accelerated.
    fn pass(&mut self, cx: &mut Cx<'_>, side: usize, packet: Pkt) {
        let at_once = if side == 0 { self.shaper.pass(cx.now, packet) } else { Some(packet) };
        if let Some(packet) = at_once {
            cx.send(PORTS[1 - side], packet);
        }
    }

    /// Sends the queued passing packets if the hop is not paced any more, and drops those beyond the queue's
    /// limit.
    fn settle_passing(&mut self, cx: &mut Cx<'_>) {
        while let Some(packet) = self.shaper.unpaced() {
            cx.send(SATELLITE, packet);
        }
        while let Some(packet) = self.shaper.overflow() {
            self.counters.passing_full += u64::from(packet.pieces());
            cx.recycle(packet);
        }
    }
}

/// A gateway. For real hosts its driver must seed the world with unpredictable random numbers, since the hash
/// key of the table is derived from them.
pub struct Gateway {
    shared: Shared,
    policy: Policy,
    table: Table,
    /// Boxed: most connections are idle, and the state of an active one is large.
    flows: Slab<Box<Flow>>,
    sleeping: Slab<sleeping::SleepingFlow>,
    keep_alive: keep_alive::KeepAlive,
    is_keyed: bool,
    /// The earliest wake-up requested and still pending.
    wake_requested_at: Instant,
    due: Vec<(Instant, u32)>,
    ended: VecDeque<FlowReport>,
    /// Connections whose records changed, if the driver fetches records.
    changed: Option<VecDeque<u32>>,
    census: Census,
    fast: GoodputStats,
    left_alone: GoodputStats,
}

impl Gateway {
    /// Returns a gateway with this configuration.
    pub fn new(config: Config) -> Self {
        Self {
            policy: Policy::default(),
            table: Table::new(&config.limits, HashKey::default()),
            flows: Slab::default(),
            sleeping: Slab::default(),
            keep_alive: keep_alive::KeepAlive::default(),
            is_keyed: false,
            wake_requested_at: Instant::NEVER,
            due: Vec::new(),
            ended: VecDeque::new(),
            changed: None,
            census: Census::default(),
            fast: GoodputStats::default(),
            left_alone: GoodputStats::default(),
            shared: Shared {
                shaper: Shaper::new(&config),
                counters: Counters::default(),
                memory: Memory::new(config.limits.memory),
                config,
            },
        }
    }

    /// Sets the policy that decides which connections are accelerated.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the policy for new connections.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The current configuration.
    pub const fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Draws a secret hash key for the table, once.
    fn take_key(&mut self, cx: &mut Cx<'_>) {
        if !self.is_keyed {
            self.is_keyed = true;
            let slot = cx.open_rng("gateway", Purpose::Table);
            let rng = cx.rng(slot);
            let key = HashKey(rng.bits(), rng.bits());
            self.table.rebuild(&self.shared.config.limits, key);
        }
    }

    fn packet(&mut self, cx: &mut Cx<'_>, side: usize, packet: Pkt) {
        let counters = &mut self.shared.counters;
        let n = u64::from(packet.pieces());
        counters.packets[side] += n;
        // each wire packet has its own header
        counters.bytes[side] += packet.wire_len() + Size(u64::from(packet.header_len) * (n - 1));
        if packet.proto != Proto::Tcp {
            counters.not_tcp += n;
            return self.shared.pass(cx, side, packet);
        }
        let (key, is_low) = Key::of(&packet);
        let Some(id) = self.connection(cx, side, (key, is_low), &packet) else {
            self.shared.counters.not_tracked += n;
            return self.shared.pass(cx, side, packet);
        };
        if self.table.get(id).is_some_and(|e| e.side_of(is_low) != side) {
            self.shared.counters.strays += n;
            return self.shared.pass(cx, side, packet);
        }
        self.follow(cx, side, id, packet);
    }

    fn follow(&mut self, cx: &mut Cx<'_>, side: usize, id: u32, packet: Pkt) {
        if self.table.get(id).is_some_and(|e| e.lacks_answer(side, &packet)) {
            self.stop_incomplete(cx, side, id);
        }
        let now = cx.now;
        let seen = self.table.update(id, |e| {
            let trip = e.handshake_rtt(side, &packet, now);
            e.note(side, &packet, now);
            (trip, e.note_window(side, &packet))
        });
        let (trip, window) = seen.unwrap_or_default();
        trip.into_iter().for_each(|trip| self.census.sample(trip));
        if let Some(window) = window {
            // in simulations hosts may have no real addresses
            let client = cx.address(packet.src).unwrap_or_else(|| Ipv4Addr::from(packet.src.0).into());
            self.census.count(client, &window);
        }
        self.wake(id);
        if side == 0 && self.table.get(id).is_some_and(|e| e.pass_reason.is_none()) {
            self.shared.shaper.mark(id, packet.dscp.get() == EF);
        }
        let flow = self.table.get(id).map_or(NONE, |e| e.flow);
        if let Some(flow) = self.flows.get_mut(flow) {
            flow.packet(cx, PORTS[side], packet, &mut self.shared);
        } else {
            self.shared.pass(cx, side, packet);
        }
        self.settle(cx, id);
    }

    /// Updates the table entry of a connection after it processed something.
    fn settle(&mut self, cx: &mut Cx<'_>, id: u32) {
        let Some(entry) = self.table.get(id).copied() else { return };
        let mut state = entry.state;
        if let Some(why) =
            self.flows.get(entry.flow).and_then(|f| f.why()).filter(|_| entry.pass_reason.is_none())
        {
            self.shared.counters.pass(why);
            return self.give_up(cx, id, why);
        }
        if let Some(flow) = self.flows.get_mut(entry.flow) {
            // a flow that only passes does not follow the state, since it may not have seen the whole
            // handshake
            if entry.pass_reason.is_none() {
                state = flow.state();
            }
            // an RST may still be held behind data
            if state == State::Closed && flow.report(0.0).held == Size::ZERO {
                return self.retire(cx, id);
            }
        }
        if state != entry.state {
            self.table.update(id, |e| e.state = state);
        }
        if entry.class == Class::Opening && state != State::Opening {
            self.promote(cx, id);
        } else if entry.flow == NONE {
            self.update_pass_reason(id);
        }
        self.arm(cx.now, id);
    }

    /// Sets the timer of a connection, and requests a turn at the shaper if it has something to send.
    fn arm(&mut self, now: Instant, id: u32) {
        let Some(entry) = self.table.get(id).copied() else { return };
        let mut at = entry.expires(&self.shared.config.timeouts);
        // an unaccelerated connection has only its idle timeout
        if let Some(flow) = self.flows.get_mut(entry.flow).filter(|_| entry.pass_reason.is_none()) {
            let shared = &mut self.shared;
            if let Some(want) = flow.wants(now, shared) {
                shared.shaper.request(id, want);
            }
            shared.memory.note();
            at = flow.deadline().map_or(at, |deadline| deadline.min(at));
            if flow.is_at_rest() {
                at = at.min(entry.last + sleeping::AFTER);
            }
        }
        self.table.wheel.set(id, at);
    }

    fn timers(&mut self, cx: &mut Cx<'_>) {
        let mut due = core::mem::take(&mut self.due);
        self.table.wheel.advance(cx.now, &mut due);
        for (_, id) in due.drain(..) {
            self.timer(cx, id);
        }
        self.due = due;
    }

    fn timer(&mut self, cx: &mut Cx<'_>, id: u32) {
        let now = cx.now;
        let Some(entry) = self.table.get(id).copied() else { return };
        if entry.expires(&self.shared.config.timeouts) <= now {
            let is_over = entry.state >= State::Closing;
            return self.end(cx, id, if is_over { EndReason::Closed } else { EndReason::Idle });
        }
        if let Some(flow) = self.flows.get_mut(entry.flow).filter(|_| entry.pass_reason.is_none())
            && flow.deadline().is_some_and(|at| at <= now)
        {
            flow.timer(cx, &mut self.shared);
        }
        if !self.sleep(cx, id) {
            self.settle(cx, id);
        }
        // a deadline that stays in the past would expire again at this very instant, without end
        if self.table.wheel.is_due(id, now) {
            self.table.wheel.unset(id);
            self.table.wheel.set(id, now + LEAST_WAIT);
        }
    }

    /// Lets connections send while the hop is free.
    fn serve(&mut self, cx: &mut Cx<'_>) {
        self.shared.settle_passing(cx);
        while let Some(turn) = self.shared.shaper.next(cx.now) {
            match turn {
                SendGrant::Pass(packet) => cx.send(SATELLITE, packet),
                SendGrant::Flow(id) => self.serve_one(cx, id),
            }
        }
    }

    fn serve_one(&mut self, cx: &mut Cx<'_>, id: u32) {
        let flow = self.table.get(id).map_or(NONE, |e| e.flow);
        let Some(flow) = self.flows.get_mut(flow) else { return self.shared.shaper.forget(id) };
        let shared = &mut self.shared;
        let sent = flow.serve(cx, shared);
        let wants = flow.wants(cx.now, shared);
        shared.shaper.sent(cx.now, id, sent, wants);
        if sent > Size::ZERO {
            self.data_sent(cx, id);
        }
        self.settle(cx, id);
    }

    /// Requests the next wake-up, unless one is pending that comes no later.
    fn request_wake(&mut self, cx: &mut Cx<'_>) {
        if self.wake_requested_at <= cx.now {
            self.wake_requested_at = Instant::NEVER;
        }
        let next = [self.table.wheel.next(), self.shared.shaper.deadline(), self.keep_alive_at()];
        if let Some(at) = next.into_iter().flatten().min().map(|at| at.max(cx.now))
            && at < self.wake_requested_at
        {
            self.wake_requested_at = at;
            cx.wake(Slot(0), at);
        }
    }

    fn finish(&mut self, cx: &mut Cx<'_>) {
        self.timers(cx);
        self.serve(cx);
        self.keep_hop(cx);
        self.request_wake(cx);
    }
}

impl Node for Gateway {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        self.take_key(cx);
        if let Input::Packet(port, packet) = input {
            self.packet(cx, usize::from(port != LAN), packet);
        }
        self.finish(cx);
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.release_all(cx);
    }

    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        for entry in self.table.ids(0).filter_map(|id| self.table.get(id)) {
            entry.key.ends().into_iter().for_each(|end| each(end.0));
        }
    }
}

impl Default for Gateway {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("config", &self.shared.config)
            .field("connections", &self.table.len())
            .finish_non_exhaustive()
    }
}
