//! Queues of packets that only pass, one for each flow, so that no flow waits behind another.
//!
//! Source: the flow queues of FQ-CoDel without CoDel (RFC 8290, section 4). Each flow has turns of its own
//! (`shaper.rs`). When all queues together exceed what the hop carries in a round trip, the longest one loses
//! its newest packet, as the hop's own queue would have dropped it.

use super::priority::PLACES;
use bentpipe_base::Pkt;
use std::collections::VecDeque;

/// The queue of packets that go first, of all flows.
pub(crate) const EXPRESS: usize = PLACES;

/// One queue.
#[derive(Debug, Default)]
struct Lane {
    /// Packets with their cost on the hop and the index of their flow in `Priority`.
    packets: VecDeque<(Pkt, u64, usize)>,
    bytes: u64,
    /// It is among those waiting for a turn.
    has_turn: bool,
}

/// All queues.
#[derive(Debug, Default)]
pub(crate) struct Passing {
    /// Empty until a packet is queued.
    lanes: Vec<Lane>,
    bytes: u64,
    /// The longest queue, approximately.
    longest: usize,
}

impl Passing {
    /// Appends a packet to a queue.
    pub(crate) fn push(&mut self, lane: usize, place: usize, packet: Pkt, cost: u64) {
        if self.lanes.is_empty() {
            self.lanes.resize_with(PLACES + 1, Lane::default);
        }
        let this = &mut self.lanes[lane];
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
        Some(taken)
    }

    /// Removes the last packet of the longest queue.
    pub(crate) fn shorten(&mut self) -> Option<(Pkt, u64, usize)> {
        let this = self.lanes.get_mut(self.longest)?;
        let taken = this.packets.pop_back()?;
        this.bytes -= taken.1;
        self.bytes -= taken.1;
        Some(taken)
    }

    /// Cost of all queued packets.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if nothing is queued there.
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

    /// Packets in a queue.
    #[cfg(test)]
    pub(crate) fn len(&self, lane: usize) -> usize {
        self.lanes.get(lane).map_or(0, |lane| lane.packets.len())
    }
}
