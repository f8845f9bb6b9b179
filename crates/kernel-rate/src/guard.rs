//! Keeps structures from the kernel's TCP while no agent removes them.
//!
//! When an agent is gone, its peers still signal: routers and peers put structures into packets of IPv4
//! flows that were negotiated, behind the data, and the kernel would take them for data. Such packets have
//! DSCP 3. A rule of the firewall drops them on their way to a socket, at all times: an agent that lives has
//! removed the structure and reset the code point before the kernel gets a packet. What is dropped comes
//! again without a structure. SYNs pass, since the kernel ignores the bytes behind them (no Fast Open
//! without cookies), and so peers that signal can still connect. In IPv6 a structure is in a header that the
//! kernel skips.
//!
//! The table stays when an agent is killed, and must stay as long as flows live that were negotiated.

use bentpipe_base::Prefix;
use core::fmt::Write as _;

/// Name of the table, of family `inet`.
pub const TABLE: &str = "bentpipe_guard";

/// Hook priority: before connection tracking (-200) and the raw table (-300).
const PRIORITY: i32 = -350;

/// The script for `nft` that replaces the table by one for these peers.
pub fn script(peers: &[Prefix]) -> String {
    let v4: Vec<_> = peers.iter().filter(|p| p.address().is_ipv4()).map(ToString::to_string).collect();
    let mut text = removal();
    if v4.is_empty() {
        return text;
    }
    let from = v4.join(", ");
    // writing to a String cannot fail
    let _ = write!(
        text,
        "table inet {TABLE} {{\n\
         \x20 chain structures {{\n\
         \x20   type filter hook input priority {PRIORITY}; policy accept;\n\
         \x20   ip saddr {{ {from} }} ip dscp 3 meta l4proto tcp tcp flags & syn == 0 counter drop\n\
         \x20 }}\n\
         }}\n"
    );
    text
}

/// The script that removes the table, if there is one.
pub fn removal() -> String {
    // adding a table that exists is no error, deleting one that does not is
    format!("add table inet {TABLE}\ndelete table inet {TABLE}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn the_rule_names_the_peers() {
        let net = Prefix::new(Ipv4Addr::new(10, 1, 0, 0).into(), 16).unwrap();
        let host = Prefix::new(Ipv4Addr::new(192, 0, 2, 1).into(), 32).unwrap();
        let v6 = Prefix::new(Ipv6Addr::LOCALHOST.into(), 128).unwrap();
        let text = script(&[net, v6, host]);
        assert!(text.contains("ip saddr { 10.1.0.0/16, 192.0.2.1/32 } ip dscp 3"), "{text}");
        assert_eq!(script(&[v6]), removal());
    }
}
