//! The sandbox of a running gateway: file access by Landlock, system calls by seccomp, where the kernel has
//! them.
//!
//! Both are entered after everything is open and before the first packet, so they also apply to the data
//! thread. They still allow everything that a running gateway must do: keep its records, write flow records,
//! reload its file, and remove its rules (with `nft`, which inherits both). If the kernel lacks or refuses
//! one of them, the gateway runs without it, and `check`, the log and `status` say so.

use bentpipe_os::landlock::{self, Access};
use bentpipe_os::seccomp;
use bentpipe_scenario::gateway_file::GatewayFile;
use bentpipe_service::Finding;
use serde::{Deserialize, Serialize};
use std::env;
use std::path::{Path, PathBuf};

/// Folders of programs and libraries.
const PROGRAMS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store"];
/// Files in `/etc` that the dynamic linker and `nft` read; none is secret.
const TABLES: &str = "ld.so.cache ld.so.preload alternatives connlabel.conf iproute2 localtime nsswitch.conf protocols services";

/// State of a running gateway's sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Landlock: its ABI version, or why it is off.
    pub landlock: String,
    /// seccomp: what happens to other system calls, or why it is off.
    pub seccomp: String,
}

impl Sandbox {
    /// Enters both, for the calling thread and the threads it starts later. `maps`: it writes to BPF maps
    /// that are open.
    pub fn enter(file: &GatewayFile, path: &str, run_folder: &Path, socket: &Path, maps: bool) -> Self {
        Self {
            landlock: match landlock::restrict(&accessible_paths(file, path, run_folder, socket)) {
                Ok(Some(abi)) => format!("on, interface {abi}"),
                Ok(None) => NO_LANDLOCK.to_owned(),
                Err(error) => format!("refused: {error}"),
            },
            // after Landlock, whose system calls are needed only once
            seccomp: match seccomp::restrict(&seccomp::ordinary(), maps) {
                Ok(true) => "on, other calls are refused".to_owned(),
                Ok(false) => NO_SECCOMP.to_owned(),
                Err(error) => format!("refused: {error}"),
            },
        }
    }

    /// True if both are on.
    pub fn is_whole(&self) -> bool {
        self.landlock.starts_with("on") && self.seccomp.starts_with("on")
    }
}

const NO_LANDLOCK: &str = "not in this kernel, or turned off";
const NO_SECCOMP: &str = "not in this kernel, or not for this processor";

pub(super) fn findings() -> [Finding; 2] {
    let landlock = landlock::abi().map(|abi| format!("interface {abi}"));
    let seccomp = seccomp::is_there().then(|| "filters of system calls".to_owned());
    [("landlock", landlock, NO_LANDLOCK), ("seccomp", seccomp, NO_SECCOMP)].map(|(name, there, lack)| {
        there.map_or_else(|| Finding::warning(name, lack), |found| Finding::good(name, found))
    })
}

/// The folders and files that stay accessible.
fn accessible_paths(
    file: &GatewayFile,
    path: &str,
    run_folder: &Path,
    socket: &Path,
) -> Vec<(PathBuf, Access)> {
    let change = Access::READ.and(Access::WRITE).and(Access::MAKE).and(Access::REMOVE);
    let run = Access::READ.and(Access::LIST).and(Access::EXECUTE);
    let mut all = vec![(run_folder.to_owned(), change.and(Access::LIST))];
    // the folder is removed at the end if it is empty
    all.extend(folder_of(run_folder).map(|folder| (folder, Access::REMOVE_FOLDERS)));
    all.extend(folder_of(socket).map(|folder| (folder, Access::REMOVE)));
    // editors write a new file and rename it to the old name
    all.extend(folder_of(Path::new(path)).map(|folder| (folder, Access::READ)));
    if let Some((records, _)) = &file.status.records {
        all.extend(
            folder_of(Path::new(records))
                .map(|folder| (folder, Access::READ.and(Access::WRITE).and(Access::MAKE))),
        );
    }
    let read = |path: &str| (PathBuf::from(path), Access::READ.and(Access::LIST));
    all.extend([
        read("/proc"),
        (PathBuf::from("/proc/sys/net"), Access::READ.and(Access::WRITE).and(Access::LIST)),
    ]);
    all.extend([(PathBuf::from("/dev/null"), Access::READ.and(Access::WRITE)), read("/dev/urandom")]);
    all.extend(PROGRAMS.map(|folder| (PathBuf::from(folder), run)));
    all.extend(TABLES.split(' ').map(|name| read(&format!("/etc/{name}"))));
    let paths = env::var_os("PATH").unwrap_or_default();
    all.extend(
        env::split_paths(&paths).filter(|folder| folder.join("nft").is_file()).map(|folder| (folder, run)),
    );
    all
}

fn folder_of(path: &Path) -> Option<PathBuf> {
    Some(std::path::absolute(path).ok()?.parent()?.to_owned())
}
