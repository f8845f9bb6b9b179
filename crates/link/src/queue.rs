//! Queues: drop-tail, the disciplines for low-priority packets, and those that have files of their own. The
//! packet in service is not counted.
//!
//! A queue is given the time of each arrival and each service and does nothing in between.
//!
//! Low priority is the lower-effort code point (LE, RFC 8622). Router disciplines that TCP-Peach and
//! TCP-Swift rely on:
//!   pushout:   one shared buffer; an arrival of normal priority that finds it full evicts the newest of low
//!              priority; low is served only when no normal packet waits
//!   threshold: first in, first out; a low-priority arrival is refused when more than one packet waits
//!              (`PeachQueue` of the simulator `GTNetS`)
//!   wred:      first in, first out; a low-priority arrival is refused with a probability that rises from 0
//!              to 1 while the queue grows from nothing to a quarter of the buffer
//!   fifo:      priority is ignored
//! Deviation: `wred` spreads its drops evenly (it adds up the probabilities and drops a packet at each whole
//! one), while a router draws for each packet.

use crate::codel::{Codel, CodelQueue};
use crate::drop_head;
use crate::drop_tail::{Capacity, DropTail, Dropped, Refused};
use crate::fq_codel::{FlowQueues, FqCodel};
use crate::levels::Levels;
use bentpipe_base::shift::Walk;
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Dscp, Instant, Packet, Pkt, Size};
use std::collections::VecDeque;

/// Which packet is served next, and which is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out; an arrival that finds no room is dropped.
    #[default]
    Fifo,
    /// First in, first out; an arrival that finds no room replaces the oldest.
    DropHead,
    /// First in, first out; packets that wait too long are dropped or marked.
    Codel(Codel),
    /// CoDel for each flow; flows take turns.
    FqCodel(FqCodel),
    /// The highest mark of a flow router first.
    FlowPriority,
    /// Low priority is served last, and is dropped for arrivals of normal priority.
    Pushout,
    /// Low priority is refused when more than one packet waits.
    Threshold,
    /// Low priority is refused with a probability that rises with the queue.
    Wred,
}

impl Discipline {
    /// True if packets of low priority are served or dropped differently from others.
    pub const fn uses_priority(self) -> bool {
        matches!(self, Self::Pushout | Self::Threshold | Self::Wred)
    }
}

/// Most packets that may wait when a low-priority arrival is accepted under [`Discipline::Threshold`].
const THRESHOLD: usize = 1;
/// [`Discipline::Wred`] refuses all low priority from 1/`RAMP` of the buffer on.
const RAMP: f64 = 4.0;

/// The queue of a link. What tells that nothing waits comes first, for the link's third cache line.
#[derive(Debug)]
#[repr(C)]
pub struct Queue {
    /// Boxed, because most queues are drop-tail.
    more: Option<Box<More>>,
    /// The waiting packets; with pushout only those of normal priority, with CoDel and FQ-CoDel none.
    tail: DropTail,
}

/// State of the disciplines other than drop-tail.
#[derive(Debug)]
enum More {
    Priority(Priority),
    DropHead,
    Codel(CodelQueue, Dropped),
    FqCodel(FlowQueues, Dropped),
    Levels(Levels),
}

#[derive(Debug)]
struct Priority {
    discipline: Discipline,
    /// With pushout: low-priority packets, served last.
    low: DropTail,
    /// With WRED: sum of the probabilities since the last drop, less than one.
    due: f64,
}

impl Queue {
    /// An empty queue. `key` is the key of the flow hash, for disciplines that have one.
    pub fn new(capacity: Capacity, discipline: Discipline, key: u64) -> Self {
        let more = match discipline {
            Discipline::Fifo => None,
            Discipline::Pushout | Discipline::Threshold | Discipline::Wred => {
                Some(More::Priority(Priority { discipline, low: DropTail::new(capacity), due: 0.0 }))
            }
            Discipline::DropHead => Some(More::DropHead),
            Discipline::Codel(codel) => Some(More::Codel(CodelQueue::new(codel), Dropped::default())),
            Discipline::FlowPriority => Some(More::Levels(Levels::default())),
            Discipline::FqCodel(fq) => Some(More::FqCodel(FlowQueues::new(fq, key), Dropped::default())),
        };
        Self { tail: DropTail::new(capacity), more: more.map(Box::new) }
    }

