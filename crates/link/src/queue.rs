//! Drop-tail queue, bounded in packets or bytes. The packet in service is not counted.

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

    /// How much may wait.
    pub const fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Changes how much may wait; what waits already stays.
    pub const fn set_capacity(&mut self, capacity: Capacity) {
        self.capacity = capacity;
    }

    /// Takes the packet.
    ///
    /// # Errors
    /// Gives it back when there is no room.
    pub fn push(&mut self, packet: Pkt) -> Result<(), Pkt> {
        let size = packet.wire_len();
        let fits = match self.capacity {
            Capacity::Packets(n) => self.packets.len() < n as usize,
            Capacity::Bytes(n) => self.bytes + size <= n,
        };
        if !fits {
            return Err(packet);
        }
        self.bytes += size;
        self.packets.push_back(packet);
        Ok(())
    }

    /// The packet that is served next.
    pub fn pop(&mut self) -> Option<Pkt> {
        let packet = self.packets.pop_front()?;
        self.bytes = self.bytes - packet.wire_len();
        Some(packet)
    }

    /// Packets waiting.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Bytes waiting.
    pub const fn backlog(&self) -> Size {
        self.bytes
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

    #[test]
    fn refuses_what_does_not_fit_in_packets_and_in_bytes() {
        let mut q = DropTail::new(Capacity::Packets(2));
        assert!(q.push(packet(1000)).is_ok() && q.push(packet(1)).is_ok());
        assert!(q.push(packet(1)).is_err());
        let mut q = DropTail::new(Capacity::Bytes(Size(2080)));
        assert!(q.push(packet(1000)).is_ok() && q.push(packet(1000)).is_ok());
        assert!(q.push(packet(0)).is_err());
        assert_eq!(q.backlog(), Size(2080));
        assert_eq!(q.pop().map(|p| p.body.len), Some(1000));
        assert!(q.push(packet(900)).is_ok());
        assert_eq!((q.len(), q.backlog()), (2, Size(1980)));
    }
}
