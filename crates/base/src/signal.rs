//! In-band signalling that a packet carries, as bytes: this crate knows nothing of their layout.
//!
//! It is either structures or options. Structures are after the TCP or UDP header in IPv4, and in a
//! hop-by-hop header in IPv6. Options are among those of the IP header (IPv6: a whole hop-by-hop header) and
//! of the TCP header, at the end of each. None of this is data: it has no sequence space and is not part of
//! the packet's body. It counts as header bytes.

use core::fmt;

/// Signalling bytes of one packet: one or two structures, or options.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    len: u8,
    /// Length of the IP options, which come first, and of the TCP options after them.
    ip: u8,
    tcp: u8,
    bytes: [u8; Self::MAX],
}

impl Signal {
    /// Most bytes of one packet.
    pub const MAX: usize = 32;

    /// Structures. `None` without bytes or with more than [`Signal::MAX`].
    pub fn new(given: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX];
        bytes.get_mut(..given.len())?.copy_from_slice(given);
        (!given.is_empty()).then_some(Self { len: given.len() as u8, ip: 0, tcp: 0, bytes })
    }

    /// Options of the IP header and of the TCP header. `None` without any, with more than [`Signal::MAX`], or
    /// if a length is no multiple of four bytes.
    pub fn options(ip: &[u8], tcp: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX];
        bytes.get_mut(..ip.len())?.copy_from_slice(ip);
        bytes.get_mut(ip.len()..ip.len() + tcp.len())?.copy_from_slice(tcp);
        let is_aligned = ip.len().is_multiple_of(4) && tcp.len().is_multiple_of(4);
        let len = ip.len() + tcp.len();
        (len > 0 && is_aligned).then_some(Self {
            len: len as u8,
            ip: ip.len() as u8,
            tcp: tcp.len() as u8,
            bytes,
        })
    }

    /// The structures; empty if these are options.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.ip + self.tcp)..usize::from(self.len)]
    }

    /// The structures, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[usize::from(self.ip + self.tcp)..usize::from(self.len)]
    }

    /// The options of the IP header; in IPv6 a whole hop-by-hop header.
    pub fn ip_options(&self) -> &[u8] {
        &self.bytes[..usize::from(self.ip)]
    }

    /// The options of the IP header, to be changed in place.
    pub fn ip_options_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.ip)]
    }

    /// The options of the TCP header.
    pub fn tcp_options(&self) -> &[u8] {
        &self.bytes[usize::from(self.ip)..usize::from(self.ip + self.tcp)]
    }

    /// The options of the TCP header, to be changed in place.
    pub fn tcp_options_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[usize::from(self.ip)..usize::from(self.ip + self.tcp)]
    }

    /// Number of all bytes.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub const fn len(&self) -> u8 {
        self.len
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ip + self.tcp == 0 {
            return f.debug_tuple("Signal").field(&self.bytes()).finish();
        }
        f.debug_tuple("Signal").field(&self.ip_options()).field(&self.tcp_options()).finish()
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

    #[test]
    fn options_of_both_headers_are_beside_each_other() {
        let mut signal = Signal::options(&[1; 8], &[2; 4]).unwrap();
        signal.ip_options_mut()[7] = 9;
        signal.tcp_options_mut()[0] = 7;
        assert_eq!((signal.ip_options()[7], signal.tcp_options(), signal.len()), (9, &[7, 2, 2, 2][..], 12));
        assert!(signal.bytes().is_empty() && Signal::new(&[1; 16]).unwrap().tcp_options().is_empty());
        for (ip, tcp) in [(0, 0), (6, 0), (8, 3), (24, 12), (36, 0)] {
            assert!(Signal::options(&[0; 40][..ip], &[0; 40][..tcp]).is_none(), "{ip} {tcp}");
        }
    }
}
