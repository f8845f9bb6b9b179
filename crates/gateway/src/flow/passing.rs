//! What passes and waits for the hop: a queue for each flow, so that no flow waits behind another.
//!
//! Source: flow queues of FQ-CoDel without its CoDel (RFC 8290, section 4): each flow has turns of its own (`shaper.rs`), and when all of them together are full, the longest
//! one loses its newest packet, as the queue of the hop would have dropped it. All hold at most what the hop carries in a round trip.

use super::priority::PLACES;
use bentpipe_base::Pkt;
use std::collections::VecDeque;

/// The queue of what goes first, whatever its flow.
pub(crate) const EXPRESS: usize = PLACES;

/// One queue.
#[derive(Debug, Default)]
struct Lane {
    /// Packets, with what each costs on the hop and where its flow has its place.
    packets: VecDeque<(Pkt, u64, usize)>,
    bytes: u64,
    /// It stands among those who wait for their turn.
    has_turn: bool,
}

/// All queues.
#[derive(Debug, Default)]
pub(crate) struct Passing {
    /// None until something waits.
    lanes: Vec<Lane>,
    bytes: u64,
    /// The longest queue as far as is known.
    longest: usize,
}

impl Passing {
    /// Puts a packet at the end of a queue.
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

    /// Takes the first packet of a queue, with what it costs and the place of its flow.
    pub(crate) fn pop(&mut self, lane: usize) -> Option<(Pkt, u64, usize)> {
        let this = self.lanes.get_mut(lane)?;
        let taken = this.packets.pop_front()?;
        this.bytes -= taken.1;
        self.bytes -= taken.1;
        Some(taken)
    }

    /// Takes the last packet of the longest queue.
    pub(crate) fn shorten(&mut self) -> Option<(Pkt, u64, usize)> {
        let this = self.lanes.get_mut(self.longest)?;
        let taken = this.packets.pop_back()?;
        this.bytes -= taken.1;
        self.bytes -= taken.1;
        Some(taken)
    }

    /// What all of it costs.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Nobody waits in it.
    pub(crate) fn is_empty(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_none_or(|lane| lane.packets.is_empty())
    }

    /// Gives a queue a turn; false when it has one or nothing waits in it.
    pub(crate) fn enter(&mut self, lane: usize) -> bool {
        let Some(lane) = self.lanes.get_mut(lane) else { return false };
        let enters = !lane.has_turn && !lane.packets.is_empty();
        lane.has_turn |= enters;
        enters
    }

    /// A queue has no turn any more.
    pub(crate) fn leave(&mut self, lane: usize) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.has_turn = false;
        }
    }

    /// Takes any packet, of each queue in order.
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
