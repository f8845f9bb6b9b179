//! Processes: who ends with whom, who is still there, and in which namespaces they are.

use rustix::io::{FdFlags, Result, fcntl_getfd, fcntl_setfd};
use rustix::process::{
    Pid, Signal, getpid, kill_process, set_child_subreaper, set_parent_process_death_signal,
};
use std::fs;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

/// Asks for SIGKILL when the thread that started this process ends; survives `exec` of ordinary programs
/// (prctl(2)).
///
/// # Errors
/// Only on kernels that lack it.
pub fn die_with_parent() -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
}

/// Makes orphans below this process its children, so that it hears of their end and finds them.
///
/// # Errors
/// Only on kernels that lack it.
pub fn adopt_orphans() -> Result<()> {
    set_child_subreaper(Some(getpid()))
}

/// When a process started, in clock ticks since the machine did: with its number it names a process for good,
/// since numbers are used again.
pub fn start_time(pid: i32) -> Option<u64> {
    stat_field(pid, 22)?.parse().ok()
}

/// Threads of a process that are left, its first one included even when that has ended before others
/// (proc(5)); 0 when it is gone.
pub fn threads(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// The number of a process's parent.
pub fn parent(pid: i32) -> Option<i32> {
    stat_field(pid, 4)?.parse().ok()
}

/// Field `number` of `/proc/PID/stat`, counted from 1 as in proc(5), from the third on; the second is a name
/// that may hold anything.
fn stat_field(pid: i32, number: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    // A zombie is gone in every sense that matters here.
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(number - 4).map(str::to_owned)
}

/// Numbers of all processes that can be seen.
pub fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Inode of a process's network namespace; `None` when it is gone or not ours to look at.
pub fn network_inode(pid: i32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|m| m.ino())
}

/// A variable of the environment with which a process was started.
pub fn environment(pid: i32, name: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = bytes.split(|b| *b == 0);
    let value = variables.find_map(|v| v.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(value.to_vec()).ok()
}

/// Sends a signal to one process; true when it was there.
pub fn signal(pid: i32, signal: Signal) -> bool {
    // 0 and negative numbers mean groups of processes: never those.
    Pid::from_raw(pid).filter(|_| pid > 0).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// A descriptor that the starter of this process left open for it; programs that are started from here do not
/// get it.
///
/// # Errors
/// When nothing is open under that number. Standard input, output and error are never given away.
pub fn take_inherited(number: i32) -> Result<OwnedFd> {
    if number <= 2 {
        return Err(rustix::io::Errno::BADF);
    }
    #[allow(unsafe_code, reason = "a number from the command line becomes a descriptor")]
    let fd = {
        // SAFETY: borrowed for one call that fails when the number is not open.
        fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) })?;
        // SAFETY: the number is open. Only the hidden helper calls this, first thing in its process and once
        // for each number that its starter opened for it, so that nobody else owns it.
        unsafe { OwnedFd::from_raw_fd(number) }
    };
    fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
    Ok(fd)
}
