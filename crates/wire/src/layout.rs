//! The offsets of the parts of a packet.

use crate::checksum::{Sum, pseudo_header};
use crate::error::{Fault, WireError};
use crate::ipv4::Ipv4;
use crate::ipv6::Ipv6;
use crate::tcp::{Tcp, TcpFixed};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;

/// Source and destination address of a packet, both of the same family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressPair {
    /// IPv4.
    V4 {
        /// Source.
        src: Ipv4Addr,
        /// Destination.
        dst: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// Source.
        src: Ipv6Addr,
        /// Destination.
        dst: Ipv6Addr,
    },
}

impl AddressPair {
    /// Source and destination address.
    pub fn addresses(&self) -> (IpAddr, IpAddr) {
        match *self {
            Self::V4 { src, dst } => (src.into(), dst.into()),
            Self::V6 { src, dst } => (src.into(), dst.into()),
        }
    }
}

/// The position of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Identification, the same in all fragments.
    pub id: u32,
    /// Where this fragment begins, in bytes.
    pub offset: u16,
    /// True if more fragments follow.
    pub more: bool,
}

impl Fragment {
    /// False for an atomic fragment, which is a whole packet (RFC 6946).
    pub const fn is_partial(&self) -> bool {
        self.offset != 0 || self.more
    }
}

/// The fields of an IPv4 or IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The addresses.
    pub ends: AddressPair,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// Hops left.
    pub hops: u8,
    /// The transport protocol, after any extension headers.
    pub protocol: u8,
    /// Where the transport header begins, in bytes from the start of the packet.
    pub transport: usize,
    /// Where the packet ends; link-layer padding may follow.
    pub end: usize,
    /// The fragment header, if there is one.
    pub fragment: Option<Fragment>,
}

impl Network {
    /// Reads an IPv4 or IPv6 header.
    ///
    /// # Errors
    /// If [`Ipv4::new`], [`Ipv6::new`] or [`Ipv6::chain`] fails.
    pub fn of(bytes: &[u8]) -> Result<Self, WireError> {
        match bytes.first().map(|b| b >> 4) {
            Some(4) => Ok(Self::v4(&Ipv4::new(bytes)?)),
            Some(6) => Self::v6(&Ipv6::new(bytes)?),
            Some(other) => Err(WireError::new(Fault::Version(other), 0)),
            None => Err(WireError::new(Fault::Truncated, 0)),
        }
    }

    fn v4(ip: &Ipv4<&[u8]>) -> Self {
        let header = &ip.header;
        Self {
            ends: AddressPair::V4 { src: header.src.into(), dst: header.dst.into() },
            traffic_class: header.traffic_class,
            hops: header.ttl,
            protocol: header.protocol,
            transport: header.header_len(),
            end: usize::from(header.total_len.get()),
            fragment: header.part(),
        }
    }

    fn v6(ip: &Ipv6<&[u8]>) -> Result<Self, WireError> {
        let (header, chain) = (&ip.header, ip.chain()?);
        Ok(Self {
            ends: AddressPair::V6 { src: header.src.into(), dst: header.dst.into() },
            traffic_class: header.traffic_class(),
            hops: header.hop_limit,
            protocol: chain.protocol,
            transport: chain.transport,
            end: size_of::<crate::Ipv6Header>() + usize::from(header.payload_len.get()),
            fragment: chain.fragment,
        })
    }
}

/// The offsets of the parts of a TCP packet, in bytes. Valid only for the packet it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The network header; the TCP header begins at `network.transport`.
    pub network: Network,
    /// TCP options, padding included.
    pub options: Range<usize>,
    /// The payload.
    pub payload: Range<usize>,
}

impl Layout {
    /// Finds the parts of a whole TCP packet.
    ///
    /// # Errors
    /// If a header is malformed, the packet is a fragment, or it is not TCP.
    pub fn of(bytes: &[u8]) -> Result<Self, WireError> {
        let network = Network::of(bytes)?;
        let transport = network.transport;
        if network.fragment.is_some_and(|f| f.is_partial()) {
            return Err(WireError::new(Fault::Fragment, transport));
        }
        if network.protocol != crate::TCP {
            return Err(WireError::new(Fault::Protocol(network.protocol), transport));
        }
        let segment = bytes.get(transport..network.end).unwrap_or_default();
        let tcp = Tcp::new(segment).map_err(|e| e.shifted_by(transport))?;
        let options = transport + size_of::<TcpFixed>();
        let payload = options + tcp.options.len();
        Ok(Self { options: options..payload, payload: payload..network.end, network })
    }

    /// The sum over pseudo-header, TCP header and payload of `bytes`: 0xffff if the packet is correct.
    pub fn sum(&self, bytes: &[u8]) -> Sum {
        let Network { ends, transport, end, .. } = &self.network;
        let segment = bytes.get(*transport..*end).unwrap_or_default();
        pseudo_header(ends, crate::TCP, segment.len()).bytes(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(protocol: u8, fragment: u8, segment: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 20 + segment.len() as u8, 0, 0, fragment, 0, 64, protocol];
        bytes.extend([0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
        bytes.extend(segment);
        bytes
    }

    #[test]
    fn only_whole_tcp_packets_have_a_layout() {
        let mut segment = [0u8; 26];
        segment[12] = 0x60;
        let layout = Layout::of(&v4(6, 0, &segment)).unwrap();
        assert_eq!((layout.options, layout.payload), (40..44, 44..46));
        assert_eq!(Layout::of(&v4(17, 0, &segment)), Err(WireError::new(Fault::Protocol(17), 20)));
        assert_eq!(Layout::of(&v4(6, 0x20, &segment)), Err(WireError::new(Fault::Fragment, 20)));
        segment[12] = 0xf0;
        assert_eq!(Layout::of(&v4(6, 0, &segment)), Err(WireError::new(Fault::Truncated, 46)));
        assert_eq!(Layout::of(&[]), Err(WireError::new(Fault::Truncated, 0)));
        assert_eq!(Layout::of(&[0x50]), Err(WireError::new(Fault::Version(5), 0)));
    }

    #[test]
    fn an_atomic_fragment_is_a_whole_packet() {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 28, 44, 64];
        bytes.extend([0; 32]);
        bytes.extend([6, 0, 0, 0, 0, 0, 0, 9]);
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Layout::of(&bytes).unwrap().payload, 68..68);
        bytes[43] = 1;
        assert_eq!(Layout::of(&bytes), Err(WireError::new(Fault::Fragment, 48)));
    }
}
