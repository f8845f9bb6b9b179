//! A digest of the packets that leave a network: due time, port and bytes of each.

use crate::emit::emit;
use crate::parse::HEADER_SPACE;
use crate::store::Held;
use bentpipe_base::{Instant, Packet};

/// Digest of packets in the order in which they left.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digest(blake3::Hasher);

impl Digest {
    /// Adds a packet that was due at `host` at `due`.
    pub(crate) fn add(&mut self, due: Instant, host: usize, held: &Held<'_>, packet: &Packet) {
        let mut header = [0; HEADER_SPACE];
        let part = emit(held, packet, &mut header);
        let payload = held.bytes.get(part.payload).unwrap_or_default();
        for number in [due.0, host as u64, (part.header_len + payload.len()) as u64] {
            self.0.update(&number.to_le_bytes());
        }
        self.0.update(&header[..part.header_len]);
        self.0.update(payload);
    }

    /// The digest so far.
    pub(crate) fn finish(&self) -> blake3::Hash {
        self.0.finalize()
    }
}
