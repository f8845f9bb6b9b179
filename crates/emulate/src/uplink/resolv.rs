//! The file /etc/resolv.conf behind a link to this machine's network.

use core::fmt::Write as _;
use core::net::IpAddr;

/// Returns the lines that are also valid behind the link, and a resolver that only this machine can reach, if
/// there is no other.
pub(super) fn behind_the_link(ours: &str) -> (String, Option<IpAddr>) {
    let mut text = String::new();
    let (mut local, mut reachable) = (None, false);
    for line in ours.lines() {
        let mut words = line.split_whitespace();
        let Some("nameserver") = words.next() else {
            let _ = writeln!(text, "{line}");
            continue;
        };
        let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
        match address {
            Some(address) if !is_local(address) => {
                let _ = writeln!(text, "{line}");
                reachable = true;
            }
            // an address with a zone (fe80::1%eth0) is only reachable through the machine's own resolver
            _ => local = local.or(address),
        }
    }
    // resolv.conf(5): the default is the local machine
    let local = if reachable { None } else { Some(local.unwrap_or(IpAddr::from([127, 0, 0, 1]))) };
    (text, local)
}

fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolvers_elsewhere_stay_and_those_on_the_machine_are_stood_in_for() {
        let elsewhere = "search example.org\nnameserver 192.0.2.53\nnameserver 127.0.0.1\n";
        let wanted = ("search example.org\nnameserver 192.0.2.53\n".to_owned(), None);
        assert_eq!(behind_the_link(elsewhere), wanted);
        let here = "nameserver 127.0.0.53\noptions edns0\n";
        let wanted = ("options edns0\n".to_owned(), Some([127, 0, 0, 53].into()));
        assert_eq!(behind_the_link(here), wanted);
        assert_eq!(behind_the_link("").1, Some([127, 0, 0, 1].into()));
    }
}
