//! Flow number and code points of packets whose headers are not read.
//!
//! Queues separate flows, and the gateway's pacer keeps the order within a flow and prioritises whole flows.
//! All IP fragments between two hosts are one flow, since only the first fragment has ports; so a flow that
//! sends both fragments and whole packets counts as two. Unreadable packets are one flow.

use crate::frame::{Link, Unit};
use bentpipe_base::{Addr, Dscp, Ecn, Packet, mix};
use bentpipe_wire::{AddressPair, Network, UDP, ecn};

/// Protocols whose header begins with ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const PORTS: [u8; 5] = [6, UDP, 33, 132, 136];

/// Flow and code points of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowLabel {
    /// Addresses and protocol, hashed.
    addresses: u32,
    ports: (u16, u16),
    dscp: Dscp,
    ecn: Ecn,
}

impl FlowLabel {
    /// Reads the headers of a unit.
    pub(crate) fn of(bytes: &[u8], unit: Unit) -> Self {
        let ip = Link::of(bytes, unit).and_then(|link| bytes.get(link.len..)).unwrap_or_default();
        let Ok(network) = Network::of(ip) else { return Self::default() };
        let Network { ends, protocol, transport, fragment, traffic_class, .. } = network;
        let fold = |at: u128| mix(at as u64 ^ mix((at >> 64) as u64));
        let addresses = match ends {
            AddressPair::V4 { src, dst } => mix(u64::from(src.to_bits()) << 32 | u64::from(dst.to_bits())),
            AddressPair::V6 { src, dst } => mix(fold(src.to_bits()) ^ mix(fold(dst.to_bits()))),
        };
        let is_part = fragment.is_some_and(|fragment| fragment.is_partial());
        let ports = match ip.get(transport..transport + 4).filter(|_| PORTS.contains(&protocol) && !is_part) {
            Some(&[a, b, c, d]) => (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])),
            _ => (0, 0),
        };
        Self {
            addresses: (mix(addresses ^ u64::from(protocol)) >> 32) as u32,
            ports,
            dscp: Dscp::new(traffic_class >> 2).unwrap_or_default(),
            ecn: ecn(traffic_class),
        }
    }

    /// Writes the label to the packet's fields.
    pub(crate) const fn write(self, packet: &mut Packet) {
        packet.src = Addr(self.addresses);
        (packet.sport, packet.dport) = self.ports;
        (packet.dscp, packet.ecn) = (self.dscp, self.ecn);
    }
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

    fn of(bytes: &[u8]) -> FlowLabel {
        FlowLabel::of(bytes, Unit::Packet)
    }

    #[test]
    fn a_flow_is_told_by_addresses_protocol_and_ports() {
        let call = of(&v4(0xb8, 0, UDP, 1, [0x12, 0x34, 0, 53]));
        assert_eq!((call.ports, call.dscp.get()), ((0x1234, 53), 46));
        assert_eq!(of(&v4(0, 0x4000, UDP, 1, [0x12, 0x34, 0, 53])).addresses, call.addresses);
        for other in [v4(0, 0, 50, 1, [0; 4]), v4(0, 0, UDP, 2, [0; 4])] {
            assert_ne!(of(&other).addresses, call.addresses);
        }
        // ESP and fragments have no ports
        for portless in [
            v4(0, 0, 50, 1, [1, 2, 3, 4]),
            v4(0, 0x2000, UDP, 1, [1, 2, 3, 4]),
            v4(0, 3, UDP, 1, [1, 2, 3, 4]),
        ] {
            assert_eq!(of(&portless).ports, (0, 0));
        }
        let mut packet = Packet::default();
        call.write(&mut packet);
        assert_eq!((packet.sport, packet.dport, packet.dscp.get()), (0x1234, 53, 46));
    }

    #[test]
    fn code_points_are_read_and_what_is_broken_has_none() {
        let label = of(&v4(1 << 2 | 2, 0, UDP, 2, [0; 4]));
        assert_eq!((label.dscp, label.ecn), (Dscp::LE, Ecn::Ect0));
        let mut v6 = vec![0x60, 0x70, 0, 0, 0, 0, 59, 64];
        v6.extend([0; 32]);
        assert_eq!((of(&v6).dscp, of(&v6).ecn), (Dscp::LE, Ecn::Ce));
        for broken in [&v6[..20], &[], &[0x45], &[0xff; 60]] {
            assert_eq!(of(broken), FlowLabel::default());
        }
        for cut in 0..28 {
            of(&v4(0, 0, UDP, 1, [1, 2, 3, 4])[..cut]);
        }
    }
}
