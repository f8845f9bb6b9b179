//! A digest of what comes out of a network: of every wire packet when it was due, where, and its bytes.

use crate::buffers::{Buffers, Handle, WHOLE};
use bentpipe_base::Instant;
use bentpipe_wire::offload::HEADER_SPACE;

/// Digest of wire packets in the order in which they came out.
#[derive(Clone, Debug, Default)]
pub struct Digest(blake3::Hasher);

impl Digest {
    /// Adds the wire packet `handle`, which was due at `host` at `due`, and that was marked or not.
    pub fn add(&mut self, due: Instant, host: usize, (handle, ce): (Handle, bool), buffers: &Buffers) {
        let Some((cut, bytes)) = buffers.get(handle.slot) else { return };
        let range = match handle.piece {
            WHOLE => 0..cut.pieces(),
            piece => usize::from(piece)..usize::from(piece) + 1,
        };
        let mut header = [0; HEADER_SPACE];
        let mut part = cut.piece(bytes, range, &mut header);
        if ce {
            part.mark_ce(bytes, &mut header);
        }
        let payload = bytes.get(part.payload).unwrap_or_default();
        for number in [due.0, host as u64, (part.header_len + payload.len()) as u64] {
            self.0.update(&number.to_le_bytes());
        }
        self.0.update(&header[..part.header_len]);
        self.0.update(payload);
    }

    /// The digest so far.
    pub fn finish(&self) -> blake3::Hash {
        self.0.finalize()
    }
}
