//! IPv4 (RFC 791): a checked view.

use crate::checksum::Sum;
use crate::error::{Fault, WireError};
use crate::layout::Fragment;
use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned};

/// The fixed part of an IPv4 header, field by field.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv4Header {
    /// Version (4) in the upper half, header length in 32-bit words in the lower.
    pub version_ihl: u8,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// Bytes of header and payload.
    pub total_len: U16,
    /// Identification, for reassembly.
    pub id: U16,
    /// Flags in the upper three bits, fragment offset in 8-byte units below.
    pub fragment: U16,
    /// Hops left.
    pub ttl: u8,
    /// Transport protocol.
    pub protocol: u8,
    /// Checksum of the header.
    pub checksum: U16,
    /// Source address.
    pub src: [u8; 4],
    /// Destination address.
    pub dst: [u8; 4],
}

/// The "don't fragment" bit in [`Ipv4Header::fragment`].
pub(crate) const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

impl Ipv4Header {
    /// Bytes of the header, options included, as the header states it.
    pub const fn header_len(&self) -> usize {
        (self.version_ihl & 0x0f) as usize * 4
    }
    /// The position of a fragment; `None` for a whole packet.
    pub fn part(&self) -> Option<Fragment> {
        let bits = self.fragment.get();
        let (offset, more) = ((bits & 0x1fff) * 8, bits & MORE_FRAGMENTS != 0);
        (offset != 0 || more).then(|| Fragment { id: u32::from(self.id.get()), offset, more })
    }
}

/// An IPv4 packet: `&[u8]` to read, `&mut [u8]` to write.
#[derive(Debug)]
pub struct Ipv4<B: SplitByteSlice> {
    /// The fixed header.
    pub header: Ref<B, Ipv4Header>,
    /// Header options, padding included.
    pub options: B,
    /// The payload, without link-layer padding after the packet.
    pub payload: B,
}

impl<B: SplitByteSlice> Ipv4<B> {
    /// Checks version and lengths, not the checksum.
    ///
    /// # Errors
    /// If the bytes are not IPv4, end too early, or have inconsistent lengths.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        let len = bytes.len();
        let truncated = WireError::new(Fault::Truncated, len);
        let (header, rest) = Ref::<B, Ipv4Header>::from_prefix(bytes).map_err(|_| truncated)?;
        if header.version_ihl >> 4 != 4 {
            return Err(WireError::new(Fault::Version(header.version_ihl >> 4), 0));
        }
        let (header_len, total_len) = (header.header_len(), usize::from(header.total_len.get()));
        let Some(options_len) = header_len.checked_sub(size_of::<Ipv4Header>()) else {
            return Err(WireError::new(Fault::HeaderLength, 0));
        };
        let Some(payload_len) = total_len.checked_sub(header_len) else {
            return Err(WireError::new(Fault::TotalLength, 2));
        };
        let (options, rest) = rest.split_at(options_len).map_err(|_| truncated)?;
        let (payload, _padding) = rest.split_at(payload_len).map_err(|_| truncated)?;
        Ok(Self { header, options, payload })
    }

    /// True if the header checksum is correct.
    pub fn checksum_holds(&self) -> bool {
        Sum::of(Ref::bytes(&self.header)).bytes(&self.options).fold() == 0xffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: [u8; 24] = [
        0x45, 0, 0, 22, 0x12, 0x34, 0x40, 0, 64, 6, 0x4b, 0xab, 192, 0, 2, 1, 198, 51, 100, 2, b'h', b'i', 0,
        0,
    ];

    #[test]
    fn fields_are_where_the_rfc_puts_them() {
        let mut bytes = PACKET;
        let view = Ipv4::new(&bytes[..]).unwrap();
        assert_eq!(view.header.src, [192, 0, 2, 1]);
        assert_eq!(view.header.dst, [198, 51, 100, 2]);
        assert_eq!((view.header.ttl, view.header.protocol), (64, 6));
        assert_eq!(view.payload, b"hi"); // two bytes of padding cut off
        assert_eq!(view.header.part(), None);
        let mut view = Ipv4::new(&mut bytes[..]).unwrap();
        view.header.fragment.set(MORE_FRAGMENTS | 3);
        assert_eq!(view.header.part(), Some(Fragment { id: 0x1234, offset: 24, more: true }));
    }

    #[test]
    fn impossible_headers_are_refused() {
        let with = |at: usize, value: u8| {
            let mut bytes = PACKET;
            bytes[at] = value;
            Ipv4::new(&bytes[..]).map(|_| ()).unwrap_err()
        };
        assert_eq!(with(0, 0x65), WireError::new(Fault::Version(6), 0));
        assert_eq!(with(0, 0x44), WireError::new(Fault::HeaderLength, 0));
        assert_eq!(with(0, 0x46), WireError::new(Fault::TotalLength, 2));
        assert_eq!(with(3, 19), WireError::new(Fault::TotalLength, 2));
        assert_eq!(with(3, 25), WireError::new(Fault::Truncated, 24));
        assert_eq!(Ipv4::new(&PACKET[..19]).map(|_| ()).unwrap_err(), WireError::new(Fault::Truncated, 19));
    }

    #[test]
    fn the_checksum_covers_header_and_options() {
        let mut bytes = [0u8; 24];
        bytes[..20].copy_from_slice(&PACKET[..20]);
        (bytes[0], bytes[3]) = (0x46, 24);
        (bytes[10], bytes[11], bytes[20]) = (0, 0, 7);
        let sum = Sum::of(&bytes).finish();
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        assert!(Ipv4::new(&bytes[..]).unwrap().checksum_holds());
        bytes[20] = 8;
        assert!(!Ipv4::new(&bytes[..]).unwrap().checksum_holds());
    }
}
