//! Takes back what gateways have changed: of those that were killed, and of those that run, after they were asked to stop.

use super::error::Error;
use super::session::{Sessions, is_there};
use bentpipe_os::{namespace, process};
use rustix::process::Signal;
use rustix::thread::nanosleep;
use rustix::time::Timespec;

/// A gateway that was asked to stop has so long to drain its queues.
const PATIENCE_MS: u32 = 20_000;
const STEP_MS: u32 = 20;

/// Takes back what the named gateway, or every one, has changed; says what that was, a line each.
///
/// # Errors
/// When it lies in another network namespace, or a running one does not stop.
pub fn undo(sessions: &Sessions, named: Option<&str>) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    let all: Vec<_> = sessions.all().into_iter().filter(|s| named.is_none_or(|n| n == s.name)).collect();
    let orphans: Vec<_> = sessions.orphans().into_iter().filter(|o| named.is_none_or(|n| n == o)).collect();
    if let Some(name) = named.filter(|_| all.is_empty() && orphans.is_empty()) {
        return Err(Error::Unknown(name.to_owned()));
    }
    for name in orphans {
        if sessions.remove_records(&name) {
            done.push(format!("gateway {name}: records of its connections removed"));
        }
        sessions.tidy();
    }
    let here = namespace::network().and_then(namespace::inode);
    for session in all {
        let name = &session.name;
        if sessions.is_running(name) {
            process::signal(session.pid, Signal::TERM);
            if !wait_until(|| !sessions.is_running(name)) {
                return Err(Error::Runs { name: name.clone(), pid: session.pid });
            }
            // it removes its folder, and the kernel its interfaces, a moment after it has given up its name
            wait_until(|| !is_there(session.pid));
            done.push(format!("gateway {name}: process {} stopped", session.pid));
        }
        // a run that ends by itself takes back everything; then the file is gone
        if !sessions.all().iter().any(|s| s.name == *name) {
            continue;
        }
        let Some(lock) = sessions.lock(name)? else {
            return Err(Error::Runs { name: name.clone(), pid: session.pid });
        };
        if !session.is_of_an_earlier_start() {
            if here != Ok(session.network) {
                return Err(Error::Elsewhere(name.clone()));
            }
            // a killed process gives back its interfaces a moment after its lock
            wait_until(|| !is_there(session.pid));
            done.extend(session.debts().pay().into_iter().map(|line| format!("gateway {name}: {line}")));
        }
        sessions.remove(&session, lock);
        done.push(format!("gateway {name}: session file removed"));
    }
    Ok(done)
}

/// Waits until `is_so`; false when it took too long.
pub(super) fn wait_until(is_so: impl Fn() -> bool) -> bool {
    for _ in 0..PATIENCE_MS / STEP_MS {
        if is_so() {
            return true;
        }
        // a signal may cut it short
        let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: i64::from(STEP_MS) * 1_000_000 });
    }
    is_so()
}
