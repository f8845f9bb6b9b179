//! One direction of a link as a [`Node`]: packets go in at port 0 and come out of port 0 later, or are dropped with a cause.
//!
//! There is one pending event per link, however many packets wait or fly: the arrival of the first packet in flight.
//! Service is lazy and exact: whenever the link is touched it catches up with every service that began meanwhile, at the
//! time it began. So the state an arriving packet meets is the true one, for any discipline, and a link that is
//! woken late (live, on a busy machine) still serves its exact rate.

use crate::channel::Channel;
use crate::queue::DropTail;
use crate::stats::{LinkStats, Served};
use bentpipe_base::trace::{DropCause, Event, Mask};
use bentpipe_base::{Cx, Input, Instant, Node, Pkt, Port, Slot};
use std::collections::VecDeque;

/// One direction of a link. Fields stand in the order of their use: an idle link is passed by touching two cache lines,
/// which is what makes thousands of links cheap.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    /// End of the service in progress; in the past when idle.
    busy_until: Instant,
    armed: Instant,
    in_flight: InFlight,
    channel: Channel,
    served: Served,
    queue: DropTail,
    /// Boxed: an idle link touches none of it.
    stats: Box<LinkStats>,
}

/// Packets on their way, first to arrive first. The first lies in place: most links carry one packet at a time.
#[derive(Debug)]
#[repr(C)]
struct InFlight {
    first: Option<Pkt>,
    first_at: Instant,
    rest: VecDeque<(Instant, Pkt)>,
}

impl InFlight {
    const EMPTY: Self = Self { first: None, first_at: Instant::NEVER, rest: VecDeque::new() };

    #[inline]
    fn push(&mut self, at: Instant, packet: Pkt) {
        if self.first.is_none() {
            self.first = Some(packet);
            self.first_at = at;
        } else {
            self.rest.push_back((at, packet));
        }
    }

    #[inline]
    const fn first_at(&self) -> Option<Instant> {
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
    pub fn new(queue: DropTail, channel: Channel) -> Self {
        Self {
            busy_until: Instant::ZERO,
            armed: Instant::NEVER,
            in_flight: InFlight::EMPTY,
            channel,
            served: Served::NONE,
            queue,
            stats: Box::new(LinkStats::EMPTY),
        }
    }

    /// Counters up to `cx.now`, queue statistics included.
    pub fn stats(&mut self, cx: &mut Cx<'_>) -> &LinkStats {
        self.catch_up(cx);
        self.stats.waited(cx.now, self.queue.len());
        self.stats.served = self.served;
        // the service in progress counts up to now only
        self.stats.served.busy = self.served.busy.saturating_sub(self.busy_until.since(cx.now));
        &self.stats
    }

    #[inline]
    fn arrive(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        cx.trace(Mask::PACKETS, || Event::Sent(&packet));
        self.catch_up(cx);
        if self.busy_until <= cx.now && self.queue.is_empty() {
            self.serve(cx, packet, cx.now, true);
            return;
        }
        self.stats.waited(cx.now, self.queue.len());
        match self.queue.push(packet) {
            Ok(()) => self.stats.queue_peak = self.stats.queue_peak.max(self.queue.len() as u32),
            Err(packet) => self.drop(cx, packet, DropCause::QueueFull),
        }
    }

    /// Begins every service that should have begun by now.
    #[inline]
    fn catch_up(&mut self, cx: &mut Cx<'_>) {
        while self.busy_until <= cx.now && !self.queue.is_empty() {
            let start = self.busy_until;
            self.stats.waited(start, self.queue.len());
            if let Some(packet) = self.queue.pop() {
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
            Some(cause) => self.drop(cx, packet, cause),
        }
    }

    fn drop(&mut self, cx: &mut Cx<'_>, packet: Pkt, cause: DropCause) {
        self.stats.dropped(cause);
        cx.trace(Mask::PACKETS, || Event::Dropped(&packet, cause));
        cx.recycle(packet);
    }

    #[inline]
    fn deliver(&mut self, cx: &mut Cx<'_>) {
        self.catch_up(cx);
        while let Some(packet) = self.in_flight.pop_until(cx.now) {
            cx.trace(Mask::PACKETS, || Event::Delivered(&packet));
            cx.send(Port(0), packet);
        }
    }

    /// The next time this link must be called: the first arrival, or, when nothing flies, the next begin of a service.
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
            Input::Packet(_, packet) => self.arrive(cx, packet),
            Input::Timer(_) => {
                if cx.now >= self.armed {
                    self.armed = Instant::NEVER;
                }
                self.deliver(cx);
            }
        }
        let deadline = self.deadline();
        if deadline < self.armed {
            self.armed = deadline;
            cx.wake(Slot(0), deadline);
        }
    }
}
