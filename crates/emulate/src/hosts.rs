//! The file /etc/hosts behind a link.

use core::fmt::Write as _;
use core::net::IpAddr;

/// Returns a file for /etc/hosts: names of the session first, then the lines of `system`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_names_go_before_those_of_the_machine() {
        let names = [("far".to_owned(), bentpipe_scenario::host_addresses(0, 1).to_vec())];
        let file = file(&names, "127.0.0.1 localhost\n192.0.2.1 far\n192.0.2.2 other # far\n# far off\n");
        assert!(file.contains("10.55.0.2 far\nfd55::2 far\n192.0.2.2 other # far\n# far off\n"), "{file}");
        assert!(!file.contains("192.0.2.1"), "{file}");
    }
}
