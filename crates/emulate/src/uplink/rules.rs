//! The nftables table: packets from behind the link leave with the machine's own address (masquerading), and
//! the machine does not forward for anyone else.

use crate::error::Error;
use bentpipe_os::nft;
use bentpipe_service::Undo;
use core::fmt::Write as _;
use std::collections::BTreeSet;

/// Checks that `nft` is installed.
pub(super) fn check() -> Result<(), Error> {
    match nft::version() {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(Error::Uplink(format!("the program nft is missing\nhelp: {}", nft::MISSING))),
        Err(error) => Err(Error::Uplink(format!("nft: {error}"))),
    }
}

/// Returns the rules. The address ranges include those of nested sessions, up to twenty links deep.
pub(super) fn script(plan: &Undo, interface: &str) -> String {
    let table = plan.table.as_deref().unwrap_or_default();
    // interfaces that did not forward before must not forward between each other now
    let closed: BTreeSet<&str> = plan
        .settings
        .iter()
        .filter_map(|(name, _)| name.strip_prefix("net/ipv4/conf/")?.strip_suffix("/forwarding"))
        .collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_becomes_no_router_for_others() {
        let settings = vec![
            ("net/ipv4/conf/eth0/forwarding".to_owned(), "0".to_owned()),
            ("net/ipv6/conf/all/forwarding".to_owned(), "0".to_owned()),
        ];
        let plan = Undo { table: Some("bentpipe_7".to_owned()), settings, ..Undo::default() };
        assert!(
            script(&plan, "bentup1").ends_with("pass oifname != \"bentup*\" iifname { \"eth0\" } drop\n")
        );
        let open = Undo { settings: Vec::new(), ..plan };
        assert!(!script(&open, "bentup1").contains("drop"));
    }
}
