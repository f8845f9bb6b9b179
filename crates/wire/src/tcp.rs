//! TCP (RFC 9293, section 3.1): a checked view.

use crate::error::{Fault, WireError};
use bentpipe_base::Flags;
use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned};

/// The fixed part of a TCP header, field by field.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TcpFixed {
    /// Source port.
    pub sport: U16,
    /// Destination port.
    pub dport: U16,
    /// Sequence number.
    pub seq: U32,
    /// Acknowledgment number.
    pub ack: U32,
    /// Header length in 32-bit words in the upper half, reserved bits in the lower.
    pub data_offset: u8,
    /// The flags.
    pub flags: u8,
    /// Window, unscaled.
    pub window: U16,
    /// Checksum over pseudo-header, header and payload.
    pub checksum: U16,
    /// Urgent pointer.
    pub urgent: U16,
}

impl TcpFixed {
    /// Bytes of the header, options included, as the header states it.
    pub const fn header_len(&self) -> usize {
        (self.data_offset >> 4) as usize * 4
    }
    /// The flags as a value.
    pub const fn flags(&self) -> Flags {
        Flags(self.flags)
    }
}

/// A TCP segment: `&[u8]` to read, `&mut [u8]` to write.
#[derive(Debug)]
pub struct Tcp<B: SplitByteSlice> {
    /// The fixed header.
    pub header: Ref<B, TcpFixed>,
    /// Options, padding included.
    pub options: B,
    /// The payload.
    pub payload: B,
}

impl<B: SplitByteSlice> Tcp<B> {
    /// Checks lengths, not the checksum; `bytes` must end where the IP packet ends.
    ///
    /// # Errors
    /// If the bytes end too early or the header length is impossible.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        let truncated = WireError::new(Fault::Truncated, bytes.len());
        let (header, rest) = Ref::<B, TcpFixed>::from_prefix(bytes).map_err(|_| truncated)?;
        let Some(options_len) = header.header_len().checked_sub(size_of::<TcpFixed>()) else {
            return Err(WireError::new(Fault::HeaderLength, 12));
        };
        let (options, payload) = rest.split_at(options_len).map_err(|_| truncated)?;
        Ok(Self { header, options, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: [u8; 26] = [
        0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x60, 0x12, 0xfa, 0xf0, 0, 0, 0, 0, 2, 4, 5, 0xb4, b'h',
        b'i',
    ];

    #[test]
    fn fields_are_where_the_rfc_puts_them() {
        let tcp = Tcp::new(&SEGMENT[..]).unwrap();
        assert_eq!((tcp.header.sport.get(), tcp.header.dport.get()), (12345, 80));
        assert_eq!((tcp.header.seq.get(), tcp.header.ack.get()), (1, 2));
        assert_eq!(tcp.header.flags(), Flags::SYN.with(Flags::ACK));
        assert_eq!(
            (tcp.header.window.get(), tcp.options, tcp.payload),
            (64240, &[2, 4, 5, 0xb4][..], &b"hi"[..])
        );
    }

    #[test]
    fn impossible_headers_are_refused() {
        let mut bytes = SEGMENT;
        bytes[12] = 0x40;
        assert_eq!(Tcp::new(&bytes[..]).map(|_| ()).unwrap_err(), WireError::new(Fault::HeaderLength, 12));
        bytes[12] = 0x70;
        assert_eq!(Tcp::new(&bytes[..]).map(|_| ()).unwrap_err(), WireError::new(Fault::Truncated, 26));
        assert_eq!(Tcp::new(&bytes[..19]).map(|_| ()).unwrap_err(), WireError::new(Fault::Truncated, 19));
    }
}
