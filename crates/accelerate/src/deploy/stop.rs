//! Stops running gateways, and undoes the changes of gateways that were stopped or killed.

use super::error::Error;
use super::session::{self, Session, choose, is_running};
use crate::status::{Reply, Request};
use bentpipe_base::Duration;
use bentpipe_os::process;
use bentpipe_service::{Client, ClientError, Registry};
use rustix::process::Signal;

/// Stops the named gateway, or the only one, and returns its name. With `keep`, the next gateway resumes its
/// connections.
///
/// # Errors
/// When none is running, the choice is ambiguous, or it does not stop.
pub fn stop(registry: &Registry, named: Option<&str>, keep: bool) -> Result<String, Error> {
    let session = choose(registry, named)?;
    let done = |reply| matches!(reply, Reply::Done { .. }).then_some(());
    match Client::connect(&session.socket)?.ask(&Request::Stop { keep }, done) {
        // an older version that does not know this request
        Err(ClientError::Refused(_) | ClientError::Unexpected(_)) => Err(Error::TooOld(session.name)),
        Err(error) => Err(error.into()),
        Ok(()) => wait_for(registry, &session).map(|()| session.name),
    }
}

/// Undoes the changes of the named gateway or of all; returns a description, one line per change.
///
/// # Errors
/// When it is in another network namespace, or a running gateway does not stop.
pub fn undo(registry: &Registry, named: Option<&str>) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    let is_meant = |name: &str| named.is_none_or(|wanted| wanted == name);
    let (mut all, mut orphans) = (registry.entries::<Session>(), session::orphans(registry));
    all.retain(|session| is_meant(&session.name));
    orphans.retain(|name| is_meant(name));
    if let Some(name) = named.filter(|_| all.is_empty() && orphans.is_empty()) {
        return Err(Error::Unknown(name.to_owned()));
    }
    for name in orphans {
        if session::remove_records(registry, &name) {
            done.push(format!("gateway {name}: records of its connections removed"));
        }
        registry.remove_folder();
    }
    for session in all {
        let (name, pid) = (&session.name, session.process.pid);
        if is_running(registry, name) {
            process::signal(pid, Signal::TERM);
            wait_for(registry, &session)?;
            done.push(format!("gateway {name}: process {pid} stopped"));
        }
        // a gateway that stops undoes everything itself and removes the file
        if registry.entry::<Session>(name).is_none() {
            continue;
        }
        let lock = session::lock(registry, name)?.ok_or_else(|| Error::Runs { name: name.clone(), pid })?;
        if session.process.is_of_this_boot() {
            if !session.undo.is_here() {
                return Err(Error::OtherNamespace(name.clone()));
            }
            // a killed process releases its interfaces a moment after its lock
            wait_until(|| !session.process.is_alive());
            done.extend(session.undo.run().into_iter().map(|line| format!("gateway {name}: {line}")));
        }
        session::remove(registry, &session, lock, false);
        done.push(format!("gateway {name}: session file removed"));
    }
    Ok(done)
}

fn wait_for(registry: &Registry, session: &Session) -> Result<(), Error> {
    if !wait_until(|| !is_running(registry, &session.name)) {
        return Err(Error::Runs { name: session.name.clone(), pid: session.process.pid });
    }
    // it removes its folder, and the kernel its interfaces, a moment after it has released its lock
    wait_until(|| !session.process.is_alive());
    Ok(())
}

/// Waits for at most 20 s: a gateway that was asked to stop first drains its queues.
fn wait_until(done: impl FnMut() -> bool) -> bool {
    bentpipe_service::wait_until(Duration::from_secs(20), Duration::from_millis(20), done)
}
