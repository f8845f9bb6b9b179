//! The far end of a link in the machine's own network (`--uplink`): one interface, one nftables table, and
//! the kernel settings of a router.
//!
//! All changes are written to the registry before they are made, and undone in reverse order: by the session
//! when it ends, or by whoever cleans up after it. The interface is the peer of one in the relay's network
//! namespace and goes with that.

mod dns;
mod rootless;
mod rules;
mod settings;

pub(crate) use dns::Forwarder;
pub(crate) use rootless::{Rootless, connector};

use crate::error::Error;
use crate::etc;
use crate::registry::Entry;
use bentpipe_os::netlink::{Netlink, RouteEntry};
use bentpipe_os::{namespace, nft};
use bentpipe_service::{Registry, Undo};
use core::net::IpAddr;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Returns the first depth whose addresses this machine's network does not use.
pub(crate) fn free_depth(most: u8) -> Result<u8, Error> {
    let routes = Netlink::open()?.routes()?;
    let taken = |depth: u8| routes.iter().any(|route| overlaps(route, 55 + depth));
    let full = "this machine has routes into all of 10.55.0.0/16 and the networks after it";
    (0..most).find(|depth| !taken(*depth)).ok_or_else(|| Error::Uplink(full.to_owned()))
}

/// Checks that what every uplink needs is installed.
pub(crate) fn check() -> Result<(), Error> {
    rules::check()
}

/// Returns the changes to make. Called in the network of the machine.
pub(crate) fn plan(interface: &str, others: &[Entry]) -> Result<Undo, Error> {
    Ok(Undo {
        network: namespace::network().and_then(namespace::inode).map_err(|e| Error::system("/proc", e))?,
        table: Some(format!("bentpipe_{}", std::process::id())),
        interface: Some(interface.to_owned()),
        rules: Vec::new(),
        settings: settings::wanted(interface, others)?,
    })
}

/// Warnings about firewall rules that may block forwarding, one line each. Called in the machine's network.
pub(crate) fn firewall_warnings() -> Vec<String> {
    let warn = |chain| {
        format!(
            "warning: the firewall chain `{chain}` drops what it does not know; let bentup* pass: iptables -I FORWARD -i bentup+ -j ACCEPT; iptables -I FORWARD -o bentup+ -j ACCEPT"
        )
    };
    nft::closed_chains().into_iter().map(warn).collect()
}

/// Makes the changes; `addresses` are those of the far end. Called in the network of the machine.
pub(crate) fn apply(plan: &Undo, addresses: &[IpAddr]) -> Result<(), Error> {
    let interface = plan.interface.as_deref().unwrap_or_default();
    let mut netlink = Netlink::open()?;
    for &address in addresses {
        netlink.add_address(interface, address)?;
    }
    nft::run(&rules::script(plan, interface))
        .map_err(|error| Error::Uplink(format!("nft refuses the rules: {error}")))?;
    settings::apply(plan, interface)
}

/// Makes names resolve behind the link: writes `file`, which replaces /etc/resolv.conf there, and forwards
/// questions to a resolver that only answers on the machine, whose network is `home`.
pub(crate) fn names(home: &OwnedFd, file: &Path, addresses: &[IpAddr]) -> Result<Option<Forwarder>, Error> {
    let ours = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let (mut text, local) = etc::resolv_conf(&ours);
    let mut forwarder = None;
    if let (Some(resolver), Some(&at)) = (local, addresses.first()) {
        forwarder = Forwarder::start(home, at, resolver)?;
        text = format!("nameserver {at}\n{text}");
    }
    fs::write(file, text).map_err(|e| Error::system(file.display().to_string(), e))?;
    Ok(forwarder)
}

/// True if a route overlaps the addresses `10.second.0.0/16`, except routes shorter than /8.
fn overlaps(route: &RouteEntry, second: u8) -> bool {
    let (IpAddr::V4(to), length) = route.to else { return false };
    if length < 8 {
        return false;
    }
    let mask = u32::MAX << (32 - u32::from(length.clamp(1, 16)));
    (u32::from(to) ^ u32::from_be_bytes([10, second, 0, 0])) & mask == 0
}

/// Undoes the changes of a session and returns a description. Called in the network of the machine.
pub(crate) fn undo(undo: &Undo, registry: &Registry, id: &str) -> Vec<String> {
    let mut undo = undo.clone();
    let mut others: Vec<Entry> = registry.entries();
    others.retain(|e| e.id != id && e.uplink.is_some() && e.process.is_alive());
    if others.iter().flat_map(|e| &e.uplink).any(|u| u.interface == undo.interface) {
        undo.interface = None;
    }
    if let Some(heir) = others.into_iter().next() {
        // another session still needs a router; the last one to end restores the settings
        settings::hand_over(&mut undo, heir, registry);
    }
    undo.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_the_machine_uses_are_left_alone() {
        let route =
            |to: [u8; 4], length| RouteEntry { to: (IpAddr::from(to), length), interface: None, table: 254 };
        assert!(overlaps(&route([10, 0, 0, 0], 8), 55));
        assert!(overlaps(&route([10, 55, 3, 0], 24), 55));
        assert!(overlaps(&route([10, 48, 0, 0], 12), 55));
        assert!(!overlaps(&route([10, 56, 0, 0], 16), 55));
        assert!(!overlaps(&route([192, 168, 0, 0], 16), 55));
        assert!(!overlaps(&route([0, 0, 0, 0], 0), 55), "a default route says nothing about who is there");
    }
}
