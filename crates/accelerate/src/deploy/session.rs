//! The registry of gateways and their files.
//!
//! A gateway holds a lock on its name while it is running. Its session file is written before the first
//! change, so that another process can undo the changes.

use super::error::Error;
use super::record_file::RecordFile;
use bentpipe_service::{Entry, Lock, Process, Registry, SystemError, Undo, boot_id, pick};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// Default folder of session files.
pub const RUN_FOLDER: &str = "/run/bentpipe";

/// A gateway's session file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Name of the gateway.
    pub name: String,
    /// Path of its gateway file.
    pub file: String,
    /// The process.
    #[serde(flatten)]
    pub process: Process,
    /// The control socket.
    pub socket: PathBuf,
    /// Changes to undo when it has ended.
    #[serde(flatten)]
    pub undo: Undo,
}

impl Entry for Session {
    const KIND: &'static str = "gateway";

    fn name(&self) -> &str {
        &self.name
    }
}

/// Returns the named gateway, or the only running one.
///
/// # Errors
/// When there is none, or the choice is ambiguous.
pub fn choose(registry: &Registry, named: Option<&str>) -> Result<Session, Error> {
    let (running, killed): (Vec<Session>, Vec<Session>) =
        registry.entries::<Session>().into_iter().partition(|session| is_running(registry, &session.name));
    let names = |sessions: Vec<Session>| sessions.into_iter().map(|s| s.name).collect::<Vec<_>>();
    let killed = names(killed);
    pick(running, named).map_err(|running| match named {
        Some(name) if killed.iter().any(|killed| killed == name) => Error::Killed(vec![name.to_owned()]),
        Some(name) => Error::Unknown(name.chars().take(64).collect()),
        None if running.is_empty() && !killed.is_empty() => Error::Killed(killed),
        None if running.is_empty() => Error::NoneRuns,
        None => Error::Several(names(running)),
    })
}

/// Locks the name, in a folder that other users may list; `None` if a gateway of this name is running.
pub(super) fn lock(registry: &Registry, name: &str) -> Result<Option<Lock>, SystemError> {
    registry.make(0o755)?;
    Lock::try_acquire(&registry.file(name, "lock"))
}

pub(super) fn is_running(registry: &Registry, name: &str) -> bool {
    Lock::is_held(&registry.file(name, "lock"))
}

/// Releases the name of a run that did not start.
pub(super) fn unlock(registry: &Registry, name: &str, lock: Lock) {
    registry.remove(name, &["lock"]);
    drop(lock);
    registry.remove_folder();
}

/// Removes the files of a gateway, and the folder if it is empty then. With `keeps`, its connection records
/// stay for the next gateway.
pub(super) fn remove(registry: &Registry, session: &Session, lock: Lock, keeps: bool) {
    if !keeps {
        remove_records(registry, &session.name);
    }
    registry.remove(&session.name, &["gateway", "draft"]);
    let _ = fs::remove_file(&session.socket);
    unlock(registry, &session.name, lock);
}

/// The file with a gateway's connection records, which outlives it.
pub(super) fn record_file(registry: &Registry, name: &str, network: u64) -> RecordFile {
    RecordFile { path: registry.file(name, "flows"), boot: boot_id(), network }
}

/// Removes the records of a gateway; returns true if there were any.
pub(super) fn remove_records(registry: &Registry, name: &str) -> bool {
    registry.remove(name, &["flows-draft"]);
    registry.remove(name, &["flows"])
}

/// Names of gateways that left only connection records.
pub(super) fn orphans(registry: &Registry) -> Vec<String> {
    let files = registry.files().into_iter().filter(|(_, kind)| kind == "flows" || kind == "flows-draft");
    let mut names: Vec<String> = files.map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !registry.file(name, Session::KIND).exists() && !is_running(registry, name));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_runs_once_and_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("bentpipe-sessions-{}", std::process::id()));
        let registry = Registry::at(&folder);
        assert!(registry.entries::<Session>().is_empty() && !is_running(&registry, "a"));
        assert!(matches!(choose(&registry, None), Err(Error::NoneRuns)));
        let lock = super::lock(&registry, "a").unwrap().expect("a free name");
        assert!(super::lock(&registry, "a").unwrap().is_none(), "taken twice");
        let session = Session { name: "a".to_owned(), process: Process::this(), ..Session::default() };
        registry.write(&session).unwrap();
        assert_eq!(choose(&registry, Some("a")).unwrap(), session);
        assert!(matches!(choose(&registry, Some("b")), Err(Error::Unknown(_))));
        // another process of the name was killed: its entry is there, its lock is not
        let dead = Session { name: "dead".to_owned(), ..Session::default() };
        registry.write(&dead).unwrap();
        let killed = choose(&registry, Some("dead")).unwrap_err();
        assert!(
            matches!(killed, Error::Killed(_)) && killed.to_string().contains("gateway undo"),
            "{killed}"
        );
        registry.remove("dead", &["gateway"]);
        fs::write(record_file(&registry, "a", 7).path, "").unwrap();
        fs::write(record_file(&registry, "gone", 7).path, "").unwrap();
        assert_eq!(orphans(&registry), ["gone"]);
        assert!(remove_records(&registry, "gone") && !remove_records(&registry, "gone"));
        remove(&registry, &session, lock, false);
        assert!(!folder.exists() && !is_running(&registry, "a"));
    }

    #[test]
    fn an_entry_of_version_0_1_0_is_read() {
        let old = r#"{ "name": "g", "file": "gw.toml", "pid": 7, "boot": "b", "network": 9, "socket": "/run/g.sock",
            "table": "t", "rules": [[true, 1, 2, 3]], "settings": [["x", "0"]] }"#;
        let session: Session = serde_json::from_str(old).unwrap();
        let Undo { network, table, interface, rules, settings } = &session.undo;
        assert_eq!((network, table.as_deref(), interface), (&9, Some("t"), &None));
        assert_eq!(
            (&rules[..], &settings[..]),
            (&[(true, 1, 2, 3)][..], &[("x".to_owned(), "0".to_owned())][..])
        );
        assert_eq!((session.process.pid, session.process.start_time), (7, 0));
        // and version 0.1.0 of bentpipe finds in this file the keys that it needs
        let ours = serde_json::to_value(&session).unwrap();
        let old: serde_json::Value = serde_json::from_str(old).unwrap();
        assert!(old.as_object().unwrap().iter().all(|(key, value)| ours[key] == *value), "{ours}");
    }
}
