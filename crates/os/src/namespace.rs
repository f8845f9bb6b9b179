//! Creates, enters and identifies namespaces of the calling thread.

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Result;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Why a user namespace could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The kernel refused to create one.
    #[error("the kernel does not let this user make a user namespace: {0}")]
    Unshare(#[source] io::Error),
    /// It was created but cannot be used.
    #[error("a user namespace was made, but {file} cannot be written: {source}")]
    Map {
        /// The file.
        file: &'static str,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

/// Moves this process into a new user namespace in which it has all capabilities; user and group IDs stay the
/// same.
///
/// # Errors
/// When the kernel or its settings forbid it, or the process has several threads.
pub fn new_user() -> core::result::Result<(), UserError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER).map_err(|e| UserError::Unshare(e.into()))?;
    // setgroups must be denied before gid_map is written: user_namespaces(7).
    let files = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in files {
        fs::write(file, text).map_err(|source| UserError::Map { file, source })?;
    }
    Ok(())
}

/// Moves the calling thread into a new network namespace and returns a handle to it.
///
/// # Errors
/// When the kernel refuses.
pub fn new_network() -> Result<OwnedFd> {
    unshare(UnshareFlags::NEWNET)?;
    network()
}

/// Returns a handle to the calling thread's network namespace.
///
/// # Errors
/// When `/proc` is missing.
pub fn network() -> Result<OwnedFd> {
    open(Path::new("/proc/thread-self/ns/net"))
}

/// Opens a namespace by its path, as in `/proc/PID/ns/net`.
///
/// # Errors
/// When it is gone or access is not permitted.
pub fn open(path: &Path) -> Result<OwnedFd> {
    openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Moves the calling thread into a network namespace.
///
/// # Errors
/// When access is not permitted.
pub fn enter_network(namespace: impl AsFd) -> Result<()> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
}

/// Runs `act` in another network namespace and returns to the current one.
///
/// # Errors
/// When the other namespace cannot be entered, or the thread cannot return. In the latter case the thread
/// stays in the other namespace and must not be used any more.
pub fn in_network<T>(namespace: impl AsFd, act: impl FnOnce() -> T) -> Result<T> {
    let here = network()?;
    enter_network(namespace)?;
    let done = act();
    enter_network(here)?;
    Ok(done)
}

/// Inode number that identifies a namespace while it exists; the kernel reuses it later.
///
/// # Errors
/// When the handle is bad.
pub fn inode(namespace: impl AsFd) -> Result<u64> {
    fstat(namespace).map(|stat| stat.st_ino)
}

/// Moves the calling thread into a new mount namespace. It sees later mounts of the parent namespace; its own
/// mounts stay private.
///
/// # Errors
/// When the kernel refuses.
pub fn new_mount() -> Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

/// Bind-mounts `source` over `target`.
///
/// # Errors
/// When one of them is missing.
pub fn bind(source: &Path, target: &Path) -> Result<()> {
    mount_bind(source, target)
}

#[allow(unsafe_code, reason = "unshare(2) has no safe form")]
fn unshare(flags: UnshareFlags) -> Result<()> {
    // SAFETY: only CLONE_FILES makes this unsafe (threads that no longer share descriptors), and no caller
    // here passes it.
    unsafe { unshare_unsafe(flags) }
}
