//! Client of a control socket.

use crate::server::{Refusal, RefusedReply, Reply};
use core::marker::PhantomData;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for a reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest reply in bytes.
const LONGEST: u64 = 64 << 20;

/// Why a request got no valid reply.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It cannot be reached: the kind of service, its socket, and why.
    #[error("the {0} at {1} does not answer: {2}")]
    Silent(&'static str, PathBuf, #[source] io::Error),
    /// The reply does not belong to the request, or is unknown to this program.
    #[error("unexpected reply; client and {0} versions may differ")]
    Unexpected(&'static str),
    /// It refused the request.
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
    /// When nobody listens there, or we lack permission.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let open = || {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(BufReader::new(stream))
        };
        let silent = |error| ClientError::Silent(R::SERVICE, path.to_owned(), error);
        open().map(|stream| Self { stream, path: path.to_owned(), replies: PhantomData }).map_err(silent)
    }

    /// Sends a request, and extracts the `wanted` part of the reply.
    ///
    /// # Errors
    /// When the service has ended, does not answer or refuses, or when `wanted` returns `None`.
    pub fn ask<T>(
        &mut self,
        request: &R::Request,
        wanted: impl FnOnce(R) -> Option<T>,
    ) -> Result<T, ClientError> {
        let silent = |error| ClientError::Silent(R::SERVICE, self.path.clone(), error);
        let answer = exchange(&mut self.stream, request).map_err(silent)?;
        if let Ok(RefusedReply::Refused(mut refusal)) = serde_json::from_slice(&answer) {
            // a gateway of version 0.1.0 adds the prefix itself
            refusal.message = refusal.message.trim_start_matches("error: ").to_owned();
            return Err(ClientError::Refused(refusal));
        }
        let accepted = serde_json::from_slice(&answer).ok();
        accepted.and_then(wanted).ok_or(ClientError::Unexpected(R::SERVICE))
    }
}

/// Sends a request as a line, and returns the line of the reply.
fn exchange(stream: &mut BufReader<UnixStream>, request: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.get_mut().write_all(&line)?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_until(b'\n', &mut answer)?;
    let whole = answer.ends_with(b"\n").then_some(answer);
    whole.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended"))
}
