//! Super-packets: what the kernel hands over when it leaves cutting (GSO) and checksums to whoever comes after.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The kernel's `virtio_net_hdr` in its 10-byte form (linux/virtio_net.h), in the machine's byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct VnetHeader {
    /// [`VnetHeader::NEEDS_CSUM`], [`VnetHeader::DATA_VALID`].
    pub flags: u8,
    /// What the super-packet is cut into.
    pub gso_type: u8,
    /// Bytes of headers that each piece repeats; a hint.
    pub hdr_len: u16,
    /// Payload of each piece but the last.
    pub gso_size: u16,
    /// Where the checksum begins to count.
    pub csum_start: u16,
    /// Where the checksum field lies, from `csum_start`.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// The checksum field holds the sum of the pseudo-header only.
    pub const NEEDS_CSUM: u8 = 1;
    /// The checksum was verified.
    pub const DATA_VALID: u8 = 2;
    /// Not to be cut.
    pub const GSO_NONE: u8 = 0;
    /// TCP over IPv4.
    pub const GSO_TCPV4: u8 = 1;
    /// TCP over IPv6.
    pub const GSO_TCPV6: u8 = 4;
    /// UDP, each piece a datagram of its own.
    pub const GSO_UDP_L4: u8 = 5;
    /// Added to the type: the segments carry ECN's CWR.
    pub const GSO_ECN: u8 = 0x80;
}
