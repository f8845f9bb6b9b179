//! Landlock (landlock(7), Documentation/userspace-api/landlock.rst): a thread permanently gives up access to
//! the file system except for listed paths, for itself and everything it starts.
//!
//! Open files stay usable. A right covers everything below its folder. The set of rights depends on the
//! kernel's Landlock ABI version; rights that a kernel does not know are not restricted.

#![allow(unsafe_code, reason = "a system call that neither the landlock crate nor libc has")]

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, make_bitflags,
};
use std::io;
use std::path::Path;

/// Rights on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(BitFlags<AccessFs>);

impl Access {
    /// Execute programs.
    pub const EXECUTE: Self = Self(make_bitflags!(AccessFs::{Execute}));
    /// Read files.
    pub const READ: Self = Self(make_bitflags!(AccessFs::{ReadFile}));
    /// List folders.
    pub const LIST: Self = Self(make_bitflags!(AccessFs::{ReadDir}));
    /// Write to and truncate existing files.
    pub const WRITE: Self = Self(make_bitflags!(AccessFs::{WriteFile | Truncate}));
    /// Create regular files.
    pub const MAKE: Self = Self(make_bitflags!(AccessFs::{MakeReg}));
    /// Remove files and sockets.
    pub const REMOVE: Self = Self(make_bitflags!(AccessFs::{RemoveFile}));
    /// Remove empty folders.
    pub const REMOVE_FOLDERS: Self = Self(make_bitflags!(AccessFs::{RemoveDir}));

    /// The union of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0.union_c(other.0))
    }
}

/// Landlock ABI version of the kernel; `None` if it has no Landlock or it is disabled.
pub fn abi() -> Option<u32> {
    /// Same system call number on all processors; the flag asks for the ABI version.
    const CREATE_RULESET: libc::c_long = 444;
    const VERSION: u32 = 1;
    let none = core::ptr::null::<u8>();
    // SAFETY: with this flag the kernel reads no pointer.
    let version = unsafe { libc::syscall(CREATE_RULESET, none, 0usize, VERSION) };
    u32::try_from(version).ok().filter(|v| *v > 0)
}

/// Restricts the calling thread and everything it starts to `allowed`. Where the kernel supports it, also
/// forbids TCP connections and listeners. Missing paths are ignored. Afterwards the thread cannot gain
/// privileges (`no_new_privs`). Returns the ABI version; `None` if the kernel has no Landlock.
///
/// # Errors
/// When the kernel refuses.
pub fn restrict(allowed: &[(impl AsRef<Path>, Access)]) -> io::Result<Option<u32>> {
    let Some(abi) = abi() else { return Ok(None) };
    enforce(allowed).map_err(io::Error::other)?;
    Ok(Some(abi))
}

/// Restricts what this kernel supports and ignores the rest.
fn enforce(allowed: &[(impl AsRef<Path>, Access)]) -> Result<(), RulesetError> {
    let rules = Ruleset::default().handle_access(AccessFs::from_all(ABI::V5))?;
    let mut rules = rules.handle_access(AccessNet::from_all(ABI::V5))?.create()?;
    for (path, access) in allowed {
        if let Ok(parent) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(parent, access.0))?;
        }
    }
    rules.restrict_self().map(drop)
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
        // another thread is not restricted
        fs::read(theirs.join("file")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
