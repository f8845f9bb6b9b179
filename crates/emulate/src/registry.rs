//! Who runs on this machine: one small file for each session, so that others find it, and so that a session that was killed can be cleaned up after.
//!
//! The folder is `$XDG_RUNTIME_DIR/bentpipe` or `/tmp/bentpipe-<uid>`. A file whose process is gone is a leftover.

use crate::error::Error;
use bentpipe_os::process;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Files of a session beside its entry.
const KINDS: [&str; 4] = ["sock", "hosts", "resolv", "draft"];

/// What is known of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name; also that of its files.
    pub id: String,
    /// The link or scenario.
    pub title: String,
    /// The process that runs it.
    pub pid: i32,
    /// When that process started; numbers of processes are used again.
    pub start_time: u64,
    /// Which start of the machine this was.
    pub boot: String,
    /// How many links it lies within.
    pub depth: u8,
    /// Its place among the addresses of its depth.
    pub slot: u16,
    /// How many places it takes.
    pub slots: u16,
    /// The session within which it lies.
    pub parent: Option<String>,
    /// What opens the far network, behind the outermost link: a path below /proc.
    pub far: String,
    /// Addresses of the far end.
    pub far_addresses: Vec<String>,
    /// Its hosts.
    pub hosts: Vec<HostEntry>,
    /// What it changed in this machine's own network.
    pub uplink: Option<UplinkEntry>,
}

/// A host of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    /// As in the scenario; `near` and `far` for a named link.
    pub name: String,
    /// IPv4 and IPv6 addresses.
    pub addresses: Vec<String>,
    /// Inode of its network namespace.
    pub network: u64,
    /// A path below /proc that opens its network namespace.
    pub path: String,
    /// The interface that leads to the link.
    pub interface: String,
    /// A path below /proc that opens the network namespace in which that interface lies: another one for the far end of a link within a link.
    pub attached: String,
    /// False for the machine's own network and for a host of the session around this one.
    pub own: bool,
}

/// What was changed in the machine's own network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkEntry {
    /// Inode of the network namespace in which all this is.
    pub network: u64,
    /// The interface.
    pub interface: String,
    /// The nftables table, of family `inet`.
    pub table: String,
    /// Kernel settings with the values they had, in the order in which they were changed.
    pub settings: Vec<(String, String)>,
}

impl Entry {
    /// True while its process runs.
    pub fn is_alive(&self) -> bool {
        self.boot == boot() && process::start_time(self.pid) == Some(self.start_time)
    }
}

/// Which start of the machine this is.
pub(crate) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The folder of this user's sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    folder: PathBuf,
}

/// Nobody else changes the registry while this lives.
#[derive(Debug)]
pub struct Locked {
    _file: File,
}

impl Registry {
    /// Where this user's sessions are, whether or not there is such a folder yet.
    pub fn place() -> PathBuf {
        let user = geteuid().as_raw();
        let own = |path: &Path| fs::metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == user);
        // After `sudo` the variable may still name the folder of somebody else.
        match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
            Some(path) if path.is_absolute() && own(&path) => path.join("bentpipe"),
            _ => PathBuf::from(format!("/tmp/bentpipe-{user}")),
        }
    }

    /// Opens the folder and makes it if need be.
    ///
    /// # Errors
    /// When it belongs to somebody else, others can write to it, or it cannot be made.
    pub fn open() -> Result<Self, Error> {
        let folder = Self::place();
        let fault = |reason: String| Error::Folder { folder: folder.clone(), reason };
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(fault(error.to_string()));
            }
            _ => {}
        }
        // Not through a symbolic link: in /tmp anybody could have put one there.
        let found = fs::symlink_metadata(&folder).map_err(|e| fault(e.to_string()))?;
        if !found.is_dir() || found.uid() != geteuid().as_raw() {
            return Err(fault("it is not a folder of yours".to_owned()));
        }
        if found.permissions().mode() & 0o077 != 0 {
            return Err(fault("others may look into it".to_owned()));
        }
        Ok(Self { folder })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file of a session: `json`, `sock`, `hosts`, `resolv`.
    pub fn file(&self, id: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{id}.{kind}"))
    }

    /// Keeps others out until the result is dropped.
    ///
    /// # Errors
    /// When the folder is gone.
    pub fn lock(&self) -> Result<Locked, Error> {
        let path = self.folder.join("lock");
        let lock = || {
            let file = File::options().create(true).truncate(false).write(true).open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        lock()
            .map(|file| Locked { _file: file })
            .map_err(|source| Error::System { what: path.display().to_string(), source })
    }

    /// All entries, those of dead sessions too, by name. Files that cannot be read are left out: another version may have written them.
    pub fn entries(&self) -> Vec<Entry> {
        let Ok(files) = fs::read_dir(&self.folder) else { return Vec::new() };
        let paths = files.flatten().map(|f| f.path()).filter(|p| p.extension().is_some_and(|e| e == "json"));
        let mut all: Vec<Entry> =
            paths.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// Writes an entry, in one piece: whoever looks sees the old one or the new one.
    ///
    /// # Errors
    /// When the folder is full or gone.
    pub fn write(&self, entry: &Entry) -> Result<(), Error> {
        let (path, draft) = (self.file(&entry.id, "json"), self.file(&entry.id, "draft"));
        let text = serde_json::to_vec_pretty(entry).unwrap_or_default();
        fs::write(&draft, text)
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(|source| Error::System { what: path.display().to_string(), source })
    }

    /// Removes files of sessions that were killed before they could write down who they are. Call it with the lock held.
    pub(crate) fn remove_strays(&self) {
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        for path in files.flatten().map(|f| f.path()) {
            let ours = path.extension().is_some_and(|e| KINDS.iter().any(|kind| e == *kind));
            if ours && !path.with_extension("json").exists() {
                // Somebody else may have been faster.
                let _ = fs::remove_file(&path);
            }
        }
    }

    /// Removes all files of a session.
    pub fn remove(&self, id: &str) {
        for kind in KINDS.into_iter().chain(["json"]) {
            // What is not there need not be removed, and nobody can be told of the rest.
            let _ = fs::remove_file(self.file(id, kind));
        }
    }
}
