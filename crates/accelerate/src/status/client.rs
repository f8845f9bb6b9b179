//! The other end of the control socket.

use super::messages::{Reply, Request};
use bentpipe_os::ask::Asker;
use std::io;
use std::path::{Path, PathBuf};

/// Why a gateway cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It cannot be reached.
    #[error("the gateway at {} does not answer: {source}", .path.display())]
    Silent {
        /// Its socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It answers something else.
    #[error("the gateway at {} is of another version of bentpipe: {what}", .path.display())]
    Foreign {
        /// Its socket.
        path: PathBuf,
        /// What was not understood.
        what: String,
    },
}

/// A connection to a gateway.
#[derive(Debug)]
pub struct Client {
    asker: Asker,
    path: PathBuf,
}

impl Client {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// When nobody listens there, or it is not ours to ask.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        Asker::connect(path)
            .map(|asker| Self { asker, path: path.to_owned() })
            .map_err(|source| ClientError::Silent { path: path.to_owned(), source })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the gateway has ended or does not answer.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, ClientError> {
        let line = serde_json::to_vec(request)
            .map_err(io::Error::from)
            .and_then(|line| self.asker.ask(line))
            .map_err(|source| ClientError::Silent { path: self.path.clone(), source })?;
        serde_json::from_slice(&line)
            .map_err(|error| ClientError::Foreign { path: self.path.clone(), what: error.to_string() })
    }
}
