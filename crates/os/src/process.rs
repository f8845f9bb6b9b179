//! Processes: lifetime, existence and namespaces.

use rustix::io::{FdFlags, Result, fcntl_getfd, fcntl_setfd};
use rustix::process::{
    Pid, Signal, getpid, kill_process, set_child_subreaper, set_parent_process_death_signal,
};
use std::fs;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

/// Asks for SIGKILL when the thread that started this process ends. The setting survives `exec` of ordinary
/// programs (prctl(2)).
///
/// # Errors
/// Only on kernels without this option.
pub fn die_with_parent() -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
}

/// Makes this process the parent of orphaned descendants, so that it can wait for them.
///
/// # Errors
/// Only on kernels without this option.
pub fn adopt_orphans() -> Result<()> {
    set_child_subreaper(Some(getpid()))
}

/// Start time of a process, in clock ticks since boot. PID and start time together identify a process
/// uniquely, since PIDs are reused.
pub fn start_time(pid: i32) -> Option<u64> {
    stat_field(pid, 22)?.parse().ok()
}

/// Number of threads of a process, including a main thread that has already ended (proc(5)); 0 if the process
/// is gone.
pub fn threads(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// PID of a process's parent.
pub fn parent(pid: i32) -> Option<i32> {
    stat_field(pid, 4)?.parse().ok()
}

/// Field `number` of `/proc/PID/stat`, counted from 1 as in proc(5); at least 4. The fields are counted from
/// the end of the second, a name that may contain any character; the third is the state.
fn stat_field(pid: i32, number: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    // A zombie counts as gone.
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(number - 4).map(str::to_owned)
}

/// PIDs of all visible processes.
pub fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Inode of a process's network namespace; `None` if it is gone or access is not permitted.
pub fn network_inode(pid: i32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|m| m.ino())
}

/// A variable of a process's initial environment.
pub fn environment(pid: i32, name: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = bytes.split(|b| *b == 0);
    let value = variables.find_map(|v| v.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(value.to_vec()).ok()
}

/// Sends a signal to one process; returns true if it exists.
pub fn signal(pid: i32, signal: Signal) -> bool {
    // 0 and negative numbers mean process groups.
    Pid::from_raw(pid).filter(|_| pid > 0).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Takes over a descriptor that the parent process left open for this one, and sets its close-on-exec flag.
///
/// # Errors
/// When no descriptor of that number is open. Standard input, output and error are never returned.
pub fn take_inherited(number: i32) -> Result<OwnedFd> {
    if number <= 2 {
        return Err(rustix::io::Errno::BADF);
    }
    #[allow(unsafe_code, reason = "a number from the command line becomes a descriptor")]
    let fd = {
        // SAFETY: borrowed for one call that fails if the descriptor is not open.
        fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) })?;
        // SAFETY: the descriptor is open. Only the hidden helper calls this, at the start of its process and
        // once for each descriptor that its parent opened for it, so nobody else owns it.
        unsafe { OwnedFd::from_raw_fd(number) }
    };
    fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
    Ok(fd)
}
