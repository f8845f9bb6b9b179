//! The services that run on this machine: a folder with one small JSON file for each, and locks.

use bentpipe_os::process;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// An error of the system.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct SystemError {
    /// What was tried, or the file or folder.
    pub what: String,
    /// The system's error.
    pub source: io::Error,
}

impl SystemError {
    /// An error in trying `what`.
    pub fn new(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self { what: what.into(), source: source.into() }
    }

    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::new(path.display().to_string(), source)
    }
}

/// Returns the kernel's boot id.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A process, identified uniquely although process ids are reused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its process id.
    pub pid: i32,
    /// Its start time, in clock ticks since boot (proc(5)); 0 in entries of gateways of version 0.1.0.
    #[serde(default)]
    pub start_time: u64,
    /// Boot id of the machine when it started.
    pub boot: String,
}

impl Process {
    /// This process.
    pub fn this() -> Self {
        Self::of(i32::try_from(std::process::id()).unwrap_or_default())
    }

    /// The process that now has this id.
    pub fn of(pid: i32) -> Self {
        Self { pid, start_time: process::start_time(pid).unwrap_or(0), boot: boot_id() }
    }

    /// False if the machine was rebooted since: then only the service's files are left.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot == boot_id()
    }

    /// True while any of its threads exists: the kernel frees its resources with the last one.
    pub fn is_alive(&self) -> bool {
        self.is_of_this_boot()
            && match process::start_time(self.pid) {
                Some(time) => time == self.start_time || self.start_time == 0,
                None => process::threads(self.pid) > 1,
            }
    }
}

/// A service's entry in the registry. Stored as JSON.
pub trait Entry: Serialize + DeserializeOwned {
    /// Extension of its file.
    const KIND: &'static str;

    /// Name of the service and of its files.
    fn name(&self) -> &str;
}

/// The folder of services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    folder: PathBuf,
}

impl Registry {
    /// A registry in `folder`, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the folder and its parents if needed.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn make(&self, mode: u32) -> Result<(), SystemError> {
        let made = DirBuilder::new().mode(mode).recursive(true).create(&self.folder);
        made.map_err(SystemError::at(&self.folder))
    }

    /// Removes the folder if it is empty.
    pub fn remove_folder(&self) {
        let _ = fs::remove_dir(&self.folder);
    }

    /// Path of a service's file. `kind` is the extension, such as `sock`.
    pub fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{name}.{kind}"))
    }

    /// Names and kinds of all files.
    pub fn files(&self) -> Vec<(String, String)> {
        let Ok(files) = fs::read_dir(&self.folder) else { return Vec::new() };
        let parts = |path: PathBuf| {
            Some((path.file_stem()?.to_str()?.to_owned(), path.extension()?.to_str()?.to_owned()))
        };
        files.flatten().filter_map(|file| parts(file.path())).collect()
    }

    /// All entries by name, including those of killed services. Skips unreadable files of other programs.
    pub fn entries<E: Entry>(&self) -> Vec<E> {
        let files = self.files().into_iter().filter(|(_, kind)| kind == E::KIND);
        let read = |path| serde_json::from_slice(&fs::read(path).ok()?).ok();
        let mut all: Vec<E> = files.filter_map(|(name, kind)| read(self.file(&name, &kind))).collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all
    }

    /// The entry with this name.
    pub fn entry<E: Entry>(&self, name: &str) -> Option<E> {
        self.entries().into_iter().find(|entry: &E| entry.name() == name)
    }

    /// Writes an entry atomically: readers see the old one or the new one.
    ///
    /// # Errors
    /// When the disk is full or the folder is gone.
    pub fn write<E: Entry>(&self, entry: &E) -> Result<(), SystemError> {
        let (path, draft) = (self.file(entry.name(), E::KIND), self.file(entry.name(), "draft"));
        let text = serde_json::to_vec_pretty(entry).unwrap_or_default();
        fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path)).map_err(SystemError::at(&path))
    }

    /// Removes files of these kinds; true if any existed.
    pub fn remove(&self, name: &str, kinds: &[&str]) -> bool {
        // errors are ignored: the file may not exist, and there is nobody to report to
        let removed = kinds.iter().filter(|kind| fs::remove_file(self.file(name, kind)).is_ok());
        removed.count() > 0
    }
}

