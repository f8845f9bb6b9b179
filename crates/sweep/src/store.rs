//! Store of finished runs: one file each, named by the run's key. The first line is the hash of the second,
//! which contains the key and the report, so that damaged files are detected and the run is repeated. Files
//! are written under a temporary name and renamed, so no reader and no killed process leaves half a file.
//! Runs are not synced, since waiting for the disk takes longer than a short run: what a power failure
//! damages is repeated. All other files are synced.

use crate::error::{Error, file_error};
use bentpipe_report::Report;
use rustix::fs::{FlockOperation, flock};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Quantities over the course of a run: for each one a value, if there is one, at each step of time.
pub(crate) type Course = BTreeMap<String, Vec<Option<f64>>>;

/// Suffix of files that are being written.
const UNFINISHED: &str = ".unfinished";

/// The second line of a run's file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Stored<K, R, C> {
    key: K,
    report: R,
    #[serde(default)]
    course: C,
}

pub(crate) struct Store {
    folder: PathBuf,
    /// Held while the store is in use. It is shared, so that several shards can use one folder.
    _lock: Option<File>,
}

impl Store {
    /// Opens the store in a sweep's folder, and creates it if necessary. Unfinished files of killed
    /// processes are removed unless another process is using the store.
    pub(crate) fn open(out: &Path) -> Result<Self, Error> {
        let folder = out.join("runs");
        fs::create_dir_all(&folder).map_err(file_error(&folder))?;
        sync_folder(out).map_err(file_error(out))?;
        let lock = File::open(&folder).ok();
        if let Some(lock) = &lock {
            if flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
                for folder in [out, &folder] {
                    remove_files(folder, |name| name.ends_with(UNFINISHED)).map_err(file_error(folder))?;
                }
            }
            // on a file system without locks nothing is removed, so no lock is needed
            let _ = flock(lock, FlockOperation::LockShared);
        }
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn read_only(out: &Path) -> Self {
        Self { folder: out.join("runs"), _lock: None }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }

    /// Returns the text of a valid run.
    pub(crate) fn read_text(&self, key: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(key)).ok()?;
        parse_run::<IgnoredAny>(&text, key).map(|_| text)
    }

    pub(crate) fn read(&self, key: &str) -> Option<Report> {
        self.read_with_course(key).map(|(report, _)| report)
    }

    /// Returns a run and its course, which is empty if it was not recorded.
    pub(crate) fn read_with_course(&self, key: &str) -> Option<(Report, Course)> {
        let text = fs::read_to_string(self.path(key)).ok()?;
        let Stored { report, course, .. } = parse_run(&text, key)?;
        Some((report, course))
    }

    pub(crate) fn write(&self, key: &str, report: Report, course: &Course) -> Result<(), Error> {
        // without fields that the key does not cover, and series of instruments, which are long
        let (scenario, parameters, instruments) = Default::default();
        let report = Report { scenario, parameters, instruments, ..report };
        self.write_text(key, &format_run(&Stored { key, report: &report, course }))
    }

    pub(crate) fn write_text(&self, key: &str, text: &str) -> Result<(), Error> {
        let path = self.path(key);
        replace(&path, |file| file.write_all(text.as_bytes())).map_err(file_error(&path))
    }
}

/// Returns the error for a run that disappeared.
pub(crate) fn missing_run_error(key: &str) -> Error {
    let error = io::Error::other("it was removed or damaged meanwhile");
    Error::File { path: format!("runs/{key}.json").into(), error }
}

/// Returns the contents of a run's file.
fn format_run(run: &Stored<&str, impl Serialize, &Course>) -> String {
    let body = serde_json::to_string(run).unwrap_or_default();
    format!("{}\n{body}\n", blake3::hash(body.as_bytes()).to_hex())
}

/// Returns the body of a run's file if it is whole and that of `key`.
fn parse_run<R: DeserializeOwned>(text: &str, key: &str) -> Option<Stored<String, R, Course>> {
    let (hash, body) = text.split_once('\n')?;
    let body = body.strip_suffix('\n')?;
    if blake3::hash(body.as_bytes()).to_hex().as_str() != hash {
        return None;
    }
    let run: Stored<String, R, Course> = serde_json::from_str(body).ok()?;
    (run.key == key).then_some(run)
}

/// Writes a file atomically. Once this returns, the file also survives a power failure.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let written = replace(path, |file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.and_then(|()| sync_folder(folder)).map_err(file_error(path))
}

/// Writes a file under a temporary name and gives it its name when it is complete.
fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let (temporary, mut file) = create(path)?;
    let done = write(&mut file).and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        // an incomplete file is useless, and the disk may be full
        let _ = fs::remove_file(&temporary);
    }
    done
}

/// Creates a temporary file beside `path` whose name is unique among threads, processes and machines on the
/// same file system.
fn create(path: &Path) -> io::Result<(PathBuf, File)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_file_name(format!("{name}.{}-{number}{UNFINISHED}", std::process::id()));
        match File::create_new(&temporary) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (temporary, file)),
        }
    }
}

/// Syncs the folder, which makes new names permanent.
fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

/// Removes the files of a folder whose names satisfy `such`.
pub(crate) fn remove_files(folder: &Path, such: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(&such) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_and_foreign_files_are_not_trusted() {
        let parse_run = parse_run::<serde_json::Value>;
        let (report, course) = (serde_json::json!({ "a": 1 }), Course::new());
        let good = format_run(&Stored { key: "k", report: &report, course: &course });
        assert_eq!(parse_run(&good, "k"), Some(Stored { key: "k".to_owned(), report, course }));
        assert_eq!(parse_run(&good, "other"), None);
        for n in 0..good.len() {
            assert_eq!(parse_run(&good[..n], "k"), None, "{n}");
        }
        assert_eq!(parse_run(&good.replace(":1", ":2"), "k"), None);
    }

    /// Two processes write the same name: the file is one of the two texts, and no other files remain.
    #[test]
    fn one_name_written_by_many_is_always_whole() {
        let folder = std::env::temp_dir().join(format!("bentpipe-store-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x.json");
        let texts = ["a".repeat(100_000), "b".repeat(50_000)];
        std::thread::scope(|scope| {
            for text in &texts {
                scope.spawn(|| (0..50).for_each(|_| write_file(&path, text.as_bytes()).unwrap()));
            }
            for _ in 0..200 {
                if let Ok(seen) = fs::read_to_string(&path) {
                    assert!(texts.contains(&seen), "{} bytes", seen.len());
                }
            }
        });
        let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["x.json"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_a_killed_process_left_is_removed_but_not_under_another_s_feet() {
        let out = std::env::temp_dir().join(format!("bentpipe-left-{}", std::process::id()));
        let left = out.join("runs").join("k.json.1-1.unfinished");
        let first = Store::open(&out).unwrap();
        fs::write(&left, "half").unwrap();
        let second = Store::open(&out).unwrap();
        assert!(left.exists(), "the first may be writing it");
        drop((first, second));
        drop(Store::open(&out).unwrap());
        assert!(!left.exists());
        fs::remove_dir_all(&out).unwrap();
    }
}
