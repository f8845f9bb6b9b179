//! The registry of agents and their files.

use super::Error;
use bentpipe_service::{Entry, Lock, Process, Registry, SystemError, Undo, pick};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// An agent's session file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Name of the agent.
    pub name: String,
    /// Path of its file.
    pub file: String,
    /// The process.
    #[serde(flatten)]
    pub process: Process,
    /// The control socket.
    pub socket: PathBuf,
    /// Changes to undo when it has ended.
    #[serde(flatten)]
    pub undo: Undo,
    /// The process that resets its connections if it is killed.
    pub watcher: Option<Process>,
}

impl Entry for Session {
    const KIND: &'static str = "agent";

    fn name(&self) -> &str {
        &self.name
    }
}

/// Returns the named agent, or the only running one.
///
/// # Errors
/// When there is none, or the choice is ambiguous.
pub fn choose(registry: &Registry, named: Option<&str>) -> Result<Session, Error> {
    let mut running: Vec<Session> = registry.entries();
    running.retain(|session| is_running(registry, &session.name));
    pick(running, named).map_err(|running| match named {
        Some(name) => Error::Unknown(name.chars().take(64).collect()),
        None if running.is_empty() => Error::NoneRuns,
        None => Error::Several(running.into_iter().map(|session| session.name).collect()),
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

/// Removes the files of an agent, and the folder if it is empty then.
pub(super) fn remove(registry: &Registry, session: &Session, lock: Lock) {
    registry.remove(&session.name, &["agent", "draft", "agent-flows"]);
    let _ = fs::remove_file(&session.socket);
    unlock(registry, &session.name, lock);
}

/// The file with the connections of a running agent.
pub(super) fn flow_file(registry: &Registry, name: &str) -> PathBuf {
    registry.file(name, "agent-flows")
}
