//! Undoes the changes of agents that were killed, and stops those that run.

use super::Error;
use super::guard;
use super::session::{self, Session, is_running};
use bentpipe_accelerate::deploy;
use bentpipe_base::Duration;
use bentpipe_os::process::signal;
use bentpipe_service::{Entry as _, Registry, wait_until};
use rustix::process::Signal;

/// How long an agent may need beyond the time that its file gives its connections to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// Longest `drain` of a file.
const MOST_DRAIN: Duration = Duration::from_secs(3600);
pub(super) const STEP: Duration = Duration::from_millis(20);

/// Undoes the changes of the named agent or of all; returns a description, one line per change. One that runs
/// is stopped first.
///
/// # Errors
/// When it is in another network namespace, or a running agent does not stop.
pub fn undo(registry: &Registry, named: Option<&str>) -> Result<Vec<String>, Error> {
    let is_meant = |session: &Session| named.is_none_or(|name| name == session.name());
    let all: Vec<Session> = registry.entries().into_iter().filter(is_meant).collect();
    match named {
        Some(name) if all.is_empty() => Err(Error::Unknown(name.to_owned())),
        _ => {
            let mut done = Vec::new();
            all.iter().try_for_each(|session| undo_one(registry, session, &mut done))?;
            Ok(done)
        }
    }
}

fn undo_one(registry: &Registry, session: &Session, done: &mut Vec<String>) -> Result<(), Error> {
    let deploy::Session { name, process, undo, .. } = &session.base;
    let runs = || Error::Runs { name: name.clone(), pid: process.pid };
    let mut tell = |line: String| done.push(format!("agent {name}: {line}"));
    if is_running(registry, name) {
        signal(process.pid, Signal::TERM);
        if !wait_until(MOST_DRAIN + PATIENCE, STEP, || !is_running(registry, name)) {
            return Err(runs());
        }
        wait_until(PATIENCE, STEP, || !process.is_alive());
        tell(format!("process {} stopped", process.pid));
    }
    // an agent that stops undoes everything itself and removes the file
    if registry.entry::<Session>(name).is_none() {
        return Ok(());
    }
    let lock = session::lock(registry, name)?.ok_or_else(runs)?;
    if process.is_of_this_boot() && !undo.is_here() {
        return Err(Error::OtherNamespace(name.clone()));
    }
    if process.is_of_this_boot() {
        clean(session).into_iter().for_each(&mut tell);
        guard::release(registry, session)?.into_iter().for_each(&mut tell);
    }
    session::remove(registry, session, lock);
    tell("session file removed".to_owned());
    Ok(())
}

/// Undoes the changes of a killed agent, after its watcher has reset its connections.
pub(super) fn clean(session: &Session) -> Vec<String> {
    // a killed process releases its interfaces a moment after its lock
    wait_until(PATIENCE, STEP, || !session.base.process.is_alive());
    if let Some(watcher) = session.watcher.as_ref().filter(|_| session.guard.is_empty()) {
        wait_until(PATIENCE, STEP, || !watcher.is_alive());
    }
    session.base.undo.run()
}
