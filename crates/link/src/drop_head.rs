//! Drop from the front: an arrival that finds no room replaces the packets that have waited longest.
//!
//! Source: Lakshman, Neidhardt and Ott, "The drop from front strategy in TCP and in TCP over ATM", INFOCOM
//! 1996; RFC 7567, section 4.1. First in, first out like drop-tail, with the same buffer; but the sender
//! learns of the loss a whole queueing delay earlier, and delivered packets have waited less.
//!
//! An arrival that would not fit into an empty buffer is refused and causes no other drop.

use crate::drop_tail::{DropTail, Refused};
use bentpipe_base::{Pkt, Size};

/// Queues the arrival, or returns the packet that must be dropped first.
pub(crate) fn push(tail: &mut DropTail, packet: Pkt) -> Result<(), Refused> {
    if !tail.capacity.holds(1, packet.wire_len()) {
        return Err(Refused::Arrival(packet));
    }
    tail.push_beside(packet, 0, Size::ZERO).map_err(|arrival| match tail.pop() {
        Some(evicted) => Refused::Waiting { evicted, arrival },
        None => Refused::Arrival(arrival),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drop_tail::Capacity;
    use crate::queue::tests::{order, packet};
    use crate::queue::{Discipline, Queue};
    use bentpipe_base::Instant;

    /// Pushes until it is taken or refused; returns the payloads dropped.
    fn push_all(q: &mut Queue, arrival: Pkt) -> Vec<u32> {
        let (mut dropped, mut next) = (Vec::new(), Some(arrival));
        while let Some(packet) = next.take() {
            match q.push(packet, Instant::ZERO) {
                Ok(()) => {}
                Err(Refused::Arrival(p)) => dropped.push(p.body.len),
                Err(Refused::Waiting { evicted, arrival }) => {
                    dropped.push(evicted.body.len);
                    next = Some(arrival);
                }
            }
        }
        dropped
    }

    #[test]
    fn an_arrival_takes_the_place_of_the_oldest() {
        let mut q = Queue::new(Capacity::Packets(2), Discipline::DropHead, 0);
        assert!(push_all(&mut q, packet(1)).is_empty() && push_all(&mut q, packet(2)).is_empty());
        assert_eq!(push_all(&mut q, packet(3)), [1]);
        assert_eq!(push_all(&mut q, packet(4)), [2]);
        assert_eq!(order(&mut q), [3, 4]);
    }

    #[test]
    fn a_large_arrival_takes_the_place_of_as_many_as_it_needs_and_no_more() {
        let mut q = Queue::new(Capacity::Bytes(Size(1000)), Discipline::DropHead, 0);
        for payload in [160, 161, 162, 163] {
            assert!(push_all(&mut q, packet(payload)).is_empty()); // 200 B and a little each
        }
        assert_eq!(push_all(&mut q, packet(500)), [160, 161]);
        assert_eq!((q.len(), q.backlog()), (3, Size(202 + 203 + 540)));
        assert_eq!(push_all(&mut q, packet(961)), [961], "it would not fit into an empty queue");
        assert_eq!(order(&mut q), [162, 163, 500]);
    }

    #[test]
    fn a_buffer_that_became_smaller_is_emptied_from_the_front_by_the_next_arrival() {
        let mut q = Queue::new(Capacity::Packets(4), Discipline::DropHead, 0);
        for payload in 1..=4 {
            assert!(push_all(&mut q, packet(payload)).is_empty());
        }
        q.set_capacity(Capacity::Packets(2));
        assert_eq!(q.len(), 4);
        assert_eq!(push_all(&mut q, packet(5)), [1, 2, 3]);
        q.set_capacity(Capacity::Packets(0));
        assert_eq!(push_all(&mut q, packet(6)), [6]);
        assert_eq!(order(&mut q), [4, 5]);
    }
}
