//! Queues: drop-tail, and what a router may do for low-priority packets. The packet in service is not counted.
//!
//! Low priority is the lower-effort code point (LE, RFC 8622). Disciplines of routers that TCP-Peach and TCP-Swift count on:
//!   pushout:   one shared buffer; an arrival of normal priority that finds it full evicts the newest of low priority; low is served only when no normal packet waits
//!   threshold: first in, first out; a low-priority arrival is refused when more than one packet waits (`PeachQueue` of the simulator `GTNetS`)
//!   wred:      first in, first out; a low-priority arrival is refused with a probability that rises from 0 to 1 while the queue grows from nothing to a quarter of the buffer
//!   fifo:      marks are ignored
//! Deviation: `wred` spreads its drops evenly (the shares are added up, and each whole one is a drop) where a router draws for each: the same share, without runs of luck.

use bentpipe_base::{Dscp, Pkt, Size};
use std::collections::VecDeque;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes on the wire.
    Bytes(Size),
}

/// What a queue does with low-priority packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// Nothing: first in, first out.
    #[default]
    Fifo,
    /// They are served last, and give way to arrivals of normal priority.
    Pushout,
    /// They are refused when more than one packet waits.
    Threshold,
    /// They are refused the more often the fuller the queue.
    Wred,
}

/// Packets that may wait for a low-priority arrival to be taken, under [`Discipline::Threshold`].
const THRESHOLD: usize = 1;
/// Share of the buffer at which [`Discipline::Wred`] refuses all: one in this many.
const RAMP: f64 = 4.0;

/// First in, first out; an arrival that does not fit is refused.
#[derive(Debug)]
pub struct DropTail {
    capacity: Capacity,
    bytes: Size,
    packets: VecDeque<Pkt>,
}

impl DropTail {
    /// An empty queue.
    pub const fn new(capacity: Capacity) -> Self {
        Self { capacity, bytes: Size::ZERO, packets: VecDeque::new() }
    }

    /// Takes the packet, if it fits beside `others` packets of `bytes` bytes.
    fn push_beside(&mut self, packet: Pkt, others: usize, bytes: Size) -> Result<(), Pkt> {
        let size = packet.wire_len();
        let fits = match self.capacity {
            Capacity::Packets(n) => self.packets.len() + others < n as usize,
            Capacity::Bytes(n) => self.bytes + bytes + size <= n,
        };
        if !fits {
            return Err(packet);
        }
        self.bytes += size;
        self.packets.push_back(packet);
        Ok(())
    }

    fn pop(&mut self) -> Option<Pkt> {
        let packet = self.packets.pop_front()?;
        self.bytes = self.bytes - packet.wire_len();
        Some(packet)
    }

    /// Share of the capacity that is in use.
    fn fill(&self) -> f64 {
        match self.capacity {
            Capacity::Packets(n) => self.packets.len() as f64 / f64::from(n.max(1)),
            Capacity::Bytes(n) => self.bytes.0 as f64 / n.0.max(1) as f64,
        }
    }
}

impl From<DropTail> for Queue {
    fn from(tail: DropTail) -> Self {
        Self { tail, priority: None }
    }
}

/// What waits before a link.
#[derive(Debug)]
pub struct Queue {
    /// All packets, or with pushout those of normal priority.
    tail: DropTail,
    /// Boxed: most queues do nothing for low priority.
    priority: Option<Box<Priority>>,
}

#[derive(Debug)]
struct Priority {
    discipline: Discipline,
    /// With pushout: what is served last.
    low: VecDeque<Pkt>,
    low_bytes: Size,
    /// With WRED: drops due, less than one.
    due: f64,
}

impl Queue {
    /// An empty queue.
    pub fn new(capacity: Capacity, discipline: Discipline) -> Self {
        let priority = Priority { discipline, low: VecDeque::new(), low_bytes: Size::ZERO, due: 0.0 };
        Self {
            tail: DropTail::new(capacity),
            priority: (discipline != Discipline::Fifo).then(|| Box::new(priority)),
        }
    }

    /// How much may wait.
    pub const fn capacity(&self) -> Capacity {
        self.tail.capacity
    }

    /// Changes how much may wait; what waits already stays.
    pub const fn set_capacity(&mut self, capacity: Capacity) {
        self.tail.capacity = capacity;
    }

