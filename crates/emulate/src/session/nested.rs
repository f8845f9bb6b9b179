//! A link within a link: the inner far side is in the near network of the outer link, which forwards.

use super::routes::lead_to;
use super::{FAR_VARIABLE, SESSION_VARIABLE};
use crate::error::Error;
use crate::registry::Entry;
use bentpipe_os::namespace;
use bentpipe_service::Registry;
use core::net::IpAddr;
use std::env;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The session around this process.
#[derive(Debug)]
pub(super) struct Enclosing {
    /// Its name.
    pub(super) session: String,
    /// Number of links around this process.
    pub(super) depth: u8,
    /// Path that opens the outermost far network.
    far: PathBuf,
    far_addresses: Vec<IpAddr>,
}

impl Enclosing {
    /// Finds the session in whose network this process runs. The environment variables alone prove nothing: a
    /// terminal multiplexer may carry them outside.
    pub(super) fn find(registry: &Registry, home: &OwnedFd) -> Result<Option<Self>, Error> {
        let Ok(session) = env::var(SESSION_VARIABLE) else { return Ok(None) };
        let here = namespace::inode(home).map_err(|e| Error::system("the network namespace", e))?;
        let inside = |entry: &Entry| entry.hosts.iter().any(|h| h.own && h.network == here);
        let entry = registry.entry(&session).filter(|e: &Entry| e.process.is_alive() && inside(e));
        let Some(entry) = entry else { return Ok(None) };
        let far = env::var_os(FAR_VARIABLE).map_or_else(|| PathBuf::from(&entry.far), PathBuf::from);
        let far_addresses = entry.far_addresses.iter().filter_map(|text| text.parse().ok()).collect();
        Ok(Some(Self { session, depth: entry.depth, far, far_addresses }))
    }

    /// The outermost far network and its addresses.
    pub(super) fn far(&self) -> Result<(OwnedFd, Vec<IpAddr>), Error> {
        let network = namespace::open(&self.far)
            .map_err(|e| Error::system(format!("{}, the outer far network", self.far.display()), e))?;
        Ok((network, self.far_addresses.clone()))
    }

    /// Adds routes to the new addresses in the outer networks.
    pub(super) fn tell_ancestors(&self, registry: &Registry, addresses: &[IpAddr]) -> Result<(), Error> {
        let all: Vec<Entry> = registry.entries();
        let mut name = Some(self.session.clone());
        while let Some(entry) = name.as_ref().and_then(|name| all.iter().find(|e| e.id == *name)) {
            for host in entry.hosts.iter().filter(|h| !h.own) {
                let fault = |e| Error::system(format!("{}, a network further out", host.attached), e);
                let network = namespace::open(Path::new(&host.attached)).map_err(fault)?;
                namespace::in_network(&network, || lead_to(&host.interface, addresses)).map_err(fault)??;
            }
            name.clone_from(&entry.parent);
        }
        Ok(())
    }
}
