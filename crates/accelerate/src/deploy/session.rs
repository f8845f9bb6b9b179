//! Who runs on this machine: a file for each gateway, written before anything is changed, so that it can be taken back by somebody else; and a lock, held while it runs, which
//! the kernel releases when the process ends, however it ends.

use super::error::Error;
use super::kept::Place;
use super::setup::Debts;
use bentpipe_os::netlink::MarkRule;
use bentpipe_os::process;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Where session files are, unless told otherwise.
pub const RUN_FOLDER: &str = "/run/bentpipe";

/// What is known of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// The process.
    pub pid: i32,
    /// Which start of the machine this was.
    pub boot: String,
    /// Inode of the network namespace.
    pub network: u64,
    /// The control socket.
    pub socket: PathBuf,
    /// The nftables table to be removed.
    table: Option<String>,
    /// The routing rules to be removed: IPv6, priority, mark, table.
    rules: Vec<(bool, u32, u32, u32)>,
    /// Settings to be given back.
    settings: Vec<(String, String)>,
}

impl Session {
    /// Of this process.
    pub(super) fn new(name: &str, file: &str, socket: PathBuf, network: u64, debts: &Debts) -> Self {
        Self {
            name: name.to_owned(),
            file: file.to_owned(),
            pid: i32::try_from(std::process::id()).unwrap_or_default(),
            boot: boot(),
            network,
            socket,
            table: debts.table.clone(),
            rules: debts.rules.iter().map(|r| (r.v6, r.priority, r.mark, r.table)).collect(),
            settings: debts.settings.clone(),
        }
    }

    pub(super) fn debts(&self) -> Debts {
        let rule =
            |&(v6, priority, mark, table): &(bool, u32, u32, u32)| MarkRule { v6, priority, mark, table };
        Debts {
            table: self.table.clone(),
            rules: self.rules.iter().map(rule).collect(),
            settings: self.settings.clone(),
        }
    }

    /// True when the machine was started anew since: then nothing is left but the file.
    pub(super) fn is_of_an_earlier_start(&self) -> bool {
        self.boot != boot()
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The folder of session files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sessions {
    folder: PathBuf,
}

/// Nobody else runs under this name while this lives.
#[derive(Debug)]
pub(super) struct Locked {
    _file: File,
}

impl Sessions {
    /// In `folder`, whether or not there is such a folder.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Where it is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder if need be.
    pub(super) fn make(&self) -> Result<(), Error> {
        match DirBuilder::new().mode(0o755).recursive(true).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(Error::file(&self.folder, error))
            }
            _ => Ok(()),
        }
    }

    /// The control socket of a gateway that names none itself.
    pub(super) fn socket(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.sock"))
    }

    /// Where a gateway keeps what outlives it.
    pub(super) fn place(&self, name: &str, network: u64) -> Place {
        Place { path: self.file(name, "flows"), boot: boot(), network }
    }

    fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{name}.{kind}"))
    }

    /// Takes the name; `None` when somebody has it.
    pub(super) fn lock(&self, name: &str) -> Result<Option<Locked>, Error> {
        let path = self.file(name, "lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|e| Error::file(&path, e))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // somebody who ended just now may have removed what was opened here: then the name is about to be free
            Ok(()) if is_same(&file, &path) => Ok(Some(Locked { _file: file })),
            Ok(()) => self.lock(name),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(Error::file(path, error)),
        }
    }

    /// True while a gateway of this name runs. Leaves no file behind.
    pub fn is_running(&self, name: &str) -> bool {
        let Ok(file) = File::open(self.file(name, "lock")) else { return false };
        matches!(flock(&file, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
    }

    /// All sessions, dead ones too, by name. Files that cannot be read are left out: another version may have written them.
    pub fn all(&self) -> Vec<Session> {
        let Ok(files) = fs::read_dir(&self.folder) else { return Vec::new() };
        let paths =
            files.flatten().map(|f| f.path()).filter(|p| p.extension().is_some_and(|e| e == "gateway"));
        let mut all: Vec<Session> =
            paths.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The one that is meant among those that run: the named one, or the only one.
    ///
    /// # Errors
    /// When there is none, or more than one could be meant.
    pub fn choose(&self, named: Option<&str>) -> Result<Session, Error> {
        let mut running: Vec<Session> = self.all().into_iter().filter(|s| self.is_running(&s.name)).collect();
        match named {
            Some(name) => running
                .into_iter()
                .find(|s| s.name == name)
                .ok_or_else(|| Error::Unknown(name.chars().take(64).collect())),
            None if running.len() > 1 => Err(Error::Several(running.into_iter().map(|s| s.name).collect())),
            None => running.pop().ok_or(Error::NoneRuns),
        }
    }

    /// Writes a session, in one piece.
    pub(super) fn write(&self, session: &Session) -> Result<(), Error> {
        let (path, draft) = (self.file(&session.name, "gateway"), self.file(&session.name, "draft"));
        let text = serde_json::to_vec_pretty(session).unwrap_or_default();
        fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path)).map_err(|e| Error::file(path, e))
    }

    /// Removes the session file of a dead gateway whose name we have.
    pub(super) fn forget(&self, name: &str) {
        // whether it is there is looked at again
        let _ = fs::remove_file(self.file(name, "gateway"));
    }

    /// Removes all files of a gateway; the folder too when it is empty then.
    pub(super) fn remove(&self, session: &Session, lock: Locked) {
        self.remove_records(&session.name);
        self.remove_all_but_records(session, lock);
    }

    /// The same, but a gateway that is started soon can go on with the connections.
    pub(super) fn remove_all_but_records(&self, session: &Session, lock: Locked) {
        for kind in ["gateway", "draft", "lock"] {
            // what is not there need not be removed
            let _ = fs::remove_file(self.file(&session.name, kind));
        }
        let _ = fs::remove_file(&session.socket);
        drop(lock);
        let _ = fs::remove_dir(&self.folder);
    }

    /// Removes the records of a gateway; true when there were some.
    pub(super) fn remove_records(&self, name: &str) -> bool {
        let _ = fs::remove_file(self.file(name, "flows-draft"));
        fs::remove_file(self.file(name, "flows")).is_ok()
    }

    /// Names of gateways of which nothing is left but records.
    pub(super) fn orphans(&self) -> Vec<String> {
        let Ok(files) = fs::read_dir(&self.folder) else { return Vec::new() };
        let name = |path: PathBuf| match path.extension()?.to_str()? {
            "flows" | "flows-draft" => Some(path.file_stem()?.to_str()?.to_owned()),
            _ => None,
        };
        let mut names: Vec<String> = files.flatten().filter_map(|file| name(file.path())).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| !self.file(name, "gateway").exists() && !self.is_running(name));
        names
    }

    /// Removes the folder when it is empty.
    pub(super) fn tidy(&self) {
        let _ = fs::remove_dir(&self.folder);
    }

    /// Removes the lock of a run that came to nothing.
    pub(super) fn unlock(&self, name: &str, lock: Locked) {
        let _ = fs::remove_file(self.file(name, "lock"));
        drop(lock);
        let _ = fs::remove_dir(&self.folder);
    }
}

/// True when `path` still leads to `file`.
fn is_same(file: &File, path: &Path) -> bool {
    let inode = |m: &fs::Metadata| (m.dev(), m.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(opened), Ok(there)) => inode(&opened) == inode(&there),
        _ => false,
    }
}

/// True while the process of a session is there, a thread of it at least: what it held is given back with the last one.
pub(super) fn is_there(pid: i32) -> bool {
    process::start_time(pid).is_some() || process::threads(pid) > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_runs_once_and_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("bentpipe-sessions-{}", std::process::id()));
        let sessions = Sessions::at(&folder);
        assert!(sessions.all().is_empty() && !sessions.is_running("a"));
        assert!(matches!(sessions.choose(None), Err(Error::NoneRuns)));
        sessions.make().unwrap();
        let lock = sessions.lock("a").unwrap().expect("a free name");
        assert!(sessions.lock("a").unwrap().is_none(), "taken twice");
        let debts = Debts {
            table: Some("t".to_owned()),
            rules: vec![MarkRule { v6: true, priority: 1, mark: 2, table: 3 }],
            settings: vec![("x".to_owned(), "0".to_owned())],
        };
        let session = Session::new("a", "f.toml", sessions.socket("a"), 7, &debts);
        sessions.write(&session).unwrap();
        assert_eq!(sessions.choose(Some("a")).unwrap(), session);
        assert_eq!(sessions.all()[0].debts(), debts);
        assert!(matches!(sessions.choose(Some("b")), Err(Error::Unknown(_))));
        assert!(!session.is_of_an_earlier_start());
        fs::write(sessions.place("a", 7).path, "").unwrap();
        fs::write(sessions.place("gone", 7).path, "").unwrap();
        assert_eq!(sessions.orphans(), ["gone"]);
        assert!(sessions.remove_records("gone") && !sessions.remove_records("gone"));
        sessions.remove(&session, lock);
        assert!(!folder.exists() && !sessions.is_running("a"));
    }
}