    /// Takes the packet.
    ///
    /// # Errors
    /// Gives back a packet that must be dropped: this one, and then nothing has changed; or one that waited, and then try again with what [`Refused`] holds.
    #[inline]
    pub fn push(&mut self, packet: Pkt) -> Result<(), Refused> {
        match &mut self.priority {
            None => self.tail.push_beside(packet, 0, Size::ZERO).map_err(Refused::Arrival),
            Some(priority) => priority.push(&mut self.tail, packet),
        }
    }

    /// The packet that is served next.
    #[inline]
    pub fn pop(&mut self) -> Option<Pkt> {
        self.tail.pop().or_else(|| self.priority.as_mut()?.pop())
    }

    /// Packets waiting.
    #[inline]
    pub fn len(&self) -> usize {
        self.tail.packets.len() + self.priority.as_ref().map_or(0, |p| p.low.len())
    }

    /// True when nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tail.packets.is_empty() && self.priority.as_ref().is_none_or(|p| p.low.is_empty())
    }

    /// Bytes waiting.
    pub fn backlog(&self) -> Size {
        self.tail.bytes + self.priority.as_ref().map_or(Size::ZERO, |p| p.low_bytes)
    }
}

/// A packet that must be dropped.
#[derive(Debug)]
pub enum Refused {
    /// The arrival itself.
    Arrival(Pkt),
    /// One that waited; the arrival may be tried again.
    Waiting {
        /// To drop.
        evicted: Pkt,
        /// To try again.
        arrival: Pkt,
    },
}

impl Priority {
    fn push(&mut self, tail: &mut DropTail, packet: Pkt) -> Result<(), Refused> {
        let low = packet.dscp == Dscp::LE;
        let refused = match self.discipline {
            Discipline::Pushout if low => return self.push_low(tail, packet),
            Discipline::Pushout => {
                let taken = tail.push_beside(packet, self.low.len(), self.low_bytes);
                return taken.map_err(|arrival| match self.evict() {
                    Some(evicted) => Refused::Waiting { evicted, arrival },
                    None => Refused::Arrival(arrival),
                });
            }
            Discipline::Threshold => low && tail.packets.len() > THRESHOLD,
            Discipline::Wred => low && self.wred_drops(tail),
            Discipline::Fifo => false,
        };
        if refused {
            return Err(Refused::Arrival(packet));
        }
        tail.push_beside(packet, 0, Size::ZERO).map_err(Refused::Arrival)
    }

    fn push_low(&mut self, tail: &DropTail, packet: Pkt) -> Result<(), Refused> {
        let size = packet.wire_len();
        let fits = match tail.capacity {
            Capacity::Packets(n) => tail.packets.len() + self.low.len() < n as usize,
            Capacity::Bytes(n) => tail.bytes + self.low_bytes + size <= n,
        };
        if !fits {
            return Err(Refused::Arrival(packet));
        }
        self.low_bytes += size;
        self.low.push_back(packet);
        Ok(())
    }

    fn evict(&mut self) -> Option<Pkt> {
        let packet = self.low.pop_back()?;
        self.low_bytes = self.low_bytes - packet.wire_len();
        Some(packet)
    }

