//! What a queue may know of a real packet: its code points, and a number for its flow.

use bentpipe_base::{Dscp, Ecn, mix};
use bentpipe_wire::{Ends, Network, TCP, UDP, ecn};

/// What a queue goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The same number for all packets of a flow: addresses, protocol and ports hashed.
    pub flow: u32,
    /// Differentiated-services code point.
    pub dscp: Dscp,
    /// ECN field.
    pub ecn: Ecn,
}

impl Label {
    /// Reads the headers of an IP packet. What cannot be read is nothing special, and a flow with its like. Parts of a packet have no ports, since all but the first carry none
    /// and they belong together.
    pub fn of(bytes: &[u8]) -> Self {
        let Ok(network) = Network::of(bytes) else { return Self::default() };
        let number = match network.ends {
            Ends::V4 { src, dst } => mix(u64::from(src.to_bits()) << 32 | u64::from(dst.to_bits())),
            Ends::V6 { src, dst } => {
                let fold = |at: u128| mix(at as u64 ^ mix((at >> 64) as u64));
                mix(fold(src.to_bits()) ^ mix(fold(dst.to_bits())))
            }
        };
        let whole = network.fragment.is_none_or(|f| !f.is_partial());
        let ports = bytes.get(network.transport..network.end).and_then(|t| t.first_chunk::<4>());
        let ports = ports.filter(|_| whole && matches!(network.protocol, TCP | UDP));
        let ports = ports.map_or(0, |p| u64::from(u32::from_be_bytes(*p)));
        let flow = mix(number ^ (ports << 8 | u64::from(network.protocol)));
        Self {
            flow: (flow >> 32) as u32,
            dscp: Dscp::new(network.traffic_class >> 2).unwrap_or_default(),
            ecn: ecn(network.traffic_class),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet with the beginning of a transport header.
    fn v4(class: u8, fragment: u16, protocol: u8, dst: u8, ports: [u8; 4]) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        let mut bytes =
            vec![0x45, class, 0, 28, 0, 1, high, low, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, dst];
        bytes.extend(ports);
        bytes.extend([0; 4]);
        bytes
    }

    #[test]
    fn a_flow_is_known_by_addresses_protocol_and_ports() {
        let one = Label::of(&v4(0, 0, 17, 2, [1, 2, 3, 4]));
        assert_eq!(one, Label::of(&v4(0, 0x4000, 17, 2, [1, 2, 3, 4])), "whether it may be cut is no matter");
        for other in
            [v4(0, 0, 6, 2, [1, 2, 3, 4]), v4(0, 0, 17, 3, [1, 2, 3, 4]), v4(0, 0, 17, 2, [1, 2, 3, 5])]
        {
            assert_ne!(one.flow, Label::of(&other).flow);
        }
        // ICMP has no ports, and neither have parts of a packet
        assert_eq!(
            Label::of(&v4(0, 0, 1, 2, [8, 0, 1, 1])).flow,
            Label::of(&v4(0, 0, 1, 2, [0, 0, 2, 2])).flow
        );
        let first = Label::of(&v4(0, 0x2000, 17, 2, [1, 2, 3, 4]));
        assert_eq!(first.flow, Label::of(&v4(0, 3, 17, 2, [9, 9, 9, 9])).flow);
    }

    #[test]
    fn code_points_are_read() {
        let label = Label::of(&v4(1 << 2 | 2, 0, 17, 2, [0; 4]));
        assert_eq!((label.dscp, label.ecn), (Dscp::LE, Ecn::Ect0));
        let mut v6 = vec![0x60, 0x70, 0, 0, 0, 0, 59, 64];
        v6.extend([0; 32]);
        assert_eq!((Label::of(&v6).dscp, Label::of(&v6).ecn), (Dscp::LE, Ecn::Ce));
        for broken in [&v6[..20], &[], &[0x45], &[0xff; 60]] {
            assert_eq!(Label::of(broken), Label::default());
        }
    }
}
