//! FQ-CoDel: a queue for each flow under CoDel, served in turn by bytes.
//!
//! Source: RFC 8290, sections 4 and 5; the scheduler is deficit round robin with two lists. A packet's flow
//! is hashed to one of `flows` queues. A queue that becomes active goes to the end of the list of new queues
//! with a quantum of credit; new queues are served before old ones, so a flow that sends less than a quantum
//! in a round does not wait for the others. The queue at the head of a list
//!
//! ```text
//! credit <= 0:     gets a quantum more, and goes to the end of the old ones
//! empty:           goes to the end of the old ones if it was new, becomes inactive if it was old
//! else:            CoDel's next packet, whose bytes are taken off the credit
//! ```
//!
//! When an arrival makes the total exceed the buffer, the queue with the most bytes drops packets from its
//! front: half of its bytes, but at most 64 packets (section 4.1). Flows with the same hash share a queue;
//! the hash has a key, so that it differs between runs (section 5.3).
//!
//! The link uses only the hash of a packet's flow ([`bentpipe_base::Packet::flow`]).
//!
//! Defaults: 1024 flows; a quantum of 1500 B, an Ethernet MTU without the Ethernet header, which a link does
//! not count (RFC: 1514 B with it); target, interval and ECN as CoDel.
//!
//! Deviations: the buffer is the link's (`buffer`), not 10240 packets. A packet that would not fit into an
//! empty buffer is refused and causes no other drop. CoDel's comparison of `bytes()` with the largest packet
//! counts the flow's own queue, as in RFC 8289; Linux counts all queues.

use crate::codel::{Codel, Control, TimedQueue};
use crate::drop_tail::{Capacity, Dropped, Refused};
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Instant, Packet, Pkt, Size};
use std::collections::VecDeque;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodel {
    /// CoDel parameters of each queue.
    pub codel: Codel,
    /// Bytes that a queue may send in its turn, at least [`FqCodel::LEAST_QUANTUM`].
    pub quantum: Size,
    /// Number of queues, at least 1 and at most [`FqCodel::MOST_FLOWS`].
    pub flows: u32,
}

impl FqCodel {
    /// Largest number of queues, as in Linux.
    pub const MOST_FLOWS: u32 = 65_536;
    /// Smallest quantum, as in Linux: with less, a large packet would take thousands of turns.
    pub const LEAST_QUANTUM: Size = Size(256);
}

impl Default for FqCodel {
    fn default() -> Self {
        Self { codel: Codel::default(), quantum: Size(1500), flows: 1024 }
    }
}

/// Most packets dropped at once from the queue with most bytes.
const BATCH: usize = 64;

#[derive(Debug, Default)]
struct Flow {
    queue: TimedQueue,
    control: Control,
    credit: i64,
    /// True if it is in one of the lists.
    active: bool,
}

#[derive(Debug, Default)]
pub(crate) struct FlowQueues {
    pub(crate) parameters: FqCodel,
    quantum: i64,
    key: u64,
    queues: Vec<Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Packets in all queues, and their bytes.
    pub(crate) packets: usize,
    pub(crate) bytes: Size,
    /// The largest packet seen.
    largest: Size,
}

impl FlowQueues {
    pub(crate) fn new(parameters: FqCodel, key: u64) -> Self {
        let flows = parameters.flows.clamp(1, FqCodel::MOST_FLOWS);
        Self {
            parameters,
            quantum: i64::try_from(parameters.quantum.max(FqCodel::LEAST_QUANTUM).0).unwrap_or(i64::MAX),
            key,
            queues: (0..flows).map(|_| Flow::default()).collect(),
            ..Self::default()
        }
    }

    fn index(&self, packet: &Packet) -> u32 {
        let hash = bentpipe_base::mix(packet.flow() ^ self.key);
        // scales the upper half: no division, negligible bias
        (((hash >> 32) * self.queues.len() as u64) >> 32) as u32
    }

