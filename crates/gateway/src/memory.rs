//! What is held for connections, bounded in all.
//!
//! A packet costs more than its payload: the buffer in which its bytes lie, and its places in the lists. A
//! part of it costs its places, and as long as any part is held so is the whole buffer; it is counted with
//! the last part, which is also the last to go.

use bentpipe_base::{Packet, Size};

/// Size of the buffer in which a driver keeps `len` bytes: there are four sizes between a power of two and
/// the next, so no more than a fifth of a buffer is empty. None is smaller than 256 B.
pub const fn buffer_size(len: usize) -> usize {
    if len <= 256 {
        return 256;
    }
    let step = len.next_power_of_two() / 8;
    len.div_ceil(step) * step
}

/// What the bytes of a packet cost.
pub(crate) const fn cost_of(packet: &Packet) -> u64 {
    buffer_size(packet.body.len as usize + packet.header_len as usize) as u64
}

/// How many bytes are held, and how many may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// What all that is held costs.
    pub(crate) used: u64,
    /// Payload held, by all connections.
    pub(crate) payload: u64,
    /// What it may cost: a connection that wants more passes what it has.
    pub(crate) limit: u64,
    peak: u64,
}

impl Memory {
    /// Nothing held.
    pub(crate) const fn new(limit: Size) -> Self {
        Self { used: 0, payload: 0, limit: limit.0, peak: 0 }
    }

    /// Keeps in mind how many bytes are held now.
    #[inline]
    pub(crate) fn note(&mut self) {
        self.peak = self.peak.max(self.payload);
    }

    /// The most payload that was held.
    pub(crate) const fn peak(&self) -> Size {
        Size(self.peak)
    }

    /// True when so little room is left that no further connection should need it.
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
