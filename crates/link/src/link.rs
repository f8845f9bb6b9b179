//! One direction of a link as a [`Node`]: packets enter and later leave at port 0, or are dropped for a
//! cause.
//!
//! A link has one pending event, the arrival of the first packet in flight, no matter how many packets wait
//! or are in flight. Service is lazy and exact: whenever the link is called, it performs every service that
//! has begun meanwhile, at the time it began. So an arriving packet meets the correct state, for any
//! discipline, and a link that is woken late (live, on a busy machine) still serves at its exact rate.

use crate::channel::Channel;
use crate::drop_tail::Refused;
use crate::look::Look;
use crate::queue::Queue;
use crate::stats::{LinkStats, Served};
use crate::varying::Varying;
use bentpipe_base::trace::{DropCause, Event, Mask};
use bentpipe_base::{Cx, Input, Instant, Node, Pkt, Port, Slot};
use std::collections::VecDeque;

/// One direction of a link. The fields are in the order of their use: a packet on an idle link touches only
/// two cache lines, which makes thousands of links cheap.
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
    /// Boxed, because an idle link does not use it.
    pub(crate) stats: Box<LinkStats>,
}

/// Packets in flight, first to arrive first. The first is stored inline: most links carry one at a time.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct InFlight {
    first: Option<Pkt>,
    first_at: Instant,
    rest: VecDeque<(Instant, Pkt)>,
}

impl InFlight {
    const EMPTY: Self = Self { first: None, first_at: Instant::NEVER, rest: VecDeque::new() };

    /// Adds a packet that arrives after the others, even if it is due earlier.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, packet: Pkt) {
        if self.first.is_none() {
            self.first = Some(packet);
            self.first_at = at;
        } else {
            self.rest.push_back((at, packet));
        }
    }

    /// Adds a packet that may arrive before others.
    pub(crate) fn insert(&mut self, at: Instant, packet: Pkt) {
        match self.first.take() {
            Some(first) if at < self.first_at => {
                self.rest.push_front((self.first_at, first));
                (self.first, self.first_at) = (Some(packet), at);
            }
            Some(first) => {
                self.first = Some(first);
                let place = self.rest.partition_point(|p| p.0 <= at);
                self.rest.insert(place, (at, packet));
            }
            None => self.push(at, packet),
        }
    }

    /// Number of packets in flight.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    #[inline]
    pub(crate) const fn first_at(&self) -> Option<Instant> {
        self.first_at.as_deadline()
    }

    #[inline]
    fn pop_until(&mut self, now: Instant) -> Option<Pkt> {
        if self.first_at > now {
            return None;
        }
        let packet = self.first.take();
        match self.rest.pop_front() {
            Some((at, next)) => {
                self.first = Some(next);
                self.first_at = at;
            }
            None => self.first_at = Instant::NEVER,
        }
        packet
    }
}

impl Link {
    /// An idle link.
    pub fn new(queue: impl Into<Queue>, channel: Channel) -> Self {
        Self {
            busy_until: Instant::ZERO,
            armed: Instant::NEVER,
            in_flight: InFlight::EMPTY,
            channel,
            served: Served::NONE,
            queue: queue.into(),
            stats: Box::new(LinkStats::EMPTY),
        }
    }

    /// Counters up to `cx.now`, queue statistics included.
    pub fn stats(&mut self, cx: &mut Cx<'_>) -> &LinkStats {
        let sending_until = self.settle(cx);
        self.stats.waited(cx.now, self.queue.len());
        self.stats.served = self.served;
        self.stats.marked = self.queue.marked();
        // the service in progress counts up to now only
        self.stats.served.busy = self.served.busy.saturating_sub(sending_until.since(cx.now));
        &self.stats
    }

    /// Returns the largest number of packets waiting since the last call, those waiting now included.
    pub fn take_peak(&mut self) -> u32 {
        core::mem::replace(&mut self.stats.recent_peak, self.queue.len() as u32)
    }

    /// Returns the state of the link now. This does not change the link's behaviour.
    pub fn look(&mut self, cx: &mut Cx<'_>) -> Look {
        self.settle(cx);
        if let Some(varying) = self.channel.changing() {
            return varying.look(cx, &mut self.queue);
        }
        let (rate, loss, ber) = self.channel.constants();
        Look {
            rate: Some(rate),
            one_way: self.channel.one_way(),
            ber: ber.get(),
            packet_loss: loss.get(),
            dark: false,
            fade_db: None,
            queue_packets: self.queue.len(),
            queue_bytes: self.queue.backlog(),
            queue_limit: self.queue.capacity(),
        }
    }

