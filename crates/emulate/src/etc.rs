//! The files /etc/hosts and /etc/resolv.conf behind a link.

use core::fmt::Write as _;
use core::net::IpAddr;

/// Returns a file for /etc/hosts: names of the session first, then the lines of `system`.
pub(crate) fn hosts(names: &[(String, Vec<IpAddr>)], system: &str) -> String {
    let mut out = String::from(
        "# hosts of a bentpipe session; the lines of this machine's own file follow\n127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
    );
    for (name, addresses) in names {
        for address in addresses {
            let _ = writeln!(out, "{address} {name}");
        }
    }
    let ours = |word: &str| names.iter().any(|(name, _)| name == word);
    for line in system.lines() {
        let words = line.split('#').next().unwrap_or_default().split_whitespace();
        if !words.skip(1).any(|word| ours(word) || word == "localhost") {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

/// Returns the lines that stay valid behind an uplink, and, if they name no resolver, that of this machine.
pub(crate) fn resolv_conf(ours: &str) -> (String, Option<IpAddr>) {
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
    fn our_names_go_before_those_of_the_machine() {
        let names = [("far".to_owned(), bentpipe_scenario::host_addresses(0, 1).to_vec())];
        let file = hosts(&names, "127.0.0.1 localhost\n192.0.2.1 far\n192.0.2.2 other # far\n# far off\n");
        assert!(file.contains("10.55.0.2 far\nfd55::2 far\n192.0.2.2 other # far\n# far off\n"), "{file}");
        assert!(!file.contains("192.0.2.1"), "{file}");
    }

    #[test]
    fn resolvers_elsewhere_stay_and_those_on_the_machine_are_stood_in_for() {
        let elsewhere = "search example.org\nnameserver 192.0.2.53\nnameserver 127.0.0.1\n";
        let wanted = ("search example.org\nnameserver 192.0.2.53\n".to_owned(), None);
        assert_eq!(resolv_conf(elsewhere), wanted);
        let here = "nameserver 127.0.0.53\noptions edns0\n";
        let wanted = ("options edns0\n".to_owned(), Some([127, 0, 0, 53].into()));
        assert_eq!(resolv_conf(here), wanted);
        assert_eq!(resolv_conf("").1, Some([127, 0, 0, 1].into()));
    }
}
