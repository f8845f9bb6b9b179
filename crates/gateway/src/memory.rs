//! Accounting of the memory held for connections.
//!
//! A packet costs more than its payload: its buffer and its list entries. When a packet is cut, each part
//! costs list entries, and the whole buffer stays allocated while any part is held. The buffer is charged to
//! the last part, which is also the last to be freed.

use bentpipe_base::{Packet, Size};

/// Returns the size of the buffer in which a driver keeps `len` bytes. There are four sizes per power of two,
/// so at most a fifth of a buffer is unused. The smallest is 256 B.
pub const fn buffer_size(len: usize) -> usize {
    if len <= 256 {
        return 256;
    }
    let step = len.next_power_of_two() / 8;
    len.div_ceil(step) * step
}

/// Returns the buffer size of a packet.
pub(crate) const fn cost_of(packet: &Packet) -> u64 {
    buffer_size(packet.body.len as usize + packet.header_len as usize) as u64
}

/// Memory use and its limit, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Memory in use, with buffers and list entries.
    pub(crate) used: u64,
    /// Payload held for all connections.
    pub(crate) payload: u64,
    /// Limit of `used`; a connection that would exceed it does not hold the packet.
    pub(crate) limit: u64,
    peak: u64,
}

impl Memory {
    pub(crate) const fn new(limit: Size) -> Self {
        Self { used: 0, payload: 0, limit: limit.0, peak: 0 }
    }

    #[inline]
    pub(crate) fn note(&mut self) {
        self.peak = self.peak.max(self.payload);
    }

    /// Largest amount of payload held so far.
    pub(crate) const fn peak(&self) -> Size {
        Size(self.peak)
    }

    /// True if at most an eighth is left: then no new connection is accelerated.
    pub(crate) const fn is_scarce(&self) -> bool {
        self.used >= self.limit - self.limit / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_scarce_before_it_is_used_up() {
        let mut memory = Memory::new(Size(800));
        assert!(!memory.is_scarce() && Memory::new(Size(0)).is_scarce());
        for (used, is_scarce) in [(699, false), (700, true), (900, true), (10, false)] {
            (memory.used, memory.payload) = (used, used);
            memory.note();
            assert_eq!(memory.is_scarce(), is_scarce, "{used}");
        }
        assert_eq!(memory.peak(), Size(900));
    }

    #[test]
    fn a_packet_costs_its_buffer() {
        let packet =
            |len| Packet { header_len: 40, body: bentpipe_base::Body { off: 0, len }, ..Packet::default() };
        let costs = [1, 216, 217, 1460, 2920, 30_000, 65_000].map(|len| cost_of(&packet(len)));
        assert_eq!(costs, [256, 256, 320, 1536, 3072, 32_768, 65_536]);
    }

    #[test]
    fn a_buffer_is_at_most_a_fifth_empty() {
        for len in 257..70_000 {
            let size = buffer_size(len);
            assert!(size >= len && (size - len) * 5 <= size && buffer_size(size) == size, "{len} {size}");
        }
    }
}
