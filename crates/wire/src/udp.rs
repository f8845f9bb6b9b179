//! UDP (RFC 768).

use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

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
