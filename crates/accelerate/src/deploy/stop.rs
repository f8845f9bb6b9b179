//! Has a gateway end as planned, and waits until it has.

use super::error::Error;
use super::session::{Sessions, is_there};
use super::undo::wait_until;
use crate::status::client::Client;
use crate::status::{Reply, Request};

/// Stops the named gateway, or the only one; gives its name. `keep`: the next one goes on with its connections.
///
/// # Errors
/// When none runs, more than one could be meant, or it does not end.
pub fn stop(sessions: &Sessions, named: Option<&str>, keep: bool) -> Result<String, Error> {
    let session = sessions.choose(named)?;
    match Client::connect(&session.socket)?.ask(&Request::Stop { keep })? {
        Reply::Done { .. } => {}
        // an older one, which knows no such request
        _ => return Err(Error::TooOld(session.name)),
    }
    if !wait_until(|| !sessions.is_running(&session.name)) {
        return Err(Error::Runs { name: session.name, pid: session.pid });
    }
    // the kernel removes its interfaces a moment after it has given up its name
    wait_until(|| !is_there(session.pid));
    Ok(session.name)
}
