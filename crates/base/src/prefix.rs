//! Address prefixes, for rules.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Returns the prefix of `length` bits of `address`; `None` if `length` exceeds the address length.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let bits = u32::from(length);
        let address = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
            }
        };
        Some(Self { address, length })
    }

    /// Its first address.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Prefix length in bits.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// True if `address` has this prefix. The IP versions must be the same.
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && Self::new(address, self.length) == Some(self)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_contains_its_addresses_only() {
        let p = Prefix::new(Ipv4Addr::new(10, 1, 77, 7).into(), 16).unwrap();
        assert_eq!((p.to_string(), p.length()), ("10.1.0.0/16".into(), 16));
        assert!(p.contains(Ipv4Addr::new(10, 1, 2, 3).into()));
        assert!(!p.contains(Ipv4Addr::new(10, 2, 2, 3).into()) && !p.contains(Ipv6Addr::LOCALHOST.into()));
        let any = Prefix::new(Ipv4Addr::new(1, 2, 77, 7).into(), 0).unwrap();
        assert!(any.contains(Ipv4Addr::BROADCAST.into()));
        assert!(Prefix::new(Ipv4Addr::LOCALHOST.into(), 33).is_none());
        assert!(Prefix::new(Ipv6Addr::LOCALHOST.into(), 129).is_none());
        let all = Prefix::new(Ipv6Addr::LOCALHOST.into(), 0).unwrap();
        assert!(all.contains(Ipv6Addr::LOCALHOST.into()) && all.address() == Ipv6Addr::UNSPECIFIED);
    }
}