    fn pop(&mut self) -> Option<Pkt> {
        let packet = self.low.pop_front()?;
        self.low_bytes = self.low_bytes - packet.wire_len();
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
mod tests {
    use super::*;
    use bentpipe_base::{Body, Packet};

    fn packet(payload: u32) -> Pkt {
        let mut p = Packet { body: Body { off: 0, len: payload }, ..Packet::default() };
        p.seal();
        Box::new(p)
    }

    fn low(payload: u32) -> Pkt {
        let mut p = packet(payload);
        p.dscp = Dscp::LE;
        p
    }

    /// What comes out, by payload.
    fn order(q: &mut Queue) -> Vec<u32> {
        core::iter::from_fn(|| q.pop()).map(|p| p.body.len).collect()
    }

    #[test]
    fn refuses_what_does_not_fit_in_packets_and_in_bytes() {
        let mut q = Queue::new(Capacity::Packets(2), Discipline::Fifo);
        assert!(q.push(packet(1000)).is_ok() && q.push(packet(1)).is_ok());
        assert!(q.push(packet(1)).is_err());
        let mut q = Queue::new(Capacity::Bytes(Size(2080)), Discipline::Fifo);
        assert!(q.push(packet(1000)).is_ok() && q.push(packet(1000)).is_ok());
        assert!(q.push(packet(0)).is_err());
        assert_eq!(q.backlog(), Size(2080));
        assert_eq!(q.pop().map(|p| p.body.len), Some(1000));
        assert!(q.push(packet(900)).is_ok());
        assert_eq!((q.len(), q.backlog()), (2, Size(1980)));
    }

    #[test]
    fn fifo_ignores_marks() {
        let mut q = Queue::new(Capacity::Packets(2), Discipline::Fifo);
        assert!(q.push(low(1)).is_ok() && q.push(packet(2)).is_ok());
        assert!(matches!(q.push(packet(3)), Err(Refused::Arrival(p)) if p.body.len == 3));
        assert_eq!(order(&mut q), [1, 2]);
    }

    #[test]
    fn pushout_serves_low_last_and_evicts_the_newest() {
        let mut q = Queue::new(Capacity::Packets(3), Discipline::Pushout);
        assert!(q.push(low(1)).is_ok() && q.push(low(2)).is_ok() && q.push(packet(3)).is_ok());
        assert!(matches!(q.push(low(4)), Err(Refused::Arrival(p)) if p.body.len == 4), "full for its like");
        let Err(Refused::Waiting { evicted, arrival }) = q.push(packet(5)) else { panic!("it is full") };
        assert_eq!((evicted.body.len, arrival.body.len), (2, 5));
        assert!(q.push(arrival).is_ok());
        assert_eq!((q.len(), q.backlog()), (3, Size(3 * 40 + 9)));
        let Err(Refused::Waiting { evicted, arrival }) = q.push(packet(6)) else { panic!("it is full") };
        assert_eq!(evicted.body.len, 1);
        assert!(q.push(arrival).is_ok());
        assert!(matches!(q.push(packet(7)), Err(Refused::Arrival(_))), "nothing left to evict");
        assert_eq!(order(&mut q), [3, 5, 6]);
        assert!(q.is_empty() && q.backlog() == Size::ZERO);
        assert!(q.push(low(8)).is_ok() && q.push(packet(9)).is_ok());
        assert_eq!(order(&mut q), [9, 8]);
    }

    /// A large arrival may need the room of several small ones.
    #[test]
    fn pushout_in_bytes_evicts_as_many_as_it_takes() {
        let mut q = Queue::new(Capacity::Bytes(Size(1000)), Discipline::Pushout);
        for _ in 0..4 {
            assert!(q.push(low(160)).is_ok()); // 200 B each
        }
        let mut arrival = packet(560);
        let mut evicted = 0;
        while let Err(refused) = q.push(arrival) {
            let Refused::Waiting { arrival: again, .. } = refused else { panic!("it fits in the end") };
            arrival = again;
            evicted += 1;
        }
        assert_eq!((evicted, q.len(), q.backlog()), (2, 3, Size(1000)));
    }

    #[test]
    fn threshold_takes_low_only_into_a_short_queue() {
        let mut q = Queue::new(Capacity::Packets(10), Discipline::Threshold);
        assert!(q.push(packet(1)).is_ok() && q.push(low(2)).is_ok());
        assert!(q.push(low(3)).is_err() && q.push(packet(4)).is_ok());
        assert_eq!(order(&mut q), [1, 2, 4]);
    }

    /// Half way up the ramp every other low-priority packet goes, above it all, and none of the others.
    #[test]
    fn wred_drops_low_by_the_fill() {
        let dropped = |waiting: u32| {
            let mut q = Queue::new(Capacity::Packets(80), Discipline::Wred);
            for _ in 0..waiting {
                assert!(q.push(packet(1)).is_ok());
            }
            (0..100)
                .filter(|_| {
                    let refused = q.push(low(1)).is_err();
                    if !refused {
                        let _ = q.pop(); // the length stays
                    }
                    refused
                })
                .count()
        };
        assert_eq!([0, 5, 10, 20, 60].map(dropped), [0, 25, 50, 100, 100]);
    }
}
