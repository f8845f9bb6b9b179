//! The other end of the control socket.

use super::messages::{Reply, Request};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A gateway that does not answer within this time hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer in bytes.
const LONGEST: u64 = 64 << 20;

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
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

impl Client {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// When nobody listens there, or it is not ours to ask.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let open = || {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        open()
            .map(|stream| Self { stream: BufReader::new(stream), path: path.to_owned() })
            .map_err(|source| ClientError::Silent { path: path.to_owned(), source })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the gateway has ended or does not answer.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, ClientError> {
        let line = self
            .exchange(request)
            .map_err(|source| ClientError::Silent { path: self.path.clone(), source })?;
        serde_json::from_slice(&line)
            .map_err(|error| ClientError::Foreign { path: self.path.clone(), what: error.to_string() })
    }

    fn exchange(&mut self, request: &Request) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        let mut answer = Vec::new();
        (&mut self.stream).take(LONGEST).read_until(b'\n', &mut answer)?;
        if answer.last() == Some(&b'\n') {
            return Ok(answer);
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended"))
    }
}
