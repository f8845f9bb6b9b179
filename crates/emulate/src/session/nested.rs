//! A link within a link: the inner far side is in the near network of the outer link, which forwards.

use super::interfaces::add_host_routes;
use super::{FAR_VARIABLE, SESSION_VARIABLE};
use crate::error::Error;
use crate::registry::Entry;
use bentpipe_os::namespace;
use bentpipe_service::Registry;
use core::net::IpAddr;
use std::env;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Finds the session in whose network this process runs. The environment variables alone prove nothing: a
/// terminal multiplexer may carry them outside.
pub(super) fn enclosing(registry: &Registry, home: &OwnedFd) -> Result<Option<Entry>, Error> {
    let Ok(session) = env::var(SESSION_VARIABLE) else { return Ok(None) };
    let here = namespace::inode(home).map_err(|e| Error::system("the network namespace", e))?;
    let inside = |entry: &Entry| entry.hosts.iter().any(|h| h.own && h.network == here);
    Ok(registry.entry(&session).filter(|e: &Entry| e.process.is_alive() && inside(e)))
}

/// The outermost far network, as the enclosing session knows it, and its addresses.
pub(super) fn outermost(enclosing: &Entry) -> Result<(OwnedFd, Vec<IpAddr>), Error> {
    let far = env::var_os(FAR_VARIABLE).map_or_else(|| PathBuf::from(&enclosing.far), PathBuf::from);
    let network = namespace::open(&far)
        .map_err(|e| Error::system(format!("{}, the outer far network", far.display()), e))?;
    Ok((network, enclosing.far_addresses.clone()))
}

/// Adds routes to the new addresses in the enclosing session's outer networks, and those further out.
pub(super) fn add_outer_routes(enclosing: &Entry, registry: &Registry, new: &[IpAddr]) -> Result<(), Error> {
    let all: Vec<Entry> = registry.entries();
    let mut name = Some(enclosing.id.clone());
    while let Some(entry) = name.as_ref().and_then(|name| all.iter().find(|e| e.id == *name)) {
        for host in entry.hosts.iter().filter(|h| !h.own || h.outlet) {
            let fault = |e| Error::system(format!("{}, a network further out", host.attached), e);
            let network = namespace::open(Path::new(&host.attached)).map_err(fault)?;
            namespace::in_network(&network, || add_host_routes(&host.interface, new)).map_err(fault)??;
        }
        name.clone_from(&entry.parent);
    }
    Ok(())
}
