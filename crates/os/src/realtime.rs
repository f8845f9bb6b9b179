//! Scheduling priority: real time where it is allowed.

#![allow(unsafe_code, reason = "sched_setscheduler is not in rustix; the block says why it is sound")]

use std::fmt;
use std::io;

/// Requested real-time priority: above ordinary processes, below the kernel's threads (50 and more).
const FIFO: i32 = 10;
/// The requested nice value if real time is not allowed.
const NICE: i32 = -15;

/// How the scheduler treats a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// SCHED_FIFO with this priority: it runs as soon as it is runnable.
    RealTime(u8),
    /// SCHED_OTHER with this negative nice value.
    Nice(i8),
    /// SCHED_OTHER with the default nice value.
    Ordinary,
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime(p) => write!(f, "real-time priority {p}"),
            Self::Nice(n) => write!(f, "nice {n}"),
            Self::Ordinary => f.write_str("ordinary priority"),
        }
    }
}

/// The result of raising the priority.
#[derive(Debug)]
pub struct PriorityResult {
    /// The priority that was obtained.
    pub priority: Priority,
    /// Why real time was refused; `None` if it was granted.
    pub refused: Option<io::Error>,
}

impl fmt::Display for PriorityResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.priority)?;
        let Some(e) = &self.refused else { return Ok(()) };
        write!(f, " (real time refused: {e}; start as root, with CAP_SYS_NICE, or after `ulimit -r {FIFO}`)")
    }
}

/// Requests real-time priority for the calling thread, and if refused a negative nice value. Threads and
/// programs started later inherit the nice value (but not real time), so a thread that starts others calls
/// this last.
pub fn raise() -> PriorityResult {
    raise_to(FIFO as u8)
}

/// The same with a real-time priority of 1 to 99: for a program that measures others which use [`raise`] and
/// must not wait for them.
pub fn raise_to(priority: u8) -> PriorityResult {
    match schedule(libc::SCHED_FIFO, i32::from(priority)) {
        Ok(()) => PriorityResult { priority: Priority::RealTime(priority), refused: None },
        Err(refused) => {
            // on Linux this affects the calling thread only
            let nice = rustix::process::setpriority_process(None, NICE);
            let priority = if nice.is_ok() { Priority::Nice(NICE as i8) } else { Priority::Ordinary };
            PriorityResult { priority, refused: Some(refused) }
        }
    }
}

/// Finds out in a temporary thread which priority [`raise`] would obtain.
pub fn obtainable_priority() -> PriorityResult {
    std::thread::Builder::new()
        .name("priority".to_owned())
        .spawn(raise)
        .and_then(|thread| thread.join().map_err(|_| io::Error::other("asking for it panicked")))
        .unwrap_or_else(|error| PriorityResult { priority: Priority::Ordinary, refused: Some(error) })
}

/// Gives the calling thread ordinary priority until [`raise_again`].
///
/// # Errors
/// When the kernel refuses.
pub fn lower() -> io::Result<()> {
    schedule(libc::SCHED_OTHER, 0)
}

/// Gives a thread whose priority was lowered the real-time priority of [`raise`] again; returns false if it
/// is no longer allowed.
pub fn raise_again() -> bool {
    schedule(libc::SCHED_FIFO, FIFO).is_ok()
}

fn schedule(policy: libc::c_int, priority: i32) -> io::Result<()> {
    // SAFETY: integers; all zeros is valid.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = priority;
    // in every policy, since only a privileged thread may clear this flag once it is set
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread and `param` lives during the call. A direct system call, because musl
    // has only a stub of the libc function.
    let done = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const param) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_got_is_said_with_the_reason() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let raised = raise();
                let real = matches!(raised.priority, Priority::RealTime(_));
                assert_eq!(real, raised.refused.is_none());
                assert!(real || raised.to_string().contains("ulimit -r 10"), "{raised}");
            });
        });
    }
}
