//! IPv6 (RFC 8200): a checked view, and a parser of extension headers.

use crate::error::{Fault, WireError};
use crate::layout::Fragment;
use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned};

/// The fixed IPv6 header, field by field.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv6Header {
    /// Version (6), eight bits of traffic class, twenty of flow label.
    pub version_class_label: U32,
    /// Bytes after this header, extension headers included.
    pub payload_len: U16,
    /// Protocol of the first header after this one.
    pub next_header: u8,
    /// Hops left.
    pub hop_limit: u8,
    /// Source address.
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
}

impl Ipv6Header {
    /// DSCP in the upper six bits, ECN in the lower two.
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_label.get() >> 20) as u8
    }
}

/// An IPv6 packet: `&[u8]` to read, `&mut [u8]` to write.
#[derive(Debug)]
pub struct Ipv6<B: SplitByteSlice> {
    /// The fixed header.
    pub header: Ref<B, Ipv6Header>,
    /// What follows it, extension headers included, without link-layer padding after the packet.
    pub payload: B,
}

/// The result of reading the extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionHeaders {
    /// Protocol of the first header that is not an extension header.
    pub protocol: u8,
    /// Where that header begins, from the start of the packet.
    pub transport: usize,
    /// The fragment header, if there is one. A whole packet may carry one (RFC 6946).
    pub fragment: Option<Fragment>,
}

/// Protocol number of the hop-by-hop header (RFC 8200, section 4.3).
pub const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

impl<B: SplitByteSlice> Ipv6<B> {
    /// Checks version and length; extension headers are checked by [`Ipv6::chain`].
    ///
    /// # Errors
    /// If the bytes are not IPv6, end too early, or are a jumbogram.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        let truncated = WireError::new(Fault::Truncated, bytes.len());
        let (header, rest) = Ref::<B, Ipv6Header>::from_prefix(bytes).map_err(|_| truncated)?;
        let version = (header.version_class_label.get() >> 28) as u8;
        if version != 6 {
            return Err(WireError::new(Fault::Version(version), 0));
        }
        let payload_len = usize::from(header.payload_len.get());
        if payload_len == 0 && header.next_header == HOP_BY_HOP {
            return Err(WireError::new(Fault::Jumbo, 4));
        }
        let (payload, _padding) = rest.split_at(payload_len).map_err(|_| truncated)?;
        Ok(Self { header, payload })
    }

    /// Reads the extension headers up to the transport header. Stops at a fragment other than the first,
    /// which has no more headers, and at an authentication header (RFC 4302), after which nothing may be
    /// changed.
    ///
    /// # Errors
    /// If an extension header reaches past the packet.
    pub fn chain(&self) -> Result<ExtensionHeaders, WireError> {
        let base = size_of::<Ipv6Header>();
        let mut chain =
            ExtensionHeaders { protocol: self.header.next_header, transport: base, fragment: None };
        let mut rest: &[u8] = &self.payload;
        loop {
            let fixed = rest.first_chunk::<8>().copied();
            let len = match chain.protocol {
                ROUTING | DESTINATION => fixed.map(|h| 8 + usize::from(h[1]) * 8),
                // allowed only directly after the fixed header (RFC 8200, section 4.1)
                HOP_BY_HOP if chain.transport == base => fixed.map(|h| 8 + usize::from(h[1]) * 8),
                FRAGMENT => fixed.map(|_| 8),
                _ => return Ok(chain),
            };
            let truncated = WireError::new(Fault::Truncated, base + self.payload.len());
            let (Some(header), Some(len)) = (fixed, len) else { return Err(truncated) };
            let Some((_, behind)) = rest.split_at_checked(len) else { return Err(truncated) };
            if chain.protocol == FRAGMENT {
                let fragment = fragment(header);
                chain.fragment = Some(fragment);
                if fragment.offset != 0 {
                    return Ok(chain);
                }
            }
            chain.protocol = header[0];
            chain.transport += len;
            rest = behind;
        }
    }
}

/// Puts the hop-by-hop header `header` directly behind the IPv6 header at the start of `packet`, and sets its
/// next-header field. Checksums of TCP and UDP do not cover it (RFC 8200, section 8.1).
///
/// # Errors
/// If the packet is not IPv6, has such a header already, or would be too long, or if the length of `header`
/// is no multiple of eight; the packet is then unchanged.
pub fn add_hop_by_hop(header: &[u8], packet: &mut Vec<u8>) -> Result<(), WireError> {
    let base = size_of::<Ipv6Header>();
    let too_long = WireError::new(Fault::TooLong, packet.len());
    let payload_len = (packet.len() + header.len()).checked_sub(base).ok_or(too_long)?;
    let payload_len = u16::try_from(payload_len).map_err(|_| too_long)?;
    let protocol = Ipv6::new(&packet[..])?.header.next_header;
    // its length is in units of eight bytes (section 4.3)
    if protocol == HOP_BY_HOP || header.is_empty() || !header.len().is_multiple_of(8) {
        return Err(WireError::new(Fault::HeaderLength, base));
    }
    packet[4..6].copy_from_slice(&payload_len.to_be_bytes());
    packet[6] = HOP_BY_HOP;
    packet.splice(base..base, header.iter().copied());
    packet[base] = protocol;
    Ok(())
}

