//! One direction of a link as a [`Node`]: packets enter and later leave at port 0, or are dropped for a
//! cause. If it has an MTU, a message to the sender of a packet that is too long leaves at port 1.
//!
//! A link has one pending event, the arrival of the first packet in flight, no matter how many packets wait
//! or are in flight. Service is lazy and exact: whenever the link is called, it performs every service that
//! has begun meanwhile, at the time it began. So an arriving packet meets the correct state, for any
//! discipline, and a link that is woken late (live, on a busy machine) still serves at its exact rate.

use crate::ahead::Expected;
use crate::change::{Change, UserChanges};
use crate::channel::{Channel, Errors, Special};
use crate::direction::DirectionSpec;
use crate::drop_tail::Refused;
use crate::in_flight::InFlight;
use crate::mtu::Fragments;
use crate::queue::{Discipline, Queue};
use crate::state::LinkSnapshot;
use crate::stats::{LinkStats, Served};
use crate::varying::Varying;
use bentpipe_base::trace::{DropCause, Event, Mask};
use bentpipe_base::{
    Cx, Duration, Input, Instant, Node, NodeId, Packet, Pkt, Port, Proto, Purpose, Slot, World,
};
use std::collections::VecDeque;

/// One direction of a link. The fields are in the order of their use: a packet on an idle link touches only
/// three cache lines, which makes thousands of links cheap.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    /// End of the service in progress; in the past when idle. If the channel varies: the next time at which
    /// something can be served.
    pub(crate) busy_until: Instant,
    pub(crate) armed: Instant,
    pub(crate) in_flight: InFlight,
    pub(crate) channel: Channel,
    pub(crate) served: Served,
    pub(crate) queue: Queue,
    /// Boxed, and made with the first use: a link at which nothing waits and is lost does not use it.
    pub(crate) stats: Option<Box<LinkStats>>,
    /// Packets that the link was told of and that have not arrived yet, with the times at which they do.
    pub(crate) expected: VecDeque<Expected>,
}

impl DirectionSpec {
    /// Builds an idle link. `name` is the name of the direction and owns its random streams.
    pub fn link(&self, name: &str, world: &mut World) -> Link {
        let channel = match &self.dynamics {
            Some(dynamics) if !dynamics.is_constant() => Channel::varying(self, dynamics, name, world),
            _ => {
                let lossy = !self.loss.is_zero() || !self.ber.is_zero();
                let errors = lossy.then(|| Errors {
                    rng: world.open_rng(name, Purpose::Errors),
                    loss: self.loss,
                    ber: self.ber,
                });
                Channel::new(self.rate, self.delay, self.framing, errors)
                    .with_mtu(self.mtu)
                    .with_loss_draw(self.loss_draw)
            }
        };
        // only a discipline that hashes needs a key
        let key = match self.discipline {
            Discipline::FqCodel(_) => {
                let rng = world.open_rng(name, Purpose::Table);
                world.cx(Instant::ZERO, NodeId(0)).rng(rng).bits()
            }
            _ => 0,
        };
        Link::new(Queue::new(self.buffer, self.discipline, key), channel)
    }
}

impl Link {
    /// An idle link.
    pub fn new(queue: Queue, channel: Channel) -> Self {
        Self {
            busy_until: Instant::ZERO,
            armed: Instant::NEVER,
            in_flight: InFlight::default(),
            channel,
            served: Served::default(),
            queue,
            stats: None,
            expected: VecDeque::new(),
        }
    }

    /// Reads what the next call will use, so that the memory is on its way to the cache while something else
    /// is done. Returns a number that depends on all of it.
    #[inline]
    pub fn touch(&self) -> u64 {
        let lines = self.busy_until.0 ^ self.channel.carry ^ self.served.packets;
        lines ^ self.queue.front().map_or(0, |p| p.body.off) ^ self.next_arrival().map_or(0, |p| p.body.off)
    }

    /// The next packet that arrives.
    #[inline]
    pub fn next_arrival(&self) -> Option<&Packet> {
        self.in_flight.first().or_else(|| self.expected.front().map(|first| &*first.packet))
    }

    /// Returns the counters up to `cx.now`, with those of the queue.
    pub fn stats(&mut self, cx: &mut Cx<'_>) -> &LinkStats {
        let sending_until = self.catch_up_to_now(cx);
        let stats = self.stats.get_or_insert_default();
        stats.integrate_queue(cx.now, self.queue.len());
        stats.served = self.served;
        stats.marked = self.queue.marked();
        // the service in progress counts up to now only
        stats.served.busy = self.served.busy.saturating_sub(sending_until.since(cx.now));
        stats
    }

