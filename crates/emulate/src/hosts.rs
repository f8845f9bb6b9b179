//! Names: what stands in /etc/hosts behind a link.

use core::fmt::Write as _;
use core::net::IpAddr;

/// A file for /etc/hosts: names of the session first, then what `system` has to say about others.
pub(crate) fn file(names: &[(String, Vec<IpAddr>)], system: &str) -> String {
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

/// Addresses of the host with place `index` among those of sessions that lie within `depth` others.
///
/// `10.(55 + depth).x.y` and `fd55:depth::n`: private (RFC 1918, RFC 4193), and seldom used by anybody else.
pub(crate) fn addresses(depth: u8, index: u16) -> [IpAddr; 2] {
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
        let text = |depth, index| addresses(depth, index).map(|a| a.to_string());
        assert_eq!(text(0, 0), ["10.55.0.1", "fd55::1"]);
        assert_eq!(text(0, 1), ["10.55.0.2", "fd55::2"]);
        assert_eq!(text(2, 250), ["10.57.1.1", "fd55:2::fb"]);
    }

    #[test]
    fn our_names_go_before_those_of_the_machine() {
        let names = [("far".to_owned(), addresses(0, 1).to_vec())];
        let file = file(&names, "127.0.0.1 localhost\n192.0.2.1 far\n192.0.2.2 other # far\n# far off\n");
        assert!(file.contains("10.55.0.2 far\nfd55::2 far\n192.0.2.2 other # far\n# far off\n"), "{file}");
        assert!(!file.contains("192.0.2.1"), "{file}");
    }
}
