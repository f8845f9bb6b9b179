//! Undoes the changes of agents that were killed, and stops those that run.

use super::Error;
use super::session::{self, Session, is_running};
use bentpipe_base::Duration;
use bentpipe_os::process;
use bentpipe_service::{Registry, wait_until};
use rustix::process::Signal;

/// How long an agent may need beyond the time that its file gives its connections to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest `drain` of a file.
const MOST_DRAIN: Duration = Duration::from_secs(3600);
const STEP: Duration = Duration::from_millis(20);

/// Undoes the changes of the named agent or of all; returns a description, one line per change. One that runs
/// is stopped first.
///
/// # Errors
/// When it is in another network namespace, or a running agent does not stop.
pub fn undo(registry: &Registry, named: Option<&str>) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    let mut all = registry.entries::<Session>();
    all.retain(|session| named.is_none_or(|name| name == session.name));
    if let Some(name) = named.filter(|_| all.is_empty()) {
        return Err(Error::Unknown(name.to_owned()));
    }
    for session in all {
        let (name, pid) = (&session.name, session.process.pid);
        if is_running(registry, name) {
            process::signal(pid, Signal::TERM);
            if !wait_until(MOST_DRAIN + PATIENCE, STEP, || !is_running(registry, name)) {
                return Err(Error::Runs { name: name.clone(), pid });
            }
            wait_until(PATIENCE, STEP, || !session.process.is_alive());
            done.push(format!("agent {name}: process {pid} stopped"));
        }
        // an agent that stops undoes everything itself and removes the file
        if registry.entry::<Session>(name).is_none() {
            continue;
        }
        let lock = session::lock(registry, name)?.ok_or_else(|| Error::Runs { name: name.clone(), pid })?;
        if session.process.is_of_this_boot() {
            if !session.undo.is_here() {
                return Err(Error::OtherNamespace(name.clone()));
            }
            done.extend(clean(&session).into_iter().map(|line| format!("agent {name}: {line}")));
        }
        session::remove(registry, &session, lock);
        done.push(format!("agent {name}: session file removed"));
    }
    Ok(done)
}

/// Undoes the changes of a killed agent, after its watcher has reset its connections.
pub(super) fn clean(session: &Session) -> Vec<String> {
    // a killed process releases its interfaces a moment after its lock
    wait_until(PATIENCE, STEP, || !session.process.is_alive());
    if let Some(watcher) = &session.watcher {
        wait_until(PATIENCE, STEP, || !watcher.is_alive());
    }
    session.undo.run()
}
