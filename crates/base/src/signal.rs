//! In-band signalling that a packet carries, as bytes: this crate knows nothing of their layout.
//!
//! An IPv4 packet has them after the TCP or UDP header, an IPv6 packet in a hop-by-hop header. They are no
//! data: they have no sequence space and are not part of the packet's body. They count as header bytes.

use core::fmt;

/// Signalling bytes of one packet: one or two structures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    len: u8,
    bytes: [u8; Self::MAX],
}

impl Signal {
    /// Most bytes of one packet.
    pub const MAX: usize = 32;

    /// `None` without bytes or with more than [`Signal::MAX`].
    pub fn new(given: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX];
        bytes.get_mut(..given.len())?.copy_from_slice(given);
        (!given.is_empty()).then_some(Self { len: given.len() as u8, bytes })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.len)]
    }

    /// Number of bytes.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub const fn len(&self) -> u8 {
        self.len
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signal").field(&self.bytes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IpVersion, Packet, Proto, Size};

    #[test]
    fn signalling_counts_as_header_and_not_as_data() {
        for (ip, plain) in [(IpVersion::V4, 40), (IpVersion::V6, 60)] {
            let mut packet = Packet { ip, ..Packet::default() };
            packet.seal();
            assert_eq!((packet.wire_len(), packet.seq_len()), (Size(plain), 0));
            packet.signal = Signal::new(&[7; 16]).map(Box::new);
            packet.seal();
            assert_eq!((packet.wire_len(), packet.seq_len()), (Size(plain + 16), 0));
            packet.proto = Proto::Udp;
            packet.seal();
            assert_eq!(packet.wire_len(), Size(plain - 20 + 8 + 16));
        }
    }

    #[test]
    fn it_holds_one_or_two_structures() {
        assert!(Signal::new(&[]).is_none() && Signal::new(&[0; 33]).is_none());
        let mut signal = Signal::new(&[1; 32]).unwrap();
        signal.bytes_mut()[31] = 9;
        assert_eq!((signal.len(), signal.bytes()[31]), (32, 9));
    }
}