    /// Visits the packets of a drop-tail or drop-head queue.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>) {
        walk.expect(
            matches!(self.more.as_deref(), None | Some(More::DropHead)),
            "a queue that drops by time",
        );
        walk.same(&(self.tail.packets.len(), self.tail.bytes));
        for packet in &mut self.tail.packets {
            if walk.has_ended() {
                return;
            }
            walk.inner(&mut **packet);
        }
    }

    /// Its capacity.
    pub const fn capacity(&self) -> Capacity {
        self.tail.capacity
    }

    /// Changes the capacity; packets already waiting stay.
    pub const fn set_capacity(&mut self, capacity: Capacity) {
        self.tail.capacity = capacity;
    }

    /// Queues a packet that arrives at `now`. Packets dropped for it are returned here or by
    /// [`Queue::take_dropped`].
    ///
    /// # Errors
    /// Returns a packet that must be dropped. Either it is this one, and the queue is unchanged; or it is a
    /// waiting one, and the arrival in [`Refused`] must be pushed again.
    #[inline]
    pub fn push(&mut self, packet: Pkt, now: Instant) -> Result<(), Refused> {
        match self.more.as_deref_mut() {
            None => self.tail.push_beside(packet, 0, Size::ZERO).map_err(Refused::Arrival),
            Some(more) => more.push(&mut self.tail, packet, now),
        }
    }

    /// Adds a packet if the queue is drop-tail and has room for it, the usual case; returns how many wait
    /// then, or the packet, with which nothing was done.
    #[inline]
    pub(crate) fn push_at_tail(&mut self, packet: Pkt) -> Result<u32, Pkt> {
        if self.more.is_some() {
            return Err(packet);
        }
        self.tail.push_beside(packet, 0, Size::ZERO)?;
        Ok(self.tail.packets.len() as u32)
    }

    /// Takes the next packet, at `at`. Call [`Queue::take_dropped`] afterwards for packets dropped before it.
    #[inline]
    pub fn pop(&mut self, at: Instant) -> Option<Pkt> {
        match self.more.as_deref_mut() {
            None | Some(More::DropHead) => self.tail.pop(),
            Some(More::Priority(priority)) => self.tail.pop().or_else(|| priority.low.pop()),
            Some(More::Codel(codel, dropped)) => codel.pop(at, dropped),
            Some(More::FqCodel(flows, dropped)) => flows.pop(at, dropped),
            Some(More::Levels(levels)) => levels.pop(),
        }
    }

    /// Takes a waiting packet that the discipline dropped, and the cause.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<(Pkt, DropCause)> {
        match self.more.as_deref_mut() {
            Some(More::Codel(_, dropped) | More::FqCodel(_, dropped)) => dropped.packets.pop_front(),
            _ => None,
        }
    }

    /// Packets marked CE so far; `None` if the discipline does not mark.
    pub fn marked(&self) -> Option<u64> {
        match self.more.as_deref()? {
            More::Codel(codel, dropped) => codel.parameters.ecn.then_some(dropped.marked),
            More::FqCodel(flows, dropped) => flows.parameters.codel.ecn.then_some(dropped.marked),
            More::Priority(_) | More::DropHead | More::Levels(_) => None,
        }
    }

    /// True if nothing waits, and the discipline need not be told.
    #[inline]
    pub(crate) fn is_rested(&self) -> bool {
        self.more.is_none() && self.tail.packets.is_empty()
    }

    /// Tells the discipline that nothing waits and that the link is idle.
    #[inline]
    pub fn rest(&mut self) {
        if let Some(More::FqCodel(flows, _)) = self.more.as_deref_mut() {
            flows.rest();
        }
    }

    /// Tells the discipline that `packet` is served without waiting, after [`Queue::rest`].
    #[inline]
    pub fn pass(&mut self, packet: &Packet) {
        match self.more.as_deref_mut() {
            Some(More::Codel(codel, _)) => codel.largest = codel.largest.max(packet.wire_len()),
            Some(More::FqCodel(flows, _)) => flows.pass(packet),
            _ => {}
        }
    }

    /// Frees the packets of a drop-tail queue.
    pub(crate) fn end(&mut self) {
        self.tail.packets = VecDeque::new();
        self.tail.bytes = Size::ZERO;
    }

    /// Packets waiting.
    #[inline]
    pub fn len(&self) -> usize {
        self.tail.packets.len() + self.more.as_deref().map_or(0, More::len)
    }

    /// True if nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tail.packets.is_empty() && self.more.as_deref().is_none_or(|m| m.len() == 0)
    }

    /// The packet that waits longest in the order of arrival, if the discipline keeps that.
    #[inline]
    pub(crate) fn front(&self) -> Option<&Packet> {
        self.tail.packets.front().map(|packet| &**packet)
    }

    /// Bytes waiting.
    pub fn backlog(&self) -> Size {
        self.tail.bytes
            + match self.more.as_deref() {
                None | Some(More::DropHead) => Size::ZERO,
                Some(More::Priority(priority)) => priority.low.bytes,
                Some(More::Codel(codel, _)) => codel.queue.bytes,
                Some(More::FqCodel(flows, _)) => flows.bytes,
                Some(More::Levels(levels)) => levels.bytes,
            }
    }
}

