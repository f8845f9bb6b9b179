//! Landlock (landlock(7), Documentation/userspace-api/landlock.rst): a thread gives up all of the file system but what it names, for itself and all it starts, for good.
//!
//! What is open stays open. A right counts for everything below the folder that it is given for. Kernels know different sets of rights, told by the number of the interface; what one
//! does not know it does not refuse.

#![allow(
    unsafe_code,
    reason = "system calls that neither rustix nor libc has; each block says why it is sound"
)]

use rustix::fs::{Mode, OFlags, fstat, open};
use std::io::{self, Error};
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;

/// The same on all processors.
const CREATE_RULESET: libc::c_long = 444;
const ADD_RULE: libc::c_long = 445;
const RESTRICT_SELF: libc::c_long = 446;
/// Asks for the number of the interface.
const VERSION: u32 = 1;
const PATH_BENEATH: libc::c_int = 1;

/// What may be done with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u64);

impl Access {
    /// Run programs.
    pub const EXECUTE: Self = Self(1);
    /// Read files.
    pub const READ: Self = Self(1 << 2);
    /// List folders.
    pub const LIST: Self = Self(1 << 3);
    /// Write to files that are there, cut them off.
    pub const WRITE: Self = Self(1 << 1 | TRUNCATE);
    /// Make ordinary files.
    pub const MAKE: Self = Self(1 << 8);
    /// Remove files and sockets.
    pub const REMOVE: Self = Self(1 << 5);
    /// Remove empty folders.
    pub const REMOVE_FOLDERS: Self = Self(1 << 4);
    /// Rights that a file can have, not only a folder.
    const OF_FILES: Self = Self(Self::EXECUTE.0 | Self::READ.0 | Self::WRITE.0 | IOCTL);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

const TRUNCATE: u64 = 1 << 14;
const IOCTL: u64 = 1 << 15;
/// TCP: bind and connect.
const TCP: u64 = 0b11;

/// `struct landlock_ruleset_attr`. Kernels that know less of it accept zeros in the rest.
#[repr(C)]
struct Ruleset {
    files: u64,
    net: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    parent: i32,
}

/// All rights on files that interface `abi` knows.
const fn known(abi: u32) -> u64 {
    let bits = match abi {
        0 | 1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    (1 << bits) - 1
}

/// The number of the kernel's interface; `None` when it has none, or it is turned off.
pub fn abi() -> Option<u32> {
    let none = core::ptr::null::<Ruleset>();
    // SAFETY: with this flag no pointer is read.
    let version = unsafe { libc::syscall(CREATE_RULESET, none, 0usize, VERSION) };
    u32::try_from(version).ok().filter(|v| *v > 0)
}

/// Gives up, for the calling thread and all that it starts, whatever is not in `allowed`; and, where the kernel knows it, the making of TCP connections and listeners. Paths that
/// are not there are passed over. The thread must not be able to gain privileges (`no_new_privs`). Returns the interface's number; `None` when the kernel has no Landlock.
///
/// # Errors
/// When the kernel refuses.
pub fn restrict(allowed: &[(&Path, Access)]) -> io::Result<Option<u32>> {
    let Some(abi) = abi() else { return Ok(None) };
    let known = known(abi);
    let attr = Ruleset { files: known, net: if abi >= 4 { TCP } else { 0 } };
    // SAFETY: `attr` lives during the call and the size is its own.
    let fd = unsafe { libc::syscall(CREATE_RULESET, &raw const attr, size_of::<Ruleset>(), 0u32) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(Error::last_os_error)?;
    // SAFETY: the call has just made it, and nobody else has it.
    let rules = unsafe { OwnedFd::from_raw_fd(fd) };
    for (path, access) in allowed {
        let Ok(parent) = open(*path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { continue };
        let is_folder = rustix::fs::FileType::from_raw_mode(fstat(&parent)?.st_mode).is_dir();
        let possible = if is_folder { known } else { known & Access::OF_FILES.0 };
        let rule = Beneath { allowed: access.0 & possible, parent: parent.as_raw_fd() };
        // SAFETY: `rule` lives during the call, and `parent` is open.
        let done = unsafe { libc::syscall(ADD_RULE, rules.as_raw_fd(), PATH_BENEATH, &raw const rule, 0u32) };
        if done != 0 {
            return Err(Error::last_os_error());
        }
    }
    // SAFETY: numbers only.
    let done = unsafe { libc::syscall(RESTRICT_SELF, rules.as_raw_fd(), 0u32) };
    if done == 0 { Ok(Some(abi)) } else { Err(Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn only_what_is_named_can_be_opened() {
        let Some(abi) = abi() else {
            println!(
                "SKIPPED only_what_is_named_can_be_opened: this kernel has no Landlock, or it is turned off"
            );
            return;
        };
        let folder = std::env::temp_dir().join(format!("bentpipe-landlock-{}", std::process::id()));
        let (ours, theirs) = (folder.join("ours"), folder.join("theirs"));
        for sub in [&ours, &theirs] {
            fs::create_dir_all(sub).unwrap();
            fs::write(sub.join("file"), "text").unwrap();
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let refused = |e: io::Error| assert_eq!(e.kind(), ErrorKind::PermissionDenied);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                rustix::thread::set_no_new_privs(true).unwrap();
                let all = Access::READ.and(Access::WRITE).and(Access::MAKE).and(Access::REMOVE);
                let nowhere = folder.join("nowhere");
                let allowed = [(&*ours, all), (&*theirs, Access::LIST), (&*nowhere, all)];
                assert_eq!(restrict(&allowed).unwrap(), Some(abi));
                fs::write(ours.join("new"), "text").unwrap();
                assert_eq!(fs::read_to_string(ours.join("new")).unwrap(), "text");
                fs::remove_file(ours.join("new")).unwrap();
                assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
                refused(fs::read(theirs.join("file")).unwrap_err());
                refused(fs::write(theirs.join("file"), "").unwrap_err());
                refused(fs::write(theirs.join("new"), "").unwrap_err());
                refused(fs::remove_file(theirs.join("file")).unwrap_err());
                refused(fs::read("/etc/passwd").unwrap_err());
                if abi >= 4 {
                    refused(TcpStream::connect(to).unwrap_err());
                    refused(TcpListener::bind(("127.0.0.1", 0)).unwrap_err());
                }
            });
        });
        // another thread is as it was
        fs::read(theirs.join("file")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn older_kernels_are_asked_for_what_they_know() {
        assert_eq!((known(1), known(2), known(3)), (0x1fff, 0x3fff, 0x7fff));
        assert_eq!((known(4), known(5), known(99)), (0x7fff, 0xffff, 0xffff));
    }
}
