//! UDP (RFC 768): a checked view.

use crate::UDP;
use crate::checksum::pseudo_header;
use crate::error::{Fault, WireError};
use crate::layout::Ends;
use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned};

/// A UDP header, field by field.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct UdpHeader {
    /// Source port.
    pub sport: U16,
    /// Destination port.
    pub dport: U16,
    /// Bytes of header and payload.
    pub len: U16,
    /// Checksum over pseudo-header, header and payload; 0 means none.
    pub checksum: U16,
}

/// A UDP datagram: `&[u8]` to read, `&mut [u8]` to write.
#[derive(Debug)]
pub struct Udp<B: SplitByteSlice> {
    /// The header.
    pub header: Ref<B, UdpHeader>,
    /// The payload, as long as the header says.
    pub payload: B,
}

impl<B: SplitByteSlice> Udp<B> {
    /// Checks lengths, not the checksum.
    ///
    /// # Errors
    /// If the bytes end too early, or the length is below that of the header.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        let truncated = WireError::new(Fault::Truncated, bytes.len());
        let (header, rest) = Ref::<B, UdpHeader>::from_prefix(bytes).map_err(|_| truncated)?;
        let Some(payload_len) = usize::from(header.len.get()).checked_sub(size_of::<UdpHeader>()) else {
            return Err(WireError::new(Fault::TotalLength, 4));
        };
        let (payload, _) = rest.split_at(payload_len).map_err(|_| truncated)?;
        Ok(Self { header, payload })
    }

    /// True if the checksum is correct for these addresses, or if the sender left it out.
    pub fn checksum_holds(&self, ends: &Ends) -> bool {
        let len = usize::from(self.header.len.get());
        let sum = pseudo_header(ends, UDP, len).bytes(Ref::bytes(&self.header)).bytes(&self.payload);
        self.header.checksum.get() == 0 || sum.fold() == 0xffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn lengths_and_checksum() {
        let ends = Ends::V4 { src: Ipv4Addr::new(192, 0, 2, 1), dst: Ipv4Addr::new(198, 51, 100, 2) };
        let mut bytes = [0, 53, 0, 54, 0, 11, 0, 0, b'a', b'b', b'c', 0xee];
        let sum = pseudo_header(&ends, UDP, 11).bytes(&bytes[..11]).finish();
        assert!(Udp::new(&bytes[..]).unwrap().checksum_holds(&ends)); // left out
        bytes[6..8].copy_from_slice(&sum.to_be_bytes());
        let udp = Udp::new(&bytes[..]).unwrap();
        assert_eq!(udp.payload, b"abc");
        assert!(udp.checksum_holds(&ends));
        bytes[9] ^= 1;
        assert!(!Udp::new(&bytes[..]).unwrap().checksum_holds(&ends));
        bytes[5] = 7;
        assert_eq!(Udp::new(&bytes[..]).map(|_| ()).unwrap_err(), WireError::new(Fault::TotalLength, 4));
        bytes[5] = 13;
        assert_eq!(Udp::new(&bytes[..]).map(|_| ()).unwrap_err(), WireError::new(Fault::Truncated, 12));
        assert_eq!(Udp::new(&bytes[..7]).map(|_| ()).unwrap_err(), WireError::new(Fault::Truncated, 7));
    }
}