impl More {
    fn push(&mut self, tail: &mut DropTail, packet: Pkt, now: Instant) -> Result<(), Refused> {
        match self {
            Self::Priority(priority) => priority.push(tail, packet),
            Self::DropHead => drop_head::push(tail, packet),
            Self::Codel(codel, _) => codel.push(packet, now, tail.capacity),
            Self::FqCodel(flows, dropped) => flows.push(packet, now, tail.capacity, dropped),
            Self::Levels(levels) => levels.push(packet, tail.capacity),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Priority(priority) => priority.low.packets.len(),
            Self::DropHead => 0,
            Self::Codel(codel, _) => codel.queue.packets.len(),
            Self::FqCodel(flows, _) => flows.packets,
            Self::Levels(levels) => levels.packets,
        }
    }
}

impl Priority {
    fn push(&mut self, tail: &mut DropTail, packet: Pkt) -> Result<(), Refused> {
        let low = packet.dscp == Dscp::LE;
        let refused = match self.discipline {
            Discipline::Pushout if low => {
                self.low.capacity = tail.capacity;
                let taken = self.low.push_beside(packet, tail.packets.len(), tail.bytes);
                return taken.map_err(Refused::Arrival);
            }
            Discipline::Pushout => {
                let taken = tail.push_beside(packet, self.low.packets.len(), self.low.bytes);
                return taken.map_err(|arrival| match self.evict() {
                    Some(evicted) => Refused::Waiting { evicted, arrival },
                    None => Refused::Arrival(arrival),
                });
            }
            Discipline::Threshold => low && tail.packets.len() > THRESHOLD,
            Discipline::Wred => low && self.wred_drops(tail),
            _ => false,
        };
        if refused {
            return Err(Refused::Arrival(packet));
        }
        tail.push_beside(packet, 0, Size::ZERO).map_err(Refused::Arrival)
    }

    fn evict(&mut self) -> Option<Pkt> {
        let packet = self.low.packets.pop_back()?;
        self.low.bytes = self.low.bytes - packet.wire_len();
        Some(packet)
    }

