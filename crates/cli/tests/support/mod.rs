//! Helpers: the program, its output and its folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the program, started in the folder of the repository.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command
}

#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn bentpipe<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Output {
    program().args(args).output().expect("it starts")
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the path of a folder for this test run that does not exist yet.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

/// Returns names and contents of all files below a folder.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        if path.is_dir() {
            all.extend(contents(&path).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            all.insert(name, fs::read(&path).expect("it can be read"));
        }
    }
    all
}

/// Compares two folders without printing megabytes.
#[allow(dead_code, reason = "not every test file uses it")]
#[track_caller]
pub(crate) fn same(a: &Path, b: &Path) {
    let (a, b) = (contents(a), contents(b));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in &a {
        assert!(*bytes == b[name], "{name} differs");
    }
}

/// Returns the finished runs in a folder.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn runs(out: &Path) -> Vec<PathBuf> {
    let Ok(list) = fs::read_dir(out.join("runs")) else { return Vec::new() };
    let all = list.map(|e| e.expect("it can be read").path());
    let mut all: Vec<_> = all.filter(|p| p.extension().is_some_and(|e| e == "json")).collect();
    all.sort();
    all
}
