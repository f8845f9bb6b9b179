//! A queue served by the mark that a flow router left in its packets.
//!
//! Source: TIA-1039 (2006), field DP, and L. G. Roberts' description: capacity that is reserved and not used
//! carries other traffic, and is given back within one packet time.
//!   the highest mark is served first; within one, first in, first out
//!   an arrival that finds the queue full takes the place of the newest packet of the lowest mark
//! So a packet of a flow that was idle waits for the packet in service and for higher marks, no more. The
//! source does not say what other traffic keeps. Here ordinary packets (mark 0) are served once 19 bytes were
//! sent before each of theirs: at least 5 % of the link; and while they have no more than a twentieth of the
//! queue they are not evicted, but make others give way. Nothing is owed to
//! them after they were served for lack of others.

use crate::drop_tail::{Capacity, Refused};
use bentpipe_base::{Pkt, Size};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of others for each byte of ordinary packets.
const OTHERS: u64 = 19;

/// The waiting packets by their marks.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    /// None is empty.
    waiting: BTreeMap<u8, VecDeque<Pkt>>,
    pub(crate) packets: usize,
    pub(crate) bytes: Size,
    /// Bytes of ordinary packets.
    ordinary: Size,
    /// Bytes sent before ordinary packets that waited.
    ahead: u64,
}

impl Levels {
    /// Queues a packet, or says which one must be dropped.
    pub(crate) fn push(&mut self, packet: Pkt, capacity: Capacity) -> Result<(), Refused> {
        let size = packet.wire_len();
        if !capacity.holds(self.packets + 1, self.bytes + size) {
            return Err(match self.evict(packet.priority) {
                Some(evicted) => Refused::Waiting { evicted, arrival: packet },
                None => Refused::Arrival(packet),
            });
        }
        self.packets += 1;
        self.bytes += size;
        if packet.priority == 0 {
            self.ordinary += size;
        }
        self.waiting.entry(packet.priority).or_default().push_back(packet);
        Ok(())
    }

    /// Takes the next packet.
    pub(crate) fn pop(&mut self) -> Option<Pkt> {
        let (highest, first) = self.waiting.last_key_value()?;
        let size = first.front()?.wire_len();
        let ordinary = self.waiting.get(&0).and_then(VecDeque::front).map(|packet| packet.wire_len().0);
        let (level, ahead) = match ordinary {
            Some(own) if *highest > 0 && self.ahead >= own * OTHERS => (0, self.ahead - own * OTHERS),
            Some(_) if *highest > 0 => (*highest, self.ahead + size.0),
            _ => (*highest, 0),
        };
        self.ahead = ahead;
        self.take(level, VecDeque::pop_front)
    }

    /// Takes the newest packet of the lowest level that must make room for `priority`.
    fn evict(&mut self, priority: u8) -> Option<Pkt> {
        let is_owed = self.ordinary.0 * (OTHERS + 1) <= self.bytes.0;
        let lowest = self.waiting.keys().copied().find(|level| *level > 0 || !is_owed)?;
        let gives_way = lowest < priority || priority == 0 && is_owed;
        if gives_way { self.take(lowest, VecDeque::pop_back) } else { None }
    }

    fn take(&mut self, level: u8, end: fn(&mut VecDeque<Pkt>) -> Option<Pkt>) -> Option<Pkt> {
        let queue = self.waiting.get_mut(&level)?;
        let packet = end(queue)?;
        if queue.is_empty() {
            self.waiting.remove(&level);
        }
        let size = packet.wire_len();
        self.packets -= 1;
        self.bytes = self.bytes - size;
        if level == 0 {
            self.ordinary = self.ordinary - size;
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use crate::drop_tail::{Capacity, Refused};
    use crate::queue::tests::{order, packet};
    use crate::queue::{Discipline, Queue};
    use bentpipe_base::{Instant, Pkt, Size};

    fn queue(packets: u32) -> Queue {
        Queue::new(Capacity::Packets(packets), Discipline::FlowPriority, 0)
    }

    fn marked(payload: u32, priority: u8) -> Pkt {
        let mut packet = packet(payload);
        packet.priority = priority;
        packet
    }

    fn push(q: &mut Queue, payload: u32, priority: u8) {
        assert!(q.push(marked(payload, priority), Instant::ZERO).is_ok(), "{payload}");
    }

    #[test]
    fn the_highest_mark_is_served_first_and_in_order() {
        let mut q = queue(9);
        for (payload, priority) in [(1, 0), (2, 9), (3, 64), (4, 9), (5, 0)] {
            push(&mut q, payload, priority);
        }
        assert_eq!((q.len(), q.backlog()), (5, Size(5 * 40 + 15)));
        assert_eq!(order(&mut q), [3, 2, 4, 1, 5]);
        assert!(q.is_empty() && q.backlog() == Size::ZERO);
    }

    #[test]
    fn a_full_queue_gives_up_the_newest_of_the_lowest_mark() {
        let mut q = queue(3);
        for (payload, priority) in [(1, 0), (2, 0), (3, 9)] {
            push(&mut q, payload, priority);
        }
        let Err(Refused::Arrival(same)) = q.push(marked(4, 0), Instant::ZERO) else { panic!("it is full") };
        assert_eq!(same.body.len, 4, "its like do not give way");
        let Err(Refused::Waiting { evicted, arrival }) = q.push(marked(5, 1), Instant::ZERO) else {
            panic!("an ordinary one gives way")
        };
        assert_eq!(evicted.body.len, 2);
        assert!(q.push(arrival, Instant::ZERO).is_ok());
        assert_eq!(order(&mut q), [3, 5, 1]);
    }

    #[test]
    fn ordinary_packets_keep_a_twentieth_however_many_come_before_them() {
        let mut q = queue(100);
        let (mut ordinary, mut sent) = (0, 0);
        for n in 0..20_000 {
            for (payload, priority) in [(960, 64), (960, 0)] {
                let mut arrival = marked(payload, priority);
                while let Err(refused) = q.push(arrival, Instant::ZERO) {
                    let Refused::Waiting { arrival: again, .. } = refused else { break };
                    arrival = again;
                }
            }
            if n >= 1000 {
                sent += 1;
                ordinary += u32::from(q.pop(Instant::ZERO).is_some_and(|packet| packet.priority == 0));
            }
        }
        let share = f64::from(ordinary) / f64::from(sent);
        assert!((share - 0.05).abs() < 0.001, "{share}");
    }

    /// What was served for lack of others counts: a flow that was idle does not pay for it.
    #[test]
    fn a_packet_after_idleness_waits_for_none_that_is_not_in_service() {
        let mut q = queue(100);
        (0..50).for_each(|n| push(&mut q, n, 0));
        for _ in 0..10 {
            assert_eq!(q.pop(Instant::ZERO).map(|packet| packet.priority), Some(0));
        }
        for _ in 0..5 {
            push(&mut q, 7, 1);
            assert_eq!(q.pop(Instant::ZERO).map(|packet| packet.priority), Some(1));
            assert_eq!(q.pop(Instant::ZERO).map(|packet| packet.priority), Some(0));
        }
    }
}
