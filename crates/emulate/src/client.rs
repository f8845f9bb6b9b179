//! The other end of the control socket: finding a session and asking it.

use crate::registry::{Entry, Registry};
use bentpipe_live::control::{Reply, Request};
use bentpipe_os::ask::Asker;
use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// The environment variable that names the session a program runs in.
const INSIDE: &str = "BENTPIPE_SESSION";

/// Why a session cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// None runs.
    #[error("no session is running\nhelp: start one in another terminal: bentpipe emulate geo-10m")]
    None,
    /// More than one runs, and none was named.
    #[error("{} sessions are running: name one with --session\n{}", .0.len(), listed(.0))]
    Several(Vec<Entry>),
    /// None of this name runs.
    #[error("there is no session `{wanted}`\n{}", listed(.running))]
    Unknown {
        /// The name.
        wanted: String,
        /// Those that run.
        running: Vec<Entry>,
    },
    /// It runs, but cannot be reached.
    #[error("the session at {} does not answer: {source}", .path.display())]
    Silent {
        /// Its socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It answers something else.
    #[error("the session at {} is of another version of bentpipe: {what}", .path.display())]
    Foreign {
        /// Its socket.
        path: PathBuf,
        /// What was not understood.
        what: String,
    },
}

fn listed(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "help: none is running".to_owned();
    }
    let lines = entries.iter().map(|e| format!("  {:8} {} (process {})", e.id, e.title, e.pid));
    [String::from("running:")].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// The session that is meant, among those that run: the one that is named, else the one around this program, else the only one.
///
/// # Errors
/// When there is none, or more than one could be meant.
pub fn choose(running: Vec<Entry>, named: Option<&str>, inside: Option<&str>) -> Result<Entry, ClientError> {
    let find = |id: &str| running.iter().find(|e| e.id == id).cloned();
    if let Some(wanted) = named {
        return find(wanted).ok_or_else(|| ClientError::Unknown { wanted: wanted.to_owned(), running });
    }
    if let Some(entry) = inside.and_then(find) {
        return Ok(entry);
    }
    match running.len() {
        0 => Err(ClientError::None),
        1 => running.into_iter().next().ok_or(ClientError::None),
        _ => Err(ClientError::Several(running)),
    }
}

/// A connection to a session.
#[derive(Debug)]
pub struct Client {
    asker: Asker,
    path: PathBuf,
}

impl Client {
    /// Finds the session that `named` names, or that must be meant, and connects to it.
    ///
    /// # Errors
    /// As [`choose`] and [`Client::connect`].
    pub fn find(named: Option<&str>) -> Result<(Entry, Self), ClientError> {
        // who only asks leaves no folder behind
        let registry = if Registry::place().is_dir() { Registry::open().ok() } else { None };
        let entries = registry.as_ref().map_or_else(Vec::new, Registry::entries);
        let running = entries.into_iter().filter(Entry::is_alive).collect();
        let inside = env::var(INSIDE).ok();
        let entry = choose(running, named, inside.as_deref())?;
        let path = Registry::place().join(format!("{}.sock", entry.id));
        Self::connect(&path).map(|client| (entry, client))
    }

    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        Asker::connect(path)
            .map(|asker| Self { asker, path: path.to_owned() })
            .map_err(|source| ClientError::Silent { path: path.to_owned(), source })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the session has ended or does not answer.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, ClientError> {
        let line = serde_json::to_vec(request)
            .map_err(io::Error::from)
            .and_then(|line| self.asker.ask(line))
            .map_err(|source| ClientError::Silent { path: self.path.clone(), source })?;
        serde_json::from_slice(&line)
            .map_err(|error| ClientError::Foreign { path: self.path.clone(), what: error.to_string() })
    }
}
