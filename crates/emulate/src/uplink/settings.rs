//! Kernel settings that make the machine a router, and their previous values.
//!
//! IPv4 forwarding is set per interface, so only interfaces that did not forward yet are changed. IPv6 has
//! one switch for all, which also stops the machine's own use of router advertisements unless `accept_ra` is
//! 2.

use crate::error::Error;
use crate::registry::Entry;
use bentpipe_os::netlink::Netlink;
use bentpipe_os::sysctl;
use bentpipe_service::{Registry, Undo};
use core::net::IpAddr;

const ALL_V6: &str = "net/ipv6/conf/all/forwarding";

/// Settings to change, with the values to restore, including those that other sessions have changed too.
pub(super) fn wanted(own: &str, others: &[Entry]) -> Result<Vec<(String, String)>, Error> {
    let mut netlink = Netlink::open()?;
    let interfaces: Vec<String> = netlink.interfaces()?.into_iter().map(|(_, name)| name).collect();
    let mut all: Vec<(String, String)> = others
        .iter()
        .filter(|e| e.process.is_alive())
        .flat_map(|e| &e.uplink)
        .flat_map(|u| u.settings.clone())
        .collect();
    // adds a setting that has this value now
    let mut add = |name: String, value: &str| {
        let is_new = !all.iter().any(|(known, _)| *known == name);
        if is_new && sysctl::read(&name).is_ok_and(|v| v == value) {
            all.push((name, value.to_owned()));
        }
    };
    let theirs =
        || interfaces.iter().filter(|name| *name != "lo" && *name != own && !name.starts_with("bentup"));
    for interface in theirs() {
        add(format!("net/ipv4/conf/{interface}/forwarding"), "0");
    }
    let everywhere = |to: (IpAddr, u8)| to.0.is_ipv6() && to.1 == 0;
    let has_v6 =
        netlink.routes()?.iter().any(|r| everywhere(r.to) && r.table == 254 && r.interface.is_some());
    if has_v6 && sysctl::read(ALL_V6).is_ok_and(|v| v == "0") {
        for interface in theirs() {
            // restored last: the switch for all overwrites them
            add(format!("net/ipv6/conf/{interface}/forwarding"), "1");
            add(format!("net/ipv6/conf/{interface}/accept_ra"), "1");
        }
        add(ALL_V6.to_owned(), "0");
    }
    Ok(all)
}

/// Makes the machine a router, including our own interface.
pub(super) fn apply(plan: &Undo, interface: &str) -> Result<(), Error> {
    let own = [
        ("ipv4", "forwarding", "1"),
        ("ipv4", "rp_filter", "0"),
        ("ipv6", "accept_ra", "0"),
        ("ipv6", "disable_ipv6", "0"),
    ];
    for (family, name, value) in own {
        let name = format!("net/{family}/conf/{interface}/{name}");
        sysctl::write_if_there(&name, value).map_err(|e| Error::setting(&name, value, e))?;
    }
    for (name, _) in &plan.settings {
        let value = if name.ends_with("/accept_ra") { "2" } else { "1" };
        sysctl::write_if_there(name, value).map_err(|e| Error::setting(name, value, e))?;
    }
    Ok(())
}

/// Leaves restoring them to another session.
pub(super) fn hand_over(undo: &mut Undo, mut heir: Entry, registry: &Registry) {
    if let Some(uplink) = &mut heir.uplink {
        for setting in undo.settings.drain(..) {
            if !uplink.settings.iter().any(|known| known.0 == setting.0) {
                uplink.settings.push(setting);
            }
        }
        // that session reads its entry again before it ends
        let _ = registry.write(&heir);
    }
}