    /// Number of packets that have left the queue and neither arrived nor were lost.
    pub fn on_the_way(&mut self, cx: &mut Cx<'_>) -> usize {
        self.settle(cx);
        self.in_flight.len() + self.channel.changing().map_or(0, |v| usize::from(v.is_sending()))
    }

    /// Performs what is due by now; returns the end of the transmission in progress.
    pub(crate) fn settle(&mut self, cx: &mut Cx<'_>) -> Instant {
        let varying = self.with_changes(|link, varying| {
            link.catch_up_varying(cx, varying);
            varying.sending_until()
        });
        varying.unwrap_or_else(|| {
            self.catch_up(cx);
            self.busy_until
        })
    }

    #[inline]
    fn arrive(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
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

    /// Queues a packet, or drops it or others.
    #[inline]
    pub(crate) fn enqueue(&mut self, cx: &mut Cx<'_>, mut packet: Pkt) {
        self.stats.waited(cx.now, self.queue.len());
        loop {
            match self.queue.push(packet, cx.now) {
                Ok(()) => {
                    self.stats.grew_to(self.queue.len() as u32);
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

    /// Takes the packet to be served next, at `at`, and drops what the discipline has dropped before it.
    #[inline]
    pub(crate) fn next_packet(&mut self, cx: &mut Cx<'_>, at: Instant) -> Option<Pkt> {
        self.stats.waited(at, self.queue.len());
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
    fn catch_up(&mut self, cx: &mut Cx<'_>) {
        while self.busy_until <= cx.now && !self.queue.is_empty() {
            let start = self.busy_until;
            if let Some(packet) = self.next_packet(cx, start) {
                self.serve(cx, packet, start, false);
            }
        }
    }

    fn serve(&mut self, cx: &mut Cx<'_>, packet: Pkt, start: Instant, fresh: bool) {
        let size = packet.wire_len();
        let end = self.channel.serialise(start, size, fresh);
        self.busy_until = end;
        self.served.packets += 1;
        self.served.bytes += size;
        self.served.busy += end.since(start);
        match self.channel.fate(cx, size) {
            None => self.in_flight.push(end + self.channel.one_way(), packet),
            Some(cause) => self.drop(cx, start, packet, cause),
        }
    }

    /// Drops a packet at `at`, the time of the trace event; it may be in the past because service is lazy.
    pub(crate) fn drop(&mut self, cx: &mut Cx<'_>, at: Instant, packet: Pkt, cause: DropCause) {
        self.stats.dropped(cause);
        let now = cx.now;
        cx.now = at.min(now);
        cx.trace(Mask::PACKETS, || Event::Dropped(&packet, cause));
        cx.now = now;
        cx.recycle(packet);
    }

    /// Delivers the packets that have arrived by now.
    #[inline]
    fn deliver(&mut self, cx: &mut Cx<'_>) {
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
    fn disarm(&mut self, cx: &Cx<'_>) {
        if cx.now >= self.armed {
            self.armed = Instant::NEVER;
        }
    }

    /// Implements `handle` for a link that varies; returns when it must be called next.
    #[inline(never)]
    fn handle_varying(&mut self, cx: &mut Cx<'_>, input: Input) -> Instant {
        let deadline = self.with_changes(|link, varying| {
            match input {
                Input::Packet(_, packet) => link.arrive_varying(cx, varying, packet),
                Input::Timer(_) => {
                    link.disarm(cx);
                    link.catch_up_varying(cx, varying);
                    link.deliver(cx);
                }
            }
            link.deadline_varying(varying)
        });
        deadline.unwrap_or(Instant::NEVER)
    }

    /// Calls `act` with the link and its varying part; `None` if the link does not vary.
    pub(crate) fn with_changes<T>(&mut self, act: impl FnOnce(&mut Self, &mut Varying) -> T) -> Option<T> {
        let mut varying = self.channel.take_changing()?;
        let answer = act(self, &mut varying);
        self.channel.put_changing(varying);
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
        let deadline = if self.channel.varies() {
            self.handle_varying(cx, input)
        } else {
            match input {
                Input::Packet(_, packet) => self.arrive(cx, packet),
                Input::Timer(_) => {
                    self.disarm(cx);
                    self.catch_up(cx);
                    self.deliver(cx);
                }
            }
            self.deadline()
        };
        self.arm(cx, deadline);
    }
}