    /// Brings the counters up to `cx.now`, the end of the run, then frees the packets. A queue with a
    /// discipline of its own keeps those that wait, and a channel that varies the one being sent.
    pub fn end(&mut self, cx: &mut Cx<'_>) {
        self.totals(cx);
        self.in_flight = InFlight::default();
        self.expected = VecDeque::new();
        self.queue.end();
    }

    /// Returns the largest number of packets waiting since the last call, those waiting now included.
    pub fn take_peak(&mut self) -> u32 {
        let waiting = self.queue.len() as u32;
        core::mem::replace(&mut self.stats.get_or_insert_default().recent_peak, waiting)
    }

    /// Returns the state of the link now. This does not change the link's behaviour.
    pub fn snapshot(&mut self, cx: &mut Cx<'_>) -> LinkSnapshot {
        self.catch_up_to_now(cx);
        match self.channel.varying_part() {
            Some(varying) => varying.snapshot(cx, &mut self.queue),
            None => self.channel.state().snapshot(&self.queue),
        }
    }

    /// Changes the link now, until [`Link::reset`] or another change of the same values.
    ///
    /// `up = true` ends an outage of [`Link::outage`] or of the timeline, but not a recurring one. `name` is
    /// the name of the direction: it selects the random stream of losses, as it does for a link built with
    /// losses.
    pub fn change(&mut self, cx: &mut Cx<'_>, name: &str, change: &Change) {
        self.apply_user_change(cx, name, |user| {
            user.change = change.after(user.change);
            if change.up == Some(true) {
                user.outage_until = None;
            }
        });
    }

    /// Loses everything that is sent during `length` from now on. Does not shorten an outage in progress.
    pub fn outage(&mut self, cx: &mut Cx<'_>, name: &str, length: Duration) {
        let end = cx.now + length;
        self.apply_user_change(cx, name, |user| user.outage_until = user.outage_until.max(Some(end)));
    }

    /// Undoes everything that [`Link::change`] and [`Link::outage`] have changed.
    pub fn reset(&mut self, cx: &mut Cx<'_>, name: &str) {
        // a link without changes stays constant, and as fast as before
        if self.channel.varies() {
            self.apply_user_change(cx, name, |user| *user = UserChanges::default());
        }
    }

    /// Returns the changes by a user that are in effect at `at`.
    pub fn user_changes(&mut self, at: Instant) -> UserChanges {
        let user = self.channel.varying_part().map(|varying| varying.user).unwrap_or_default();
        UserChanges { outage_until: user.outage_until.filter(|end| *end > at), ..user }
    }

    fn apply_user_change(&mut self, cx: &mut Cx<'_>, name: &str, act: impl FnOnce(&mut UserChanges)) {
        let now = cx.now;
        // a transmission that would begin now begins under the new conditions
        cx.now = Instant(now.0.saturating_sub(1));
        self.catch_up_to_now(cx);
        cx.now = now;
        if !self.channel.varies() {
            self.channel.start_to_vary(cx, name, self.busy_until);
        }
        let deadline = self.with_varying(|link, varying| {
            link.busy_until = varying.change(now, &mut link.queue, link.busy_until, act);
            link.deadline_varying(varying)
        });
        self.arm(cx, deadline.unwrap_or(Instant::NEVER));
    }

    /// Number of packets that have left the queue and neither arrived nor were lost.
    pub fn on_the_way(&mut self, cx: &mut Cx<'_>) -> usize {
        self.catch_up_to_now(cx);
        let sending = self.channel.varying_part().map_or(0, |varying| usize::from(varying.is_sending()));
        self.in_flight.len() + sending
    }

    /// Performs everything that is due by now; returns the end of the transmission in progress.
    pub(crate) fn catch_up_to_now(&mut self, cx: &mut Cx<'_>) -> Instant {
        let varying = self.with_varying(|link, varying| {
            link.catch_up_varying(cx, varying);
            varying.sending_until
        });
        varying.unwrap_or_else(|| {
            self.take_expected(cx);
            self.catch_up(cx);
            self.busy_until
        })
    }

    /// A packet enters. Inlined as [`Link::wake`], which together saves 5 % of a run's instructions.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "called for every hop of every packet")]
    pub fn receive(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        if !self.is_plain() {
            return self.receive_special(cx, packet);
        }
        self.arrive(cx, packet);
        self.arm(cx, self.deadline());
    }

