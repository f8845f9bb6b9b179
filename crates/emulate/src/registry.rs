//! The registry of emulation sessions, used to find a session and to clean up after one that was killed.
//!
//! The folder is `$XDG_RUNTIME_DIR/bentpipe` or `/tmp/bentpipe-<uid>`.

use crate::error::Error;
use bentpipe_service::{Lock, Process, Registry, SystemError, Undo};
use core::net::IpAddr;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Extensions of a session's files; its entry is removed last.
pub(crate) const KINDS: [&str; 5] = ["sock", "hosts", "resolv", "draft", "json"];

/// A session's entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the session and of its files.
    pub id: String,
    /// The link profile or scenario.
    pub title: String,
    /// The process that runs it.
    #[serde(flatten)]
    pub process: Process,
    /// Number of links around it.
    pub depth: u8,
    /// Its first address slot at its depth.
    pub slot: u16,
    /// Number of address slots it uses.
    pub slots: u16,
    /// The session around it.
    pub parent: Option<String>,
    /// Path below /proc that opens the far network, behind the outermost link.
    pub far: String,
    /// Addresses of the far end.
    pub far_addresses: Vec<IpAddr>,
    /// Its hosts.
    pub hosts: Vec<HostEntry>,
    /// Changes to this machine's own network.
    pub uplink: Option<Undo>,
    /// The program that connects the far network of an ordinary user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connector: Option<Process>,
}

impl bentpipe_service::Entry for Entry {
    const KIND: &'static str = "json";

    fn name(&self) -> &str {
        &self.id
    }
}

/// A host of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    /// As in the scenario; `near` and `far` for a named link.
    pub name: String,
    /// IPv4 and IPv6 addresses.
    pub addresses: Vec<IpAddr>,
    /// Inode of its network namespace.
    pub network: u64,
    /// Path below /proc that opens its network namespace.
    pub path: String,
    /// The interface to the link.
    pub interface: String,
    /// Path below /proc that opens the interface's namespace: another one for the far end of a nested link.
    pub attached: String,
    /// False for the machine's own network and for a host of the session around this one.
    pub own: bool,
    /// True for a far network of the session with a way out of its own: only routes to hosts lead to the
    /// link.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub outlet: bool,
}

/// The folder of this user's sessions, which may not exist yet.
pub fn folder() -> PathBuf {
    let user = geteuid().as_raw();
    let own = |path: &Path| fs::metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == user);
    // after `sudo` the variable may still name another user's folder
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(path) if path.is_absolute() && own(&path) => path.join("bentpipe"),
        _ => PathBuf::from(format!("/tmp/bentpipe-{user}")),
    }
}

/// Opens the registry; creates its folder if needed.
///
/// # Errors
/// When the folder belongs to another user, others can write to it, or it cannot be created.
pub fn open() -> Result<Registry, Error> {
    let registry = Registry::at(folder());
    let fault = |reason: String| Error::Folder(registry.folder().to_owned(), reason);
    registry.make(0o700).map_err(|e| fault(e.source.to_string()))?;
    // do not follow a symbolic link: anyone can create one in /tmp
    let found = fs::symlink_metadata(registry.folder()).map_err(|e| fault(e.to_string()))?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        return Err(fault("it is not a folder of yours".to_owned()));
    }
    if found.permissions().mode() & 0o077 != 0 {
        return Err(fault("others may look into it".to_owned()));
    }
    Ok(registry)
}

/// Locks the registry until the result is dropped.
///
/// # Errors
/// When the folder is gone.
pub fn lock(registry: &Registry) -> Result<Lock, SystemError> {
    Lock::acquire(&registry.folder().join("lock"))
}

/// Removes files of sessions that were killed before they wrote their entry. Call it with the lock held.
pub(crate) fn remove_strays(registry: &Registry) {
    for (id, kind) in registry.files() {
        if KINDS.contains(&kind.as_str()) && !registry.file(&id, "json").exists() {
            registry.remove(&id, &[&kind]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_version_0_1_0_is_read() {
        let old = r#"{ "id": "geo-7", "title": "geo", "pid": 7, "start_time": 8, "boot": "b", "depth": 0, "slot": 0,
            "slots": 1, "parent": null, "far": "/proc/7/fd/5", "far_addresses": [], "hosts": [],
            "uplink": { "network": 9, "interface": "bentup1", "table": "t", "settings": [["x", "0"]] } }"#;
        let entry: Entry = serde_json::from_str(old).unwrap();
        assert_eq!((entry.process.pid, entry.process.start_time), (7, 8));
        let undo = entry.uplink.clone().unwrap();
        assert_eq!((undo.interface.as_deref(), undo.table.as_deref()), (Some("bentup1"), Some("t")));
        // and 0.1.0 can read our entry
        let mut ours = serde_json::to_value(&entry).unwrap();
        ours["uplink"].as_object_mut().unwrap().remove("rules");
        assert_eq!(ours, serde_json::from_str::<serde_json::Value>(old).unwrap());
    }
}
