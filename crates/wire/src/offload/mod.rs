//! Super-packets: packets from the kernel whose segmentation (GSO) and checksums are left to the receiver.
//!
//! The sender's stack builds one packet of up to 64 KB and a [`VnetHeader`] that says how to segment it.
//! [`SuperPacket`] reads the two and finds the wire packets without touching the payload;
//! [`SuperPacket::piece`] writes the headers of one, or of several consecutive ones that stay a super-packet.
//! Offsets count from the IP header.

mod segmentation;
mod super_headers;
#[cfg(test)]
mod tests;

pub use segmentation::{HEADER_SPACE, Piece, SuperPacket};
pub use super_headers::emit_super_packet;

use crate::checksum::Sum;
use crate::error::{Fault, WireError};
use core::net::IpAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The kernel's `virtio_net_hdr` in its 10-byte form (linux/virtio_net.h), in the machine's byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct VnetHeader {
    /// [`VnetHeader::NEEDS_CSUM`], [`VnetHeader::DATA_VALID`].
    pub flags: u8,
    /// The type of segmentation.
    pub gso_type: u8,
    /// Bytes of headers that each segment repeats; a hint.
    pub hdr_len: u16,
    /// Payload bytes of each segment except the last.
    pub gso_size: u16,
    /// Where the bytes covered by the checksum begin.
    pub csum_start: u16,
    /// Offset of the checksum field from `csum_start`.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// The checksum field holds the sum of the pseudo-header only.
    pub const NEEDS_CSUM: u8 = 1;
    /// The checksum was verified.
    pub const DATA_VALID: u8 = 2;
    /// No segmentation.
    pub const GSO_NONE: u8 = 0;
    /// TCP over IPv4.
    pub const GSO_TCPV4: u8 = 1;
    /// TCP over IPv6.
    pub const GSO_TCPV6: u8 = 4;
    /// UDP, each segment a separate datagram.
    pub const GSO_UDP_L4: u8 = 5;
    /// Flag in the type: the packet carries ECN's CWR.
    pub const GSO_ECN: u8 = 0x80;

    /// True when the checksum field holds the sum of the pseudo-header only.
    pub const fn is_partial(&self) -> bool {
        self.flags & Self::NEEDS_CSUM != 0
    }

    /// Returns the same header for bytes that begin `by` earlier, for example with a link-layer header.
    #[must_use]
    pub const fn with_prefix(mut self, by: u16) -> Self {
        if self.is_partial() {
            self.csum_start = self.csum_start.saturating_add(by);
        }
        if self.hdr_len != 0 {
            self.hdr_len = self.hdr_len.saturating_add(by);
        }
        self
    }

    /// Returns the same header for bytes that begin `by` later: the inverse of [`VnetHeader::with_prefix`].
    #[must_use]
    pub const fn without_prefix(mut self, by: u16) -> Self {
        if self.is_partial() {
            self.csum_start = self.csum_start.saturating_sub(by);
        }
        self.hdr_len = self.hdr_len.saturating_sub(by);
        self
    }
}

/// Offset of the checksum field in a TCP header.
pub const TCP_CHECKSUM: u16 = 16;
/// Offset of the checksum field in a UDP header.
const UDP_CHECKSUM: u16 = 6;

/// Reads a 16-bit field; 0 outside the header.
#[inline]
pub fn read_word(header: &[u8], at: usize) -> u16 {
    header.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}

/// Writes a 16-bit field; does nothing outside the header.
#[inline]
pub fn write_word(header: &mut [u8], at: usize, value: u16) {
    if let Some(field) = header.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

/// Completes a partial checksum, as a network card would. `bytes` is one wire packet, not a super-packet.
/// Returns false if the checksum is not partial or `vnet` points outside the packet.
///
/// A UDP checksum of 0 is sent as 0xffff, because 0 means that there is none (RFC 768).
pub fn complete(bytes: &mut [u8], vnet: &VnetHeader) -> bool {
    if !vnet.is_partial() {
        return false;
    }
    let start = usize::from(vnet.csum_start);
    let at = start + usize::from(vnet.csum_offset);
    let Some(sum) = bytes.get(start..).map(|covered| Sum::of(covered).finish()) else { return false };
    let Some(field) = bytes.get_mut(at..at + 2) else { return false };
    let sum = if sum == 0 && vnet.csum_offset == UDP_CHECKSUM { 0xffff } else { sum };
    field.copy_from_slice(&sum.to_be_bytes());
    true
}

/// Reads source and destination address.
///
/// # Errors
/// If the bytes are not an IP packet, or end before its addresses.
pub fn addresses(bytes: &[u8]) -> Result<(IpAddr, IpAddr), WireError> {
    let truncated = WireError::new(Fault::Truncated, bytes.len());
    match bytes.first().map(|b| b >> 4) {
        Some(4) => {
            let src = bytes.get(12..).and_then(|b| b.first_chunk::<4>()).ok_or(truncated)?;
            let dst = bytes.get(16..).and_then(|b| b.first_chunk::<4>()).ok_or(truncated)?;
            Ok((IpAddr::from(*src), IpAddr::from(*dst)))
        }
        Some(6) => {
            let src = bytes.get(8..).and_then(|b| b.first_chunk::<16>()).ok_or(truncated)?;
            let dst = bytes.get(24..).and_then(|b| b.first_chunk::<16>()).ok_or(truncated)?;
            Ok((IpAddr::from(*src), IpAddr::from(*dst)))
        }
        Some(other) => Err(WireError::new(Fault::Version(other), 0)),
        None => Err(truncated),
    }
}