/// Selects a service: the named one, or the only one.
///
/// # Errors
/// The running services, if none has this name, or if no name is given and there is not exactly one.
pub fn pick<E: Entry>(mut running: Vec<E>, named: Option<&str>) -> Result<E, Vec<E>> {
    let at = match named {
        Some(name) => running.iter().position(|entry| entry.name() == name),
        None => (running.len() == 1).then_some(0),
    };
    at.map(|at| running.swap_remove(at)).ok_or(running)
}

/// A lock on a file. The kernel releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock.
    ///
    /// # Errors
    /// When the folder is gone.
    pub fn acquire(path: &Path) -> Result<Self, SystemError> {
        let locked = Self::open(path, FlockOperation::LockExclusive).map_err(SystemError::at(path))?;
        locked.map_or_else(|| Self::acquire(path), Ok)
    }

    /// Takes the lock; `None` if it is held.
    ///
    /// # Errors
    /// When the folder is gone.
    pub fn try_acquire(path: &Path) -> Result<Option<Self>, SystemError> {
        match Self::open(path, FlockOperation::NonBlockingLockExclusive) {
            // the holder has removed the file: it is about to be free
            Ok(None) => Self::try_acquire(path),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            other => other.map_err(SystemError::at(path)),
        }
    }

    /// True if the lock is held. Leaves no file behind.
    pub fn is_held(path: &Path) -> bool {
        let Ok(file) = File::open(path) else { return false };
        matches!(flock(&file, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
    }

    /// Opens and locks the file; `None` if it was removed meanwhile.
    fn open(path: &Path, how: FlockOperation) -> io::Result<Option<Self>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        flock(&file, how)?;
        let inode = |m: fs::Metadata| (m.dev(), m.ino());
        let is_same =
            fs::metadata(path).is_ok_and(|m| file.metadata().is_ok_and(|own| inode(own) == inode(m)));
        Ok(is_same.then_some(Self { _file: file }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Note(String);

    impl Entry for Note {
        const KIND: &'static str = "note";

        fn name(&self) -> &str {
            &self.0
        }
    }

    #[test]
    fn entries_are_found_by_name_and_what_is_foreign_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("bentpipe-registry-{}", std::process::id()));
        let registry = Registry::at(&folder);
        assert_eq!(registry.entries::<Note>(), []);
        registry.make(0o700).unwrap();
        let note = |name: &str| Note(name.to_owned());
        registry.write(&note("b.2")).unwrap();
        registry.write(&note("a")).unwrap();
        fs::write(registry.file("c", "note"), "of another program").unwrap();
        assert_eq!(registry.entries::<Note>(), [note("a"), note("b.2")]);
        assert_eq!(registry.entry::<Note>("b.2"), Some(note("b.2")));
        let chosen = |named| pick(registry.entries::<Note>(), named);
        assert_eq!((chosen(Some("a")), chosen(None)), (Ok(note("a")), Err(vec![note("a"), note("b.2")])));
        registry.remove_folder();
        assert!(folder.exists(), "it is not empty");
        assert!(registry.remove("a", &["sock", "note"]) && !registry.remove("a", &["sock", "note"]));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_process_is_not_mistaken_for_another_of_its_number() {
        let this = Process::this();
        assert!(this.is_alive());
        assert!(!Process { start_time: this.start_time + 1, ..this.clone() }.is_alive());
        assert!(!Process { boot: "another".to_owned(), ..this.clone() }.is_alive());
        assert!(Process { start_time: 0, ..this }.is_alive(), "version 0.1.0 did not write the time");
    }
}