    /// The same if the link is in a chain, varies or has an MTU.
    #[inline(never)]
    fn receive_special(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        if self.channel.special.is_chained() {
            self.arrive(cx, packet);
            return self.arm_in_chain(cx);
        }
        if self.channel.refuses(&packet) {
            return self.refuse(cx, packet);
        }
        let deadline = if self.channel.varies() {
            let deadline = self.with_varying(|link, varying| {
                link.arrive_varying(cx, varying, packet);
                link.deadline_varying(varying)
            });
            deadline.unwrap_or(Instant::NEVER)
        } else {
            self.arrive(cx, packet);
            self.deadline()
        };
        self.arm(cx, deadline);
    }

    /// A call that the link has requested, or an additional one. Returns the packet that leaves at port 0 if
    /// it is the only one that leaves; several are sent.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `receive`")]
    pub fn wake(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        if !self.is_plain() {
            return self.wake_special(cx);
        }
        self.wake_constant(cx)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `receive`")]
    fn wake_constant(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        self.disarm(cx);
        self.catch_up(cx);
        let packet = self.deliver(cx);
        self.arm(cx, self.deadline());
        packet
    }

    #[inline(never)]
    fn wake_special(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        if self.channel.special.is_chained() {
            return self.wake_in_chain(cx);
        }
        if !self.channel.varies() {
            return self.wake_constant(cx);
        }
        let (packet, deadline) = self.wake_varying(cx);
        self.arm(cx, deadline);
        packet
    }

    /// True if nothing is special about the link.
    #[inline]
    pub const fn is_plain(&self) -> bool {
        matches!(self.channel.special, Special::Nothing)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `receive`")]
    pub(crate) fn arrive(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        cx.trace(Mask::PACKETS, || Event::Sent(&packet));
        self.catch_up(cx);
        if self.busy_until <= cx.now && self.queue.is_empty() {
            self.queue.rest();
            self.queue.pass(&packet);
            self.serve(cx, packet, cx.now, true);
            return;
        }
        self.enqueue(cx, packet);
    }

    /// Queues a packet, or drops it or others. Not inlined: an idle link's call is shorter without it.
    #[inline(never)]
    pub(crate) fn enqueue(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        let stats = self.stats.get_or_insert_default();
        stats.integrate_queue(cx.now, self.queue.len());
        let mut packet = match self.queue.push_at_tail(packet) {
            Ok(waiting) => return stats.update_peaks(waiting),
            Err(packet) => packet,
        };
        loop {
            match self.queue.push(packet, cx.now) {
                Ok(()) => {
                    self.stats.get_or_insert_default().update_peaks(self.queue.len() as u32);
                    return self.drop_unwanted(cx, cx.now);
                }
                Err(Refused::Arrival(packet)) => return self.drop(cx, cx.now, packet, DropCause::QueueFull),
                Err(Refused::Waiting { evicted, arrival }) => {
                    self.drop(cx, cx.now, evicted, DropCause::QueueFull);
                    packet = arrival;
                }
            }
        }
    }

    /// Takes the packet to be served next, at `at`, and drops the packets that the discipline has dropped
    /// before it.
    #[inline]
    pub(crate) fn next_packet(&mut self, cx: &mut Cx<'_>, at: Instant) -> Option<Pkt> {
        self.stats.get_or_insert_default().integrate_queue(at, self.queue.len());
        let packet = self.queue.pop(at);
        self.drop_unwanted(cx, at);
        packet
    }

    #[inline]
    fn drop_unwanted(&mut self, cx: &mut Cx<'_>, at: Instant) {
        while let Some((packet, cause)) = self.queue.take_dropped() {
            self.drop(cx, at, packet, cause);
        }
    }

    /// Begins every service that should have begun by now.
    #[inline]
    pub(crate) fn catch_up(&mut self, cx: &mut Cx<'_>) {
        if self.busy_until <= cx.now && !self.queue.is_empty() {
            self.serve_waiting(cx);
        }
    }

    #[inline(never)]
    fn serve_waiting(&mut self, cx: &mut Cx<'_>) {
        while self.busy_until <= cx.now && !self.queue.is_empty() {
            let start = self.busy_until;
            if let Some(packet) = self.next_packet(cx, start) {
                self.serve(cx, packet, start, false);
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `receive`")]
    fn serve(&mut self, cx: &mut Cx<'_>, packet: Pkt, start: Instant, fresh: bool) {
        let sent = Fragments::of(self.channel.mtu, packet.wire_len());
        let end = self.channel.serialise(start, sent, fresh);
        self.busy_until = end;
        self.count_service(sent, start, end);
        match self.channel.draw_loss(cx, sent) {
            None => self.in_flight.push(end + self.channel.one_way, packet),
            Some(cause) => self.lose(cx, start, packet, cause),
        }
    }

    #[inline]
    pub(crate) fn count_service(&mut self, sent: Fragments, start: Instant, end: Instant) {
        self.served.packets += 1;
        self.served.bytes += sent.bytes;
        self.served.busy += end.since(start);
    }

    /// Drops a packet that is too long, and tells its sender at port 1. There is no message about a message
    /// (RFC 1122, section 3.2.2).
    #[cold]
    fn refuse(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        if let Some(mtu) = self.channel.mtu.filter(|_| packet.proto != Proto::Icmp) {
            let mut message = cx.packet();
            message.set_too_big(&packet, mtu.bytes);
            cx.send(Port(1), message);
        }
        self.drop(cx, cx.now, packet, DropCause::TooBig);
    }

    #[cold]
    fn lose(&mut self, cx: &mut Cx<'_>, at: Instant, packet: Pkt, cause: DropCause) {
        self.drop(cx, at, packet, cause);
    }

    /// Drops a packet at `at`, the time of the trace event; it may be in the past because service is lazy.
    pub(crate) fn drop(&mut self, cx: &mut Cx<'_>, at: Instant, packet: Pkt, cause: DropCause) {
        self.stats.get_or_insert_default().dropped(cause);
        let now = cx.now;
        cx.now = at.min(now);
        cx.trace(Mask::PACKETS, || Event::Dropped(&packet, cause));
        cx.now = now;
        cx.recycle(packet);
    }

    /// Takes the packets that have arrived: returns the first, or sends them if there are several.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `receive`")]
    pub(crate) fn deliver(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        let packet = self.in_flight.pop_until(cx.now)?;
        cx.trace(Mask::PACKETS, || Event::Delivered(&packet));
        if self.in_flight.first_at > cx.now {
            return Some(packet);
        }
        cx.send(Port(0), packet);
        self.deliver_rest(cx);
        None
    }

    #[inline(never)]
    fn deliver_rest(&mut self, cx: &mut Cx<'_>) {
        while let Some(packet) = self.in_flight.pop_until(cx.now) {
            cx.trace(Mask::PACKETS, || Event::Delivered(&packet));
            cx.send(Port(0), packet);
        }
    }

    /// Requests a call at `deadline`, unless one is requested by then already.
    #[inline]
    pub(crate) fn arm(&mut self, cx: &mut Cx<'_>, deadline: Instant) {
        if deadline < self.armed {
            self.armed = deadline;
            cx.wake(Slot(0), deadline);
        }
    }

    #[inline]
    pub(crate) fn disarm(&mut self, cx: &Cx<'_>) {
        if cx.now >= self.armed {
            self.armed = Instant::NEVER;
        }
    }

    /// Implements `wake` for a link that varies; returns also when it must be called next.
    fn wake_varying(&mut self, cx: &mut Cx<'_>) -> (Option<Pkt>, Instant) {
        let done = self.with_varying(|link, varying| {
            link.disarm(cx);
            link.catch_up_varying(cx, varying);
            (link.deliver(cx), link.deadline_varying(varying))
        });
        done.unwrap_or((None, Instant::NEVER))
    }

    /// Calls `act` with the link and its varying part; `None` if the link does not vary.
    pub(crate) fn with_varying<T>(&mut self, act: impl FnOnce(&mut Self, &mut Varying) -> T) -> Option<T> {
        let mut varying = self.channel.varying_slot()?.take()?;
        let answer = act(self, &mut varying);
        // nothing is there to be dropped
        core::mem::forget(self.channel.varying_slot()?.replace(varying));
        Some(answer)
    }

    /// When this link must be called next: the first arrival, or, with nothing in flight, the next start of a
    /// service.
    #[inline]
    fn deadline(&self) -> Instant {
        match self.in_flight.first_at() {
            Some(at) => at,
            None if self.queue.is_empty() => Instant::NEVER,
            None => self.busy_until,
        }
    }
}

impl Node for Link {
    #[inline]
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Packet(_, packet) => self.receive(cx, packet),
            Input::Timer(_) => {
                if let Some(packet) = self.wake(cx) {
                    cx.send(Port(0), packet);
                }
            }
        }
    }
}
