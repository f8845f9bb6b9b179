//! First in, first out; and the types that all disciplines share: the capacity, and refused or dropped
//! packets.

use bentpipe_base::trace::DropCause;
use bentpipe_base::{Pkt, Size};
use std::collections::VecDeque;

/// Capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes on the wire.
    Bytes(Size),
}

impl Capacity {
    /// True if this many packets with this many bytes in total may wait.
    #[inline]
    pub(crate) const fn holds(self, packets: usize, bytes: Size) -> bool {
        match self {
            Self::Packets(n) => packets <= n as usize,
            Self::Bytes(n) => bytes.0 <= n.0,
        }
    }
}

/// First in, first out; an arrival that does not fit is refused.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct DropTail {
    pub(crate) packets: VecDeque<Pkt>,
    pub(crate) bytes: Size,
    pub(crate) capacity: Capacity,
}

impl DropTail {
    pub(crate) const fn new(capacity: Capacity) -> Self {
        Self { capacity, bytes: Size::ZERO, packets: VecDeque::new() }
    }

    /// Queues the packet if it fits beside `others` packets of `bytes` bytes; else returns it.
    pub(crate) fn push_beside(&mut self, packet: Pkt, others: usize, bytes: Size) -> Result<(), Pkt> {
        let size = packet.wire_len();
        if !self.capacity.holds(self.packets.len() + others + 1, self.bytes + bytes + size) {
            return Err(packet);
        }
        self.bytes += size;
        self.packets.push_back(packet);
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<Pkt> {
        let packet = self.packets.pop_front()?;
        self.bytes = self.bytes - packet.wire_len();
        Some(packet)
    }

    /// Share of the capacity that is in use.
    pub(crate) fn fill(&self) -> f64 {
        match self.capacity {
            Capacity::Packets(n) => self.packets.len() as f64 / f64::from(n.max(1)),
            Capacity::Bytes(n) => self.bytes.0 as f64 / n.0.max(1) as f64,
        }
    }
}

/// Waiting packets that a discipline dropped, and the number that it marked.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    pub(crate) packets: VecDeque<(Pkt, DropCause)>,
    /// Packets marked CE.
    pub(crate) marked: u64,
}

/// A packet that must be dropped.
#[derive(Debug)]
pub enum Refused {
    /// The arrival itself.
    Arrival(Pkt),
    /// A waiting packet; the arrival may be tried again.
    Waiting {
        /// The packet to drop.
        evicted: Pkt,
        /// The packet to try again.
        arrival: Pkt,
    },
}
