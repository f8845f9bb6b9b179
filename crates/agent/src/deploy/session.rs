//! The registry of agents and their files.

use super::Error;
use bentpipe_accelerate::deploy;
use bentpipe_service::{Entry, Lock, Process, Registry, SystemError, pick};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// An agent's session file: that of a gateway, and its watcher.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// What it has in common with a gateway.
    #[serde(flatten)]
    pub base: deploy::Session,
    /// The process that resets its connections if it is killed, or keeps the guard for them.
    pub watcher: Option<Process>,
    /// Prefixes of the peers that the guard of method `kernel` names; none without it.
    #[serde(default)]
    pub guard: Vec<(IpAddr, u8)>,
}

impl Entry for Session {
    const KIND: &'static str = "agent";

    fn name(&self) -> &str {
        &self.base.name
    }
}

/// Returns the named agent, or the only running one.
///
/// # Errors
/// When there is none, or the choice is ambiguous.
pub fn choose(registry: &Registry, named: Option<&str>) -> Result<Session, Error> {
    let all = registry.entries().into_iter();
    let running = all.filter(|session: &Session| is_running(registry, session.name())).collect();
    let others: Vec<Session> = match pick(running, named) {
        Ok(session) => return Ok(session),
        Err(others) => others,
    };
    Err(match named {
        Some(name) => Error::Unknown(name.chars().take(64).collect()),
        None if others.is_empty() => Error::NoneRuns,
        None => Error::Several(others.into_iter().map(|session| session.base.name).collect()),
    })
}

/// The extension of lock files differs from that of gateways, so both may have the same name.
fn lock_file(registry: &Registry, name: &str) -> PathBuf {
    registry.file(name, "agent-lock")
}

/// Locks the name; `None` if an agent of this name is running.
pub(super) fn lock(registry: &Registry, name: &str) -> Result<Option<Lock>, SystemError> {
    registry.make(0o755)?;
    Lock::try_acquire(&lock_file(registry, name))
}

pub(super) fn is_running(registry: &Registry, name: &str) -> bool {
    Lock::is_held(&lock_file(registry, name))
}

/// Releases the name of a run that did not start.
pub(super) fn unlock(registry: &Registry, name: &str, lock: Lock) {
    registry.remove(name, &["agent-lock"]);
    drop(lock);
    registry.remove_folder();
}

/// Kind of the file of flows while it is made.
pub(super) const FLOWS_DRAFT: &str = "agent-flows-draft";

/// Removes the files of an agent, and the folder if it is empty then.
pub(super) fn remove(registry: &Registry, session: &Session, lock: Lock) {
    registry.remove(session.name(), &["agent", "draft", "agent-flows", FLOWS_DRAFT]);
    let _ = fs::remove_file(&session.base.socket);
    unlock(registry, session.name(), lock);
}

/// The file with the connections of a running agent.
pub(super) fn flow_file(registry: &Registry, name: &str) -> PathBuf {
    registry.file(name, "agent-flows")
}
