//! The nftables table: what comes from behind the link leaves with the machine's own address, and the machine becomes no router for anybody else.

use crate::error::Error;
use crate::registry::UplinkEntry;
use core::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

/// Makes sure that there is an `nft`.
pub(super) fn check() -> Result<(), Error> {
    match Command::new("nft").arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::Uplink(
            "the program nft is missing\nhelp: sudo apt-get install nftables, or the package of that name"
                .to_owned(),
        )),
        Ok(output) => Err(Error::Uplink(format!("nft: {}", text(&output.stderr)))),
        Err(error) => Err(Error::Uplink(format!("nft: {error}"))),
    }
}

/// Adds the table.
pub(super) fn add(entry: &UplinkEntry) -> Result<(), Error> {
    nft(&script(entry)).map_err(|error| Error::Uplink(format!("nft refuses the rules: {error}")))
}

/// Removes the table; true when it was there.
pub(super) fn remove(entry: &UplinkEntry) -> bool {
    nft(&format!("delete table inet {}\n", entry.table)).is_ok()
}

/// The rules. Sessions within this one have addresses of their own: those of twenty depths.
fn script(entry: &UplinkEntry) -> String {
    let UplinkEntry { interface, table, settings, .. } = entry;
    // Interfaces that did not forward before: between them nothing shall pass now either.
    let mut closed: Vec<&str> = settings
        .iter()
        .filter_map(|(name, _)| name.strip_prefix("net/ipv4/conf/")?.strip_suffix("/forwarding"))
        .collect();
    closed.sort_unstable();
    closed.dedup();
    let mut out = format!(
        "add table inet {table}
add chain inet {table} leave {{ type nat hook postrouting priority 100; policy accept; }}
add rule inet {table} leave oifname != \"bentup*\" ip saddr 10.55.0.0-10.96.255.255 masquerade
add rule inet {table} leave oifname != \"bentup*\" ip6 saddr fd55::-fd55:ff:ffff:ffff:ffff:ffff:ffff:ffff masquerade
add chain inet {table} pass {{ type filter hook forward priority 0; policy accept; }}
add rule inet {table} pass iifname \"{interface}\" accept
"
    );
    if !closed.is_empty() {
        let names = closed.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "add rule inet {table} pass oifname != \"bentup*\" iifname {{ {names} }} drop");
    }
    out
}

/// Chains that may drop what this machine forwards, whatever our table says: nftables asks all of them.
pub(super) fn closed_chains() -> Vec<String> {
    let listed =
        Command::new("nft").args(["list", "chains"]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    listed.map_or_else(|_| Vec::new(), |output| dropping(&String::from_utf8_lossy(&output.stdout)))
}

/// Of what `nft list chains` says: those on the way of forwarded packets whose policy is to drop.
fn dropping(listing: &str) -> Vec<String> {
    let (mut table, mut chain) = ("", "");
    let mut all = Vec::new();
    for line in listing.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("table ") {
            table = rest.trim_end_matches(" {");
        } else if let Some(rest) = line.strip_prefix("chain ") {
            chain = rest.trim_end_matches(" {");
        } else if line.contains("hook forward") && line.contains("policy drop") {
            all.push(format!("{table} {chain}"));
        }
    }
    all
}

/// Has nft read a script.
fn nft(script: &str) -> Result<(), String> {
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // If it reads nothing its exit status says so.
        let _ = input.write_all(script.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
}

/// The first line of what a program says.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_firewall_that_forwards_nothing_is_named() {
        let listing = "table ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority filter; policy drop;\n\t}\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n";
        assert_eq!(dropping(listing), ["ip filter FORWARD"]);
        assert_eq!(dropping(&listing.replace("drop", "accept")), Vec::<String>::new());
    }

    #[test]
    fn the_machine_becomes_no_router_for_others() {
        let settings = vec![
            ("net/ipv4/conf/eth0/forwarding".to_owned(), "0".to_owned()),
            ("net/ipv6/conf/all/forwarding".to_owned(), "0".to_owned()),
        ];
        let entry = UplinkEntry {
            network: 1,
            interface: "bentup1".to_owned(),
            table: "bentpipe_7".to_owned(),
            settings,
        };
        assert!(script(&entry).ends_with("pass oifname != \"bentup*\" iifname { \"eth0\" } drop\n"));
        let open = UplinkEntry { settings: Vec::new(), ..entry };
        assert!(!script(&open).contains("drop"));
    }
}