    fn wred_drops(&mut self, tail: &DropTail) -> bool {
        self.due += (tail.fill() * RAMP).min(1.0);
        if self.due < 1.0 {
            return false;
        }
        self.due -= 1.0;
        true
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bentpipe_base::{Body, Packet};

    pub(crate) fn packet(payload: u32) -> Pkt {
        let mut p = Packet { body: Body { off: 0, len: payload }, ..Packet::default() };
        p.seal();
        Box::new(p)
    }

    fn low(payload: u32) -> Pkt {
        let mut p = packet(payload);
        p.dscp = Dscp::LE;
        p
    }

    /// Dequeues all packets; returns the lengths of their payloads.
    pub(crate) fn order(q: &mut Queue) -> Vec<u32> {
        core::iter::from_fn(|| q.pop(Instant::ZERO)).map(|p| p.body.len).collect()
    }

    #[test]
    fn refuses_what_does_not_fit_in_packets_and_in_bytes() {
        let mut q = Queue::new(Capacity::Packets(2), Discipline::Fifo, 0);
        assert!(q.push(packet(1000), Instant::ZERO).is_ok() && q.push(packet(1), Instant::ZERO).is_ok());
        assert!(q.push(packet(1), Instant::ZERO).is_err());
        let mut q = Queue::new(Capacity::Bytes(Size(2080)), Discipline::Fifo, 0);
        assert!(q.push(packet(1000), Instant::ZERO).is_ok() && q.push(packet(1000), Instant::ZERO).is_ok());
        assert!(q.push(packet(0), Instant::ZERO).is_err());
        assert_eq!(q.backlog(), Size(2080));
        assert_eq!(q.pop(Instant::ZERO).map(|p| p.body.len), Some(1000));
        assert!(q.push(packet(900), Instant::ZERO).is_ok());
        assert_eq!((q.len(), q.backlog()), (2, Size(1980)));
    }

    #[test]
    fn fifo_ignores_marks() {
        let mut q = Queue::new(Capacity::Packets(2), Discipline::Fifo, 0);
        assert!(q.push(low(1), Instant::ZERO).is_ok() && q.push(packet(2), Instant::ZERO).is_ok());
        assert!(matches!(q.push(packet(3), Instant::ZERO), Err(Refused::Arrival(p)) if p.body.len == 3));
        assert_eq!(order(&mut q), [1, 2]);
    }

    #[test]
    fn pushout_serves_low_last_and_evicts_the_newest() {
        let mut q = Queue::new(Capacity::Packets(3), Discipline::Pushout, 0);
        assert!(
            q.push(low(1), Instant::ZERO).is_ok()
                && q.push(low(2), Instant::ZERO).is_ok()
                && q.push(packet(3), Instant::ZERO).is_ok()
        );
        assert!(
            matches!(q.push(low(4), Instant::ZERO), Err(Refused::Arrival(p)) if p.body.len == 4),
            "full for its like"
        );
        let Err(Refused::Waiting { evicted, arrival }) = q.push(packet(5), Instant::ZERO) else {
            panic!("it is full")
        };
        assert_eq!((evicted.body.len, arrival.body.len), (2, 5));
        assert!(q.push(arrival, Instant::ZERO).is_ok());
        assert_eq!((q.len(), q.backlog()), (3, Size(3 * 40 + 9)));
        let Err(Refused::Waiting { evicted, arrival }) = q.push(packet(6), Instant::ZERO) else {
            panic!("it is full")
        };
        assert_eq!(evicted.body.len, 1);
        assert!(q.push(arrival, Instant::ZERO).is_ok());
        assert!(
            matches!(q.push(packet(7), Instant::ZERO), Err(Refused::Arrival(_))),
            "nothing left to evict"
        );
        assert_eq!(order(&mut q), [3, 5, 6]);
        assert!(q.is_empty() && q.backlog() == Size::ZERO);
        assert!(q.push(low(8), Instant::ZERO).is_ok() && q.push(packet(9), Instant::ZERO).is_ok());
        assert_eq!(order(&mut q), [9, 8]);
    }

    /// A large arrival may need the room of several small ones.
    #[test]
    fn pushout_in_bytes_evicts_as_many_as_it_takes() {
        let mut q = Queue::new(Capacity::Bytes(Size(1000)), Discipline::Pushout, 0);
        for _ in 0..4 {
            assert!(q.push(low(160), Instant::ZERO).is_ok()); // 200 B each
        }
        let mut arrival = packet(560);
        let mut evicted = 0;
        while let Err(refused) = q.push(arrival, Instant::ZERO) {
            let Refused::Waiting { arrival: again, .. } = refused else { panic!("it fits in the end") };
            arrival = again;
            evicted += 1;
        }
        assert_eq!((evicted, q.len(), q.backlog()), (2, 3, Size(1000)));
    }

    #[test]
    fn threshold_takes_low_only_into_a_short_queue() {
        let mut q = Queue::new(Capacity::Packets(10), Discipline::Threshold, 0);
        assert!(q.push(packet(1), Instant::ZERO).is_ok() && q.push(low(2), Instant::ZERO).is_ok());
        assert!(q.push(low(3), Instant::ZERO).is_err() && q.push(packet(4), Instant::ZERO).is_ok());
        assert_eq!(order(&mut q), [1, 2, 4]);
    }

    /// Half way up the ramp every other low-priority packet is dropped, above it all, and no normal ones.
    #[test]
    fn wred_drops_low_by_the_fill() {
        let dropped = |waiting: u32| {
            let mut q = Queue::new(Capacity::Packets(80), Discipline::Wred, 0);
            for _ in 0..waiting {
                assert!(q.push(packet(1), Instant::ZERO).is_ok());
            }
            (0..100)
                .filter(|_| {
                    let refused = q.push(low(1), Instant::ZERO).is_err();
                    if !refused {
                        let _ = q.pop(Instant::ZERO); // the length stays
                    }
                    refused
                })
                .count()
        };
        assert_eq!([0, 5, 10, 20, 60].map(dropped), [0, 25, 50, 100, 100]);
    }
}
