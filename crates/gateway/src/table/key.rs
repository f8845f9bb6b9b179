//! The key of a connection: two addresses and two ports, the same for both directions.

use super::hash::HashKey;
use bentpipe_base::{Addr, Packet};

pub(crate) type Socket = (Addr, u16);

/// Both endpoints, the lower one first. 12 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    low: Addr,
    high: Addr,
    low_port: u16,
    high_port: u16,
}

impl Key {
    /// Returns the connection of a packet, and whether it comes from the lower endpoint.
    #[inline]
    pub(crate) fn of(packet: &Packet) -> (Self, bool) {
        Self::between((packet.src, packet.sport), (packet.dst, packet.dport))
    }

    /// The connection between two endpoints, and whether the first is the lower one, or both are the same.
    #[inline]
    pub(crate) fn between(from: Socket, to: Socket) -> (Self, bool) {
        let is_low = from <= to;
        let (low, high) = if is_low { (from, to) } else { (to, from) };
        (Self { low: low.0, high: high.0, low_port: low.1, high_port: high.1 }, is_low)
    }

    pub(crate) const fn ends(self) -> [Socket; 2] {
        [(self.low, self.low_port), (self.high, self.high_port)]
    }

    #[inline]
    pub(crate) fn hash(self, key: HashKey) -> u64 {
        let (addrs, ports) = self.words();
        key.hash(addrs, ports, 4)
    }

    /// The addresses, and the ports.
    #[inline]
    pub(crate) const fn words(self) -> (u64, u64) {
        let ports = (self.low_port as u64) << 16 | self.high_port as u64;
        ((self.low.0 as u64) << 32 | self.high.0 as u64, ports)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_directions_have_one_key(a: u32, b: u32, p: u16, q: u16) {
            let (from, to) = ((Addr(a), p), (Addr(b), q));
            let (key, is_low) = Key::between(from, to);
            let (back, is_low_back) = Key::between(to, from);
            prop_assert_eq!(key, back);
            prop_assert_eq!(is_low != is_low_back, from != to);
            prop_assert_eq!(key.ends()[usize::from(!is_low)], from);
        }
    }

    #[test]
    fn a_key_is_small() {
        assert_eq!(size_of::<Key>(), 12);
    }

    #[test]
    fn one_address_with_two_ports_has_two_ends() {
        let here = Addr(5);
        assert_ne!(Key::between((here, 1), (here, 2)).0, Key::between((here, 1), (here, 3)).0);
    }
}
