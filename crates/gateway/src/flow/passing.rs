//! Queues of packets that only pass, one for each flow, so that no flow waits behind another.
//!
//! Source: the flow queues of FQ-CoDel without CoDel (RFC 8290, section 4). Each flow has turns of its own
//! (`shaper.rs`). When all queues together hold more than the hop carries in a round trip, the longest one
//! loses its newest packet, as the hop's own queue would have dropped it.

use super::priority::PLACES;
use bentpipe_base::Pkt;
use std::collections::VecDeque;

/// The queue of packets that go first, of all flows.
pub(crate) const EXPRESS: usize = PLACES;

#[derive(Debug, Default)]
struct FlowQueue {
    /// Packets with their cost on the hop and the index of their flow in `Priority`.
    packets: VecDeque<(Pkt, u64, usize)>,
    bytes: u64,
    /// It is among those waiting for a turn.
    has_turn: bool,
}

#[derive(Debug, Default)]
pub(crate) struct PassingQueues {
    /// Empty until a packet is queued.
    lanes: Vec<FlowQueue>,
    bytes: u64,
    /// Queues that are not empty.
    used: u64,
    /// A queue that was the longest: searched again when it is shorter than the mean.
    longest: usize,
}

impl PassingQueues {
    pub(crate) fn push(&mut self, lane: usize, place: usize, packet: Pkt, cost: u64) {
        if self.lanes.is_empty() {
            self.lanes.resize_with(PLACES + 1, FlowQueue::default);
        }
        let this = &mut self.lanes[lane];
        self.used += u64::from(this.packets.is_empty());
        this.packets.push_back((packet, cost, place));
        this.bytes += cost;
        self.bytes += cost;
        if this.bytes > self.lanes[self.longest].bytes {
            self.longest = lane;
        }
    }

    /// Removes the first packet of a queue; returns it with its cost and the index of its flow.
    pub(crate) fn pop(&mut self, lane: usize) -> Option<(Pkt, u64, usize)> {
        let this = self.lanes.get_mut(lane)?;
        let taken = this.packets.pop_front()?;
        this.bytes -= taken.1;
        self.bytes -= taken.1;
        self.used -= u64::from(this.packets.is_empty());
        Some(taken)
    }

    /// Removes the last packet of the longest queue, or of one that is not shorter than the mean.
    pub(crate) fn shorten(&mut self) -> Option<(Pkt, u64, usize)> {
        if self.lanes.get(self.longest)?.bytes * self.used < self.bytes {
            self.longest = (0..self.lanes.len()).max_by_key(|lane| self.lanes[*lane].bytes)?;
        }
        let this = &mut self.lanes[self.longest];
        let taken = this.packets.pop_back()?;
        this.bytes -= taken.1;
        self.bytes -= taken.1;
        self.used -= u64::from(this.packets.is_empty());
        Some(taken)
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_empty(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_none_or(|lane| lane.packets.is_empty())
    }

    /// Marks a queue as waiting for a turn; false if it already is or is empty.
    pub(crate) fn enter(&mut self, lane: usize) -> bool {
        let Some(lane) = self.lanes.get_mut(lane) else { return false };
        let enters = !lane.has_turn && !lane.packets.is_empty();
        lane.has_turn |= enters;
        enters
    }

    /// The queue does not wait for a turn any more.
    pub(crate) fn leave(&mut self, lane: usize) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.has_turn = false;
        }
    }

    /// Removes the first packet of any queue.
    pub(crate) fn any(&mut self) -> Option<(Pkt, u64, usize)> {
        if self.bytes == 0 {
            return None;
        }
        let lane = self.lanes.iter().position(|lane| !lane.packets.is_empty())?;
        self.pop(lane)
    }

    #[cfg(test)]
    pub(crate) fn len(&self, lane: usize) -> usize {
        self.lanes.get(lane).map_or(0, |lane| lane.packets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Packet;

    /// Queue 1 was the longest, and has been served down to one packet when too much waits in all.
    #[test]
    fn a_queue_that_was_the_longest_is_not_dropped_from() {
        let mut queues = PassingQueues::default();
        let push = |queues: &mut PassingQueues, lane, count| {
            (0..count).for_each(|_| queues.push(lane, lane, Box::<Packet>::default(), 1500));
        };
        push(&mut queues, 1, 9);
        push(&mut queues, 2, 8);
        while queues.len(1) > 1 {
            queues.pop(1);
        }
        assert_eq!(queues.shorten().map(|taken| taken.2), Some(2));
        assert_eq!((queues.len(1), queues.len(2), queues.bytes()), (1, 7, 8 * 1500));
        while queues.shorten().is_some() {}
        assert_eq!((queues.bytes(), queues.used), (0, 0));
    }
}