/// Returns the hop-by-hop header of an IPv6 packet; `None` if it has none. The packet's chain of headers must
/// have been read ([`Ipv6::chain`]).
pub fn hop_by_hop(packet: &[u8]) -> Option<&[u8]> {
    let (fixed, rest) = packet.split_first_chunk::<{ size_of::<Ipv6Header>() }>()?;
    let has_one = fixed[0] >> 4 == 6 && fixed[6] == HOP_BY_HOP;
    let len = rest.get(1).filter(|_| has_one).map(|units| 8 + usize::from(*units) * 8)?;
    rest.get(..len)
}

/// Reads a fragment header (RFC 8200, section 4.5).
fn fragment(header: [u8; 8]) -> Fragment {
    let bits = u16::from_be_bytes([header[2], header[3]]);
    let id = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    Fragment { id, offset: bits & !7, more: bits & 1 != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(next: u8, behind: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x60, 0, 0, 0, 0, behind.len() as u8, next, 64];
        bytes.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        bytes.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        bytes.extend(behind);
        bytes
    }

    fn chain(next: u8, behind: &[u8]) -> Result<ExtensionHeaders, WireError> {
        Ipv6::new(&packet(next, behind)[..])?.chain()
    }

    #[test]
    fn the_walk_ends_at_the_transport_header() {
        assert_eq!(chain(6, &[1, 2]), Ok(ExtensionHeaders { protocol: 6, transport: 40, fragment: None }));
        let mut behind = vec![ROUTING, 0, 1, 4, 0, 0, 0, 0]; // hop-by-hop options, 8 bytes
        behind.extend([DESTINATION, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]); // routing, 16 bytes
        behind.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        assert_eq!(
            chain(HOP_BY_HOP, &behind),
            Ok(ExtensionHeaders { protocol: 6, transport: 72, fragment: None })
        );
        let hidden = chain(DESTINATION, &[HOP_BY_HOP, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0]);
        assert_eq!(hidden, Ok(ExtensionHeaders { protocol: HOP_BY_HOP, transport: 48, fragment: None }));
        assert_eq!(chain(51, &[6, 1]), Ok(ExtensionHeaders { protocol: 51, transport: 40, fragment: None }));
    }

    #[test]
    fn fragments_are_seen() {
        let first = chain(FRAGMENT, &[6, 0, 0, 1, 0, 0, 0, 9]).unwrap();
        assert_eq!(first.fragment, Some(Fragment { id: 9, offset: 0, more: true }));
        assert_eq!((first.protocol, first.transport), (6, 48));
        let second = chain(FRAGMENT, &[6, 0, 5, 0x00, 0, 0, 0, 9]).unwrap();
        assert_eq!(second.fragment, Some(Fragment { id: 9, offset: 1280, more: false }));
        assert_eq!(second.protocol, FRAGMENT); // it has no transport header
    }

    #[test]
    fn a_hop_by_hop_header_is_added_and_found() {
        let header = [9, 1, 0x3e, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let mut bytes = packet(6, &[1, 2, 3]);
        assert_eq!(hop_by_hop(&bytes), None);
        for wrong in [&header[..12], &[]] {
            assert_eq!(add_hop_by_hop(wrong, &mut bytes), Err(WireError::new(Fault::HeaderLength, 40)));
        }
        add_hop_by_hop(&header, &mut bytes).unwrap();
        let mut expected = packet(HOP_BY_HOP, &[&[6], &header[1..], &[1, 2, 3]].concat());
        assert_eq!((&bytes, hop_by_hop(&bytes)), (&expected, Some(&expected[40..56])));
        assert_eq!(chain(HOP_BY_HOP, &expected[40..]).map(|c| (c.protocol, c.transport)), Ok((6, 56)));
        assert!(add_hop_by_hop(&header, &mut bytes).is_err() && bytes == expected);
        expected.truncate(50);
        assert_eq!(hop_by_hop(&expected), None);
        assert!(add_hop_by_hop(&header, &mut vec![0x45; 60]).is_err());
    }

    #[test]
    fn impossible_packets_are_refused() {
        let whole = packet(6, &[1]);
        assert_eq!(Ipv6::new(&whole[..40]).map(|_| ()).unwrap_err(), WireError::new(Fault::Truncated, 40));
        assert_eq!(Ipv6::new(&whole[..39]).map(|_| ()).unwrap_err(), WireError::new(Fault::Truncated, 39));
        assert_eq!(chain(HOP_BY_HOP, &[]), Err(WireError::new(Fault::Jumbo, 4)));
        assert_eq!(chain(DESTINATION, &[6, 1, 0, 0, 0, 0, 0, 0]), Err(WireError::new(Fault::Truncated, 48)));
        assert_eq!(chain(DESTINATION, &[6]), Err(WireError::new(Fault::Truncated, 41)));
    }
}
