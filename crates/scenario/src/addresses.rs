//! Addresses of hosts.

use core::net::IpAddr;

/// Returns the IPv4 and IPv6 address of host `index` of a session that is nested in `depth` other sessions.
///
/// `10.(55 + depth).x.y` and `fd55:depth::n`: private (RFC 1918, RFC 4193) and rarely used elsewhere.
pub fn host_addresses(depth: u8, index: u16) -> [IpAddr; 2] {
    let [third, fourth] = [(index / 250) as u8, (index % 250 + 1) as u8];
    let v4 = [10, 55 + depth, third, fourth];
    let v6 = [0xfd55, u16::from(depth), 0, 0, 0, 0, 0, index + 1];
    [IpAddr::from(v4), IpAddr::from(v6)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart_by_depth_and_place() {
        let text = |depth, index| host_addresses(depth, index).map(|a| a.to_string());
        assert_eq!(text(0, 0), ["10.55.0.1", "fd55::1"]);
        assert_eq!(text(0, 1), ["10.55.0.2", "fd55::2"]);
        assert_eq!(text(2, 250), ["10.57.1.1", "fd55:2::fb"]);
    }
}
