//! The addresses of a socket, as the program for the kernel has them.

use crate::Tuple;
use bentpipe_base::Prefix;
use core::net::IpAddr;

/// Bytes of a key.
pub(crate) const KEY: usize = 36;
/// Bytes of a prefix with its length.
pub(crate) const PREFIX: usize = 20;
/// Bits before an IPv4 address in its IPv6 form (RFC 4291, section 2.5.5.2).
const MAPPED: u32 = 96;

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// `struct key`.
pub(crate) fn key(tuple: &Tuple) -> [u8; KEY] {
    let mut key = [0; KEY];
    let (addresses, ports) = key.split_at_mut(32);
    addresses[..16].copy_from_slice(&octets(tuple.local.ip()));
    addresses[16..].copy_from_slice(&octets(tuple.remote.ip()));
    ports[..2].copy_from_slice(&tuple.local.port().to_ne_bytes());
    ports[2..].copy_from_slice(&tuple.remote.port().to_ne_bytes());
    key
}

/// `struct prefix`.
pub(crate) fn prefix(prefix: Prefix) -> [u8; PREFIX] {
    let mapped = if prefix.address().is_ipv4() { MAPPED } else { 0 };
    let mut bytes = [0; PREFIX];
    bytes[..4].copy_from_slice(&(u32::from(prefix.length()) + mapped).to_ne_bytes());
    bytes[4..].copy_from_slice(&octets(prefix.address()));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ip_versions_have_one_form() {
        let v4 = Tuple { local: "10.0.0.1:1".parse().unwrap(), remote: "10.0.0.2:258".parse().unwrap() };
        let bytes = key(&v4);
        assert_eq!(bytes[10..16], [255, 255, 10, 0, 0, 1]);
        assert_eq!((bytes[31], &bytes[34..]), (2, &[2, 1][..]));
        let v6 = Tuple { local: "[::ffff:10.0.0.1]:1".parse().unwrap(), ..v4 };
        assert_eq!(key(&v6), bytes);
        let net = prefix(Prefix::new(IpAddr::from([10, 0, 0, 0]), 8).unwrap());
        assert_eq!((net[0], net[14], net[16]), (104, 255, 10));
    }
}
