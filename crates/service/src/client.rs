//! The other end of a control socket.

use crate::server::{Refusal, Reply};
use core::marker::PhantomData;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A service that does not answer within this time hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer in bytes.
const LONGEST: u64 = 64 << 20;

/// Why a service did not answer as it should.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It cannot be reached.
    #[error("the {service} at {} does not answer: {source}", .path.display())]
    Silent {
        /// The kind of service.
        service: &'static str,
        /// Its socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It answers what nobody has asked, or what this program does not know.
    #[error("unexpected reply; client and {0} versions may differ")]
    Unexpected(&'static str),
    /// It does not do it.
    #[error("{0}")]
    Refused(Refusal),
}

/// A connection to a service that answers with `R`.
#[derive(Debug)]
pub struct Client<R> {
    stream: BufReader<UnixStream>,
    path: PathBuf,
    replies: PhantomData<fn() -> R>,
}

impl<R: Reply> Client<R> {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// When nobody listens there, or it is not ours to ask.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let open = || {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(BufReader::new(stream))
        };
        let silent = |source| ClientError::Silent { service: R::SERVICE, path: path.to_owned(), source };
        open().map(|stream| Self { stream, path: path.to_owned(), replies: PhantomData }).map_err(silent)
    }

    /// Asks, and takes what is wanted from the answer.
    ///
    /// # Errors
    /// When the service has ended, does not answer or refuses, or when `wanted` finds something else.
    pub fn ask<T>(
        &mut self,
        request: &R::Request,
        wanted: impl FnOnce(R) -> Option<T>,
    ) -> Result<T, ClientError> {
        let silent = |source| ClientError::Silent { service: R::SERVICE, path: self.path.clone(), source };
        let answer = exchange(&mut self.stream, request).map_err(silent)?;
        let reply: R = serde_json::from_slice(&answer).map_err(|_| ClientError::Unexpected(R::SERVICE))?;
        let accepted = reply.accepted().map_err(|mut refusal| {
            // a gateway of version 0.1.0 put it in front itself
            refusal.message = refusal.message.trim_start_matches("error: ").to_owned();
            ClientError::Refused(refusal)
        })?;
        wanted(accepted).ok_or(ClientError::Unexpected(R::SERVICE))
    }
}

/// Sends a request as a line, and waits for the line that answers it.
fn exchange(stream: &mut BufReader<UnixStream>, request: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.get_mut().write_all(&line)?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_until(b'\n', &mut answer)?;
    if answer.last() == Some(&b'\n') {
        Ok(answer)
    } else {
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended"))
    }
}
