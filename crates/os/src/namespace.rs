//! Namespaces of the calling thread: made, entered, told apart.

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Result;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Why there is no user namespace.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The kernel refused to make one.
    #[error("the kernel does not let this user make a user namespace: {0}")]
    Unshare(#[source] io::Error),
    /// It was made but cannot be used.
    #[error("a user namespace was made, but {file} cannot be written: {source}")]
    Map {
        /// The file.
        file: &'static str,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
}

/// Puts this process into a new user namespace in which user and group keep their numbers and everything may
/// be done.
///
/// # Errors
/// When the kernel or its settings forbid it; also when the process has several threads.
pub fn new_user() -> core::result::Result<(), UserError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER).map_err(|e| UserError::Unshare(e.into()))?;
    // Groups must be given up first: user_namespaces(7).
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

/// Puts the calling thread into a new network namespace and returns a handle to it.
///
/// # Errors
/// When the kernel refuses.
pub fn new_network() -> Result<OwnedFd> {
    unshare(UnshareFlags::NEWNET)?;
    network()
}

/// The network namespace of the calling thread.
///
/// # Errors
/// When `/proc` is missing.
pub fn network() -> Result<OwnedFd> {
    open(Path::new("/proc/thread-self/ns/net"))
}

/// Opens a namespace by its path, as in `/proc/PID/ns/net`.
///
/// # Errors
/// When it is gone or not ours to look at.
pub fn open(path: &Path) -> Result<OwnedFd> {
    openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Puts the calling thread into a network namespace.
///
/// # Errors
/// When it is not ours to enter.
pub fn enter_network(namespace: impl AsFd) -> Result<()> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
}

/// Does something in another network namespace and comes back.
///
/// # Errors
/// When the namespace is not ours to enter, or there is no way back; then the thread stays there and must do
/// nothing more.
pub fn in_network<T>(namespace: impl AsFd, act: impl FnOnce() -> T) -> Result<T> {
    let here = network()?;
    enter_network(namespace)?;
    let done = act();
    enter_network(here)?;
    Ok(done)
}

/// What tells namespaces apart while they live; the number is used again later.
///
/// # Errors
/// When the handle is bad.
pub fn inode(namespace: impl AsFd) -> Result<u64> {
    fstat(namespace).map(|stat| stat.st_ino)
}

/// Puts the calling thread into a mount namespace of its own. What others mount later is seen, what is
/// mounted here is not.
///
/// # Errors
/// When the kernel refuses.
pub fn new_mount() -> Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

/// Shows `source` in the place of `target`.
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
