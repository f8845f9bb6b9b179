//! First in, first out, and what all disciplines share: how much may wait, and what is refused or dropped.

use bentpipe_base::trace::DropCause;
use bentpipe_base::{Pkt, Size};
use std::collections::VecDeque;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes on the wire.
    Bytes(Size),
}

impl Capacity {
    /// True when so many packets of so many bytes together may wait.
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
pub struct DropTail {
    pub(crate) capacity: Capacity,
    pub(crate) bytes: Size,
    pub(crate) packets: VecDeque<Pkt>,
}

impl DropTail {
    /// An empty queue.
    pub const fn new(capacity: Capacity) -> Self {
        Self { capacity, bytes: Size::ZERO, packets: VecDeque::new() }
    }

    /// How much may wait.
    pub(crate) const fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Takes the packet, if it fits beside `others` packets of `bytes` bytes.
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

/// What a discipline that manages its queue did to packets that waited.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    pub(crate) packets: VecDeque<(Pkt, DropCause)>,
    /// Packets marked CE.
    pub(crate) marked: u64,
}

impl Dropped {
    pub(crate) fn push(&mut self, packet: Pkt, cause: DropCause) {
        self.packets.push_back((packet, cause));
    }

    /// What was dropped and not taken yet.
    #[cfg(test)]
    pub(crate) const fn packets(&self) -> &VecDeque<(Pkt, DropCause)> {
        &self.packets
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
