//! What is held for connections, bounded in all.
//!
//! A packet costs more than its payload: the buffer in which its bytes lie, and its places in the lists. A part of it costs its places, and as long as any part is held so
//! is the whole buffer; it is counted with the last part, which is also the last to go.

use crate::config::Config;
use bentpipe_base::{Packet, Size};

/// What the bytes of a packet cost.
pub(crate) fn cost_of(packet: &Packet, config: &Config) -> u64 {
    let len = u64::from(packet.body.len) + u64::from(packet.header_len);
    let sizes = config.buffers.iter().map(|size| u64::from(*size));
    sizes.filter(|size| *size >= len).min().unwrap_or(len)
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
        let config = Config { buffers: [256, 2048, 16_384, 65_550], ..Config::default() };
        let costs = [1, 216, 217, 1460, 30_000, 100_000].map(|len| cost_of(&packet(len), &config));
        assert_eq!(costs, [256, 256, 2048, 2048, 65_550, 100_040]);
        assert_eq!(cost_of(&packet(1), &Config::default()), 41);
    }
}
