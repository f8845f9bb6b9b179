//! Getting the processor in time: real-time priority where it is allowed.

#![allow(unsafe_code, reason = "sched_setscheduler is not in rustix; the block says why it is sound")]

use std::fmt;
use std::io;

/// The real-time priority asked for: above ordinary work, far below the kernel's own threads (50 and more).
const FIFO: i32 = 10;
/// The nice value asked for where real time is not allowed.
const NICE: i32 = -15;

/// How the scheduler treats a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// SCHED_FIFO with this priority: it runs as soon as it can.
    RealTime(u8),
    /// Ordinary, but before others, with this nice value.
    Nice(i8),
    /// Like everybody.
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

/// What was got, and what stood in the way of more.
#[derive(Debug)]
pub struct Raised {
    /// What was got.
    pub priority: Priority,
    /// Why not real time; `None` when it was got.
    pub refused: Option<io::Error>,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.priority)?;
        match &self.refused {
            None => Ok(()),
            Some(e) => write!(
                f,
                " (real time refused: {e}; start as root, with CAP_SYS_NICE, or after `ulimit -r {FIFO}`)"
            ),
        }
    }
}

/// Asks for real-time priority for the calling thread, then for a good nice value. What it starts does not
/// inherit the former but does the latter, so a thread that starts others asks last.
pub fn raise() -> Raised {
    raise_to(FIFO as u8)
}

/// The same with a real-time priority of 1 to 99: for what measures others that ask for [`raise`], and must
/// not wait for them.
pub fn raise_to(priority: u8) -> Raised {
    match schedule(libc::SCHED_FIFO, i32::from(priority)) {
        Ok(()) => Raised { priority: Priority::RealTime(priority), refused: None },
        Err(refused) => {
            // on Linux this is the calling thread's alone
            let nice = rustix::process::setpriority_process(None, NICE);
            let priority = if nice.is_ok() { Priority::Nice(NICE as i8) } else { Priority::Ordinary };
            Raised { priority, refused: Some(refused) }
        }
    }
}

/// What [`raise`] would get, found out by a thread that ends with it; when that is not real time, with the
/// reason.
///
/// # Errors
/// What would be got in its place, and why.
pub fn foresee() -> Result<Priority, (Priority, String)> {
    let tried = std::thread::Builder::new()
        .name("priority".to_owned())
        .spawn(raise)
        .map(std::thread::JoinHandle::join);
    match tried {
        Ok(Ok(Raised { priority, refused: None })) => Ok(priority),
        Ok(Ok(Raised { priority, refused: Some(why) })) => {
            Err((priority, format!("real time is refused ({why})")))
        }
        Ok(Err(_)) => Err((Priority::Ordinary, "asking for it panicked".to_owned())),
        Err(error) => Err((Priority::Ordinary, format!("there is no thread to ask with ({error})"))),
    }
}

/// Makes the calling thread an ordinary one for a while.
///
/// # Errors
/// When the kernel refuses.
pub fn lower() -> io::Result<()> {
    schedule(libc::SCHED_OTHER, 0)
}

/// Gives real-time priority back to a thread that had it; false when it is not allowed any more.
pub fn raise_again() -> bool {
    fifo().is_ok()
}

fn fifo() -> io::Result<()> {
    schedule(libc::SCHED_FIFO, FIFO)
}

fn schedule(policy: libc::c_int, priority: i32) -> io::Result<()> {
    // SAFETY: integers; all zeros is a value.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = priority;
    // once set, only who may raise priorities may take it away
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread and `param` lives during the call. Not by libc's function, which musl
    // has as a stub.
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
