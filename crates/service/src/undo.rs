//! Changes that a service made on the machine, so that they can be undone after it has died.

use bentpipe_os::netlink::{MarkRule, Netlink};
use bentpipe_os::{namespace, nft, sysctl};
use serde::{Deserialize, Serialize};

/// Changes that outlive the service's process. Written into its entry before they are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// Inode of the network namespace in which the changes were made.
    pub network: u64,
    /// The nftables table, of family `inet`.
    pub table: Option<String>,
    /// The interface.
    #[serde(default)]
    pub interface: Option<String>,
    /// Routing rules: true for IPv6, priority, mark, routing table.
    #[serde(default)]
    pub rules: Vec<(bool, u32, u32, u32)>,
    /// Kernel settings below /proc/sys with the values they had, in the order in which they were changed.
    pub settings: Vec<(String, String)>,
}

impl Undo {
    /// True if the calling thread is in the network namespace in which the changes were made.
    pub fn is_here(&self) -> bool {
        namespace::network().and_then(namespace::inode) == Ok(self.network)
    }

    /// Removes the table; returns a message if it existed.
    pub fn remove_table(&self) -> Option<String> {
        let table = self.table.as_ref()?;
        nft::run(&format!("delete table inet {table}\n")).ok()?;
        Some(format!("nftables table inet {table} removed"))
    }

    /// Undoes everything in the calling thread's network namespace, settings in reverse order; returns one
    /// line for each change. Changes already undone are no error.
    pub fn run(&self) -> Vec<String> {
        let mut done: Vec<String> = self.remove_table().into_iter().collect();
        let mut netlink = Netlink::open().ok();
        if let (Some(name), Some(netlink)) = (&self.interface, &mut netlink)
            && netlink.delete(name).is_ok()
        {
            done.push(format!("interface {name} removed"));
        }
        for (name, was) in self.settings.iter().rev() {
            if sysctl::read(name).is_ok_and(|now| now != *was)
                && matches!(sysctl::write_if_there(name, was), Ok(true))
            {
                done.push(format!("setting {name} is {was} again"));
            }
        }
        for &(v6, priority, mark, table) in self.rules.iter().rev() {
            let rule = MarkRule { v6, priority, mark, mask: u32::MAX, table };
            if netlink.as_mut().is_some_and(|netlink| netlink.delete_rule(rule).is_ok()) {
                let family = if v6 { "IPv6" } else { "IPv4" };
                done.push(format!("{family} routing rule for mark {mark:#x} removed"));
            }
        }
        done
    }
}
