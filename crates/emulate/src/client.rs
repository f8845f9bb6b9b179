//! Finds a running session and connects to it.

use crate::registry::{Entry, folder, open};
use crate::session::SESSION_VARIABLE;
use bentpipe_live::control::Reply;
use bentpipe_service::{Client, ClientError, pick};
use std::env;

/// Why no session was found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No session is running.
    #[error("no session is running\nhelp: start one in another terminal: bentpipe emulate geo-10m")]
    None,
    /// None was named, and these are running.
    #[error("{} sessions are running: name one with --session\n{}", .0.len(), listed(.0))]
    Several(Vec<Entry>),
    /// No session has this name; these are running.
    #[error("there is no session `{}`\n{}", .0, listed(.1))]
    Unknown(String, Vec<Entry>),
    /// It cannot be reached.
    #[error(transparent)]
    Client(#[from] ClientError),
}

fn listed(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "help: none is running".to_owned();
    }
    let lines = entries.iter().map(|e| format!("  {:8} {} (process {})", e.id, e.title, e.process.pid));
    [String::from("running:")].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// Selects one of the running sessions: the named one, else the one around this program, else the only one.
fn choose(running: Vec<Entry>, named: Option<&str>, inside: Option<&str>) -> Result<Entry, FindError> {
    let inside = inside.filter(|id| running.iter().any(|e| e.id == *id));
    pick(running, named.or(inside)).map_err(|running| match named {
        Some(wanted) => FindError::Unknown(wanted.to_owned(), running),
        None if running.is_empty() => FindError::None,
        None => FindError::Several(running),
    })
}

/// Connects to the named session, else to the one around this program, else to the only one.
///
/// # Errors
/// When the session is not there or the choice is ambiguous, and when nobody listens at its socket.
pub fn find(named: Option<&str>) -> Result<Client<Reply>, FindError> {
    // a query must not create the folder
    let registry = if folder().is_dir() { open().ok() } else { None };
    let mut running: Vec<Entry> = registry.map_or_else(Vec::new, |registry| registry.entries());
    running.retain(|entry| entry.process.is_alive());
    let entry = choose(running, named, env::var(SESSION_VARIABLE).ok().as_deref())?;
    Ok(Client::connect(&folder().join(format!("{}.sock", entry.id)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_that_is_meant() {
        let process = bentpipe_service::Process { pid: 7, ..Default::default() };
        let entry = |id: &str| Entry {
            id: id.to_owned(),
            title: format!("link of {id}"),
            process: process.clone(),
            ..Entry::default()
        };
        let two = || vec![entry("a1"), entry("b2")];
        let id = |chosen: Result<Entry, FindError>| chosen.unwrap().id;
        assert_eq!(id(choose(vec![entry("a1")], None, None)), "a1");
        assert_eq!(id(choose(two(), Some("b2"), Some("a1"))), "b2");
        assert_eq!(id(choose(two(), None, Some("a1"))), "a1");
        assert_eq!(id(choose(vec![entry("a1")], None, Some("gone"))), "a1");
        let said = |chosen: Result<Entry, FindError>| chosen.unwrap_err().to_string();
        assert_eq!(
            said(choose(two(), None, None)),
            "2 sessions are running: name one with --session\nrunning:\n  a1       link of a1 (process 7)\n  b2       link of b2 (process 7)"
        );
        assert!(said(choose(two(), Some("c3"), None)).starts_with("there is no session `c3`\nrunning:"));
        assert!(said(choose(vec![], Some("c3"), None)).contains("none is running"));
        assert!(said(choose(vec![], None, None)).contains("bentpipe emulate geo-10m"));
    }
}
