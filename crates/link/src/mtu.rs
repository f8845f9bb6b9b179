//! The longest packet that a link takes, and what happens to longer ones.
//!
//! Sources: RFC 791, section 3.2 (fragmentation), RFC 1191 and RFC 8201 ("fragmentation needed", "packet too
//! big"), RFC 8200, section 5 (routers do not fragment IPv6).
//!
//! - `Refuse`: the packet is dropped before the queue. Its sender is told the MTU, as if every packet had the
//!   "don't fragment" bit.
//! - `Fragment`: a packet of L bytes is sent as n = ceil((L - 20) / f) fragments, f the largest multiple of 8
//!   up to MTU - 20. They have L + 20 (n - 1) bytes and n times the framing, and each is exposed to errors. A
//!   lost fragment loses the packet. IPv6 packets are refused.
//!
//! Deviations: fragments are joined at the end of the link, not at the host. They follow each other without a
//! gap: the packet waits in the queue as one, is sent as one and arrives with its last fragment. Of a packet
//! with a lost fragment all others are sent too.

use bentpipe_base::{IpVersion, Packet, Size};

/// The limit of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// Longest packet in bytes, IP header included and framing not; at least 68.
    pub bytes: u16,
    /// What happens to longer ones.
    pub longer: Longer,
}

/// What happens to packets that are longer than the MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Longer {
    /// They are dropped, and the sender is told.
    #[default]
    Refuse,
    /// They are cut into fragments.
    Fragment,
}

/// A packet on the wire: bytes of IP in all fragments, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragments {
    pub bytes: Size,
    pub count: u32,
}

impl Mtu {
    /// True if there are IPv4 packets that the link refuses.
    pub fn may_refuse(self) -> bool {
        self.longer == Longer::Refuse
    }

    /// True if the link does not take the packet.
    pub(crate) fn refuses(self, packet: &Packet) -> bool {
        packet.wire_len() > self.limit() && (self.longer == Longer::Refuse || packet.ip == IpVersion::V6)
    }

    /// How a packet of `size` bytes, which the link takes, is sent.
    pub(crate) fn fragments(self, size: Size) -> Fragments {
        if size <= self.limit() {
            return Fragments { bytes: size, count: 1 };
        }
        let header = u64::from(IpVersion::V4.header());
        // a multiple of eight, and more than nothing whatever the MTU
        let most = (self.limit().0.saturating_sub(header) & !7).max(8);
        let count = size.0.saturating_sub(header).div_ceil(most).max(1);
        Fragments { bytes: Size(size.0 + header * (count - 1)), count: count as u32 }
    }

    const fn limit(self) -> Size {
        Size(self.bytes as u64)
    }
}

impl Fragments {
    /// How a packet of `size` bytes is sent over a link with this MTU, if any.
    #[inline]
    pub(crate) fn of(mtu: Option<Mtu>, size: Size) -> Self {
        mtu.map_or(Self { bytes: size, count: 1 }, |mtu| mtu.fragments(size))
    }

    /// Probability that one of the fragments is lost, if each is lost with this probability.
    #[inline]
    pub(crate) fn lost(self, each: f64) -> f64 {
        if self.count == 1 { each } else { -libm::expm1(f64::from(self.count) * libm::log1p(-each)) }
    }

    /// Bytes on the wire with `framing` bytes for each fragment.
    #[inline]
    pub(crate) fn framed(self, framing: Size) -> Size {
        if self.count == 1 {
            return self.bytes + framing;
        }
        self.bytes + Size(framing.0.saturating_mul(u64::from(self.count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN_PARTS: Mtu = Mtu { bytes: 1500, longer: Longer::Fragment };

    #[test]
    fn fragments_have_a_header_each_and_multiples_of_eight_bytes() {
        // 1728 B of data and 40 B of headers: 1480 and 268 B behind a header each
        for (size, bytes, count) in
            [(1500, 1500, 1), (1501, 1521, 2), (1768, 1788, 2), (2980, 3000, 2), (2981, 3021, 3)]
        {
            let fragments = IN_PARTS.fragments(Size(size));
            assert_eq!(fragments, Fragments { bytes: Size(bytes), count }, "{size}");
        }
        // of 1006 - 20 bytes 984 are a multiple of eight
        let slip = Mtu { bytes: 1006, ..IN_PARTS };
        assert_eq!(slip.fragments(Size(20 + 984)), Fragments { bytes: Size(1004), count: 1 });
        assert_eq!(slip.fragments(Size(20 + 2 * 984)).count, 2);
        assert_eq!(slip.fragments(Size(21 + 2 * 984)).count, 3);
    }

    #[test]
    fn a_packet_is_lost_with_any_of_its_fragments() {
        let three = Fragments { bytes: Size(3021), count: 3 };
        assert!((three.lost(0.1) - (1.0 - 0.9 * 0.9 * 0.9)).abs() < 1e-12);
        assert_eq!((three.lost(0.0), three.lost(1.0)), (0.0, 1.0));
        assert_eq!(three.framed(Size(4)), Size(3033));
    }

    #[test]
    fn routers_cut_ipv4_only() {
        let packet = |ip, len| {
            let mut packet = Packet { ip, ..Packet::default() };
            packet.seal();
            packet.body.len = len - u32::from(packet.header_len);
            packet
        };
        for (ip, refused) in [(IpVersion::V4, false), (IpVersion::V6, true)] {
            assert_eq!(IN_PARTS.refuses(&packet(ip, 1501)), refused);
            assert!(!IN_PARTS.refuses(&packet(ip, 1500)));
            assert!(Mtu { longer: Longer::Refuse, ..IN_PARTS }.refuses(&packet(ip, 1501)));
        }
    }
}
