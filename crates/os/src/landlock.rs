//! Landlock (landlock(7), Documentation/userspace-api/landlock.rst): a thread gives up all of the file system
//! but what it names, for itself and all it starts, for good.
//!
//! What is open stays open. A right counts for everything below the folder that it is given for. Kernels know
//! different sets of rights, told by the number of the interface; what one does not know it does not refuse.

#![allow(unsafe_code, reason = "a system call that neither the landlock crate nor libc has")]

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, make_bitflags,
};
use std::io;
use std::path::Path;

/// What may be done with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(BitFlags<AccessFs>);

impl Access {
    /// Run programs.
    pub const EXECUTE: Self = Self(make_bitflags!(AccessFs::{Execute}));
    /// Read files.
    pub const READ: Self = Self(make_bitflags!(AccessFs::{ReadFile}));
    /// List folders.
    pub const LIST: Self = Self(make_bitflags!(AccessFs::{ReadDir}));
    /// Write to files that are there, cut them off.
    pub const WRITE: Self = Self(make_bitflags!(AccessFs::{WriteFile | Truncate}));
    /// Make ordinary files.
    pub const MAKE: Self = Self(make_bitflags!(AccessFs::{MakeReg}));
    /// Remove files and sockets.
    pub const REMOVE: Self = Self(make_bitflags!(AccessFs::{RemoveFile}));
    /// Remove empty folders.
    pub const REMOVE_FOLDERS: Self = Self(make_bitflags!(AccessFs::{RemoveDir}));

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0.union_c(other.0))
    }
}

/// The number of the kernel's interface; `None` when it has none, or it is turned off.
pub fn abi() -> Option<u32> {
    /// The call's number is the same on all processors; the flag asks for the number of the interface.
    const CREATE_RULESET: libc::c_long = 444;
    const VERSION: u32 = 1;
    let none = core::ptr::null::<u8>();
    // SAFETY: with this flag no pointer is read.
    let version = unsafe { libc::syscall(CREATE_RULESET, none, 0usize, VERSION) };
    u32::try_from(version).ok().filter(|v| *v > 0)
}

/// Gives up, for the calling thread and all that it starts, whatever is not in `allowed`; and, where the
/// kernel knows it, the making of TCP connections and listeners. Paths that are not there are passed over.
/// Afterwards the thread cannot gain privileges (`no_new_privs`). Returns the interface's number; `None` when
/// the kernel has no Landlock.
///
/// # Errors
/// When the kernel refuses.
pub fn restrict(allowed: &[(&Path, Access)]) -> io::Result<Option<u32>> {
    let Some(abi) = abi() else { return Ok(None) };
    enforce(allowed).map_err(io::Error::other)?;
    Ok(Some(abi))
}

/// What a kernel does not know it is not asked for.
fn enforce(allowed: &[(&Path, Access)]) -> Result<(), RulesetError> {
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
        // another thread is as it was
        fs::read(theirs.join("file")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
