//! What tells packets of one flow that are not read: the hop's pacer keeps their order and prefers flows as a whole.
//!
//! The names are numbers: a hash of both addresses in place of addresses, and the ports where there are some. All parts of packets between two hosts are one flow,
//! since only the first part has ports; so a flow that sends both parts and whole packets is two.

use super::frame::{Link, Unit};
use bentpipe_base::{Addr, Dscp, Packet};
use bentpipe_wire::{Ends, Network, UDP};

/// Protocols that begin with ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const PORTS: [u8; 5] = [6, UDP, 33, 132, 136];

/// Whose a packet is, and how it is marked. What is no IP has no names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kin {
    addresses: u64,
    ports: (u16, u16),
    dscp: Dscp,
}

impl Kin {
    /// From the bytes of a unit.
    pub(super) fn of(bytes: &[u8], unit: Unit) -> Self {
        let ip = Link::of(bytes, unit).and_then(|link| bytes.get(link.len..)).unwrap_or_default();
        let Ok(network) = Network::of(ip) else { return Self::default() };
        let Network { ends, protocol, transport, fragment, .. } = network;
        let addresses = match ends {
            Ends::V4 { src, dst } => hash(src.octets().into_iter().chain(dst.octets()).chain([protocol])),
            Ends::V6 { src, dst } => hash(src.octets().into_iter().chain(dst.octets()).chain([protocol])),
        };
        let is_part = fragment.is_some_and(|fragment| fragment.is_partial());
        let ports = match ip.get(transport..transport + 4).filter(|_| PORTS.contains(&protocol) && !is_part) {
            Some(&[a, b, c, d]) => (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])),
            _ => (0, 0),
        };
        Self { addresses, ports, dscp: Dscp::new(network.traffic_class >> 2).unwrap_or_default() }
    }

    /// Writes it where the node looks for it.
    pub(super) const fn tell(self, packet: &mut Packet) {
        (packet.src, packet.dst) = (Addr((self.addresses >> 32) as u32), Addr(self.addresses as u32));
        (packet.sport, packet.dport) = self.ports;
        packet.dscp = self.dscp;
    }
}

/// FNV-1a (draft-eastlake-fnv).
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet: traffic class, fragment field, protocol, source's last byte, ports.
    fn v4(class: u8, fragment: u16, protocol: u8, last: u8, ports: [u8; 4]) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        let mut bytes =
            vec![0x45, class, 0, 28, 0, 1, high, low, 64, protocol, 0, 0, 10, 0, 0, last, 10, 0, 1, 1];
        bytes.extend(ports);
        bytes.extend([0, 8, 0, 0]);
        bytes
    }

    fn of(bytes: &[u8]) -> Kin {
        Kin::of(bytes, Unit::Packet)
    }

    #[test]
    fn a_flow_is_told_by_addresses_protocol_and_ports() {
        let call = of(&v4(0xb8, 0, UDP, 1, [0x12, 0x34, 0, 53]));
        assert_eq!((call.ports, call.dscp.get()), ((0x1234, 53), 46));
        assert_eq!(of(&v4(0, 0, UDP, 1, [0x12, 0x34, 0, 53])).addresses, call.addresses);
        for other in [v4(0, 0, 50, 1, [0; 4]), v4(0, 0, UDP, 2, [0; 4])] {
            assert_ne!(of(&other).addresses, call.addresses);
        }
        // ESP has no ports, nor has a part
        for portless in [
            v4(0, 0, 50, 1, [1, 2, 3, 4]),
            v4(0, 0x2000, UDP, 1, [1, 2, 3, 4]),
            v4(0, 3, UDP, 1, [1, 2, 3, 4]),
        ] {
            assert_eq!(of(&portless).ports, (0, 0));
        }
        for cut in 0..28 {
            of(&v4(0, 0, UDP, 1, [1, 2, 3, 4])[..cut]);
        }
        assert_eq!(of(&[0x45]), Kin::default());
        let mut packet = Packet::default();
        call.tell(&mut packet);
        assert_eq!((packet.sport, packet.dport, packet.dscp.get()), (0x1234, 53, 46));
    }
}