    fn activate(&mut self, index: u32) {
        let flow = &mut self.queues[index as usize];
        if !flow.active {
            flow.active = true;
            flow.credit = self.quantum;
            self.new.push_back(index);
        }
    }

    /// Makes all queues inactive when the link is idle and nothing waits.
    pub(crate) fn rest(&mut self) {
        debug_assert!(self.packets == 0, "packets wait");
        for index in self.new.drain(..).chain(self.old.drain(..)) {
            self.queues[index as usize].active = false;
        }
    }

    /// Accounts for a packet that is served at once because nothing waits, as if it had been queued.
    pub(crate) fn pass(&mut self, packet: &Packet) {
        let index = self.index(packet);
        self.largest = self.largest.max(packet.wire_len());
        self.activate(index);
        let flow = &mut self.queues[index as usize];
        flow.credit = flow.credit.saturating_sub(packet.wire_len().0 as i64);
    }

    pub(crate) fn push(
        &mut self,
        packet: Pkt,
        now: Instant,
        capacity: Capacity,
        dropped: &mut Dropped,
    ) -> Result<(), Refused> {
        let size = packet.wire_len();
        if !capacity.holds(1, size) {
            return Err(Refused::Arrival(packet));
        }
        let index = self.index(&packet);
        self.largest = self.largest.max(size);
        self.packets += 1;
        self.bytes += size;
        self.queues[index as usize].queue.push(now, packet);
        self.activate(index);
        while !capacity.holds(self.packets, self.bytes) {
            self.drop_batch(dropped);
        }
        Ok(())
    }

    /// Drops from the front of the queue with most bytes.
    fn drop_batch(&mut self, dropped: &mut Dropped) {
        let bytes_of = |index: &&u32| self.queues[**index as usize].queue.bytes;
        // reversed: of equals the first, so that the choice is deterministic
        let Some(&index) = self.new.iter().chain(&self.old).rev().max_by_key(bytes_of) else { return };
        let lane = &mut self.queues[index as usize].queue;
        let bytes = lane.bytes;
        for _ in 0..BATCH {
            let Some((_, packet)) = lane.pop() else { break };
            self.packets -= 1;
            self.bytes = self.bytes - packet.wire_len();
            dropped.packets.push_back((packet, DropCause::QueueFull));
            if lane.bytes.0 <= bytes.0 / 2 {
                break;
            }
        }
    }

    pub(crate) fn pop(&mut self, now: Instant, dropped: &mut Dropped) -> Option<Pkt> {
        loop {
            let is_new = !self.new.is_empty();
            let index = *if is_new { self.new.front() } else { self.old.front() }?;
            let flow = &mut self.queues[index as usize];
            if flow.credit <= 0 {
                self.replenish(index);
                continue;
            }
            let before = (flow.queue.packets.len(), flow.queue.bytes);
            let packet =
                flow.control.dequeue(&self.parameters.codel, &mut flow.queue, (now, self.largest), dropped);
            self.packets -= before.0 - flow.queue.packets.len();
            self.bytes = self.bytes - (before.1 - flow.queue.bytes);
            match packet {
                Some(packet) => {
                    flow.credit = flow.credit.saturating_sub(packet.wire_len().0 as i64);
                    return Some(packet);
                }
                None if is_new => {
                    self.new.pop_front();
                    self.old.push_back(index);
                }
                None => {
                    flow.active = false;
                    self.old.pop_front();
                }
            }
        }
    }

    /// Gives the queue at the head a quantum and moves it to the end of the old ones.
    fn replenish(&mut self, index: u32) {
        if self.new.pop_front().is_none() {
            self.old.pop_front();
        }
        self.old.push_back(index);
        let flow = &mut self.queues[index as usize];
        flow.credit = flow.credit.saturating_add(self.quantum);
    }
}

#[cfg(test)]
#[path = "fq_codel_tests.rs"]
mod tests;
