//! The control socket of a service: each request and each reply is a line of JSON. It is served between the
//! service's other work.
//!
//! Only the service's user can connect: the socket has mode 0600. Even so, no client can block the service or
//! fill its memory: the length of requests and the number of clients are limited; the server does not read
//! from a client that does not read its replies, and disconnects it after a while.

use crate::registry::SystemError;
use bentpipe_os::clock::monotonic;
use core::fmt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Longest request in bytes; typical ones have a few hundred.
const LONGEST: usize = 16 << 10;
/// Most clients at a time; a new one replaces the one that was idle longest.
const CLIENTS: usize = 16;
/// Most requests of one client that are answered in one call.
const IN_A_ROW: usize = 8;
/// Nanoseconds after which a client that has not read its reply is disconnected.
const PATIENCE: u64 = 5_000_000_000;

/// Why a service refuses a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason in one line; for an error in a file, with the place underlined.
    pub message: String,
    /// What to do instead, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.iter().try_for_each(|line| write!(f, "\nhelp: {line}"))
    }
}

impl<T: Into<String>> From<T> for Refusal {
    fn from(message: T) -> Self {
        Self { message: message.into(), help: Vec::new() }
    }
}

/// A refusal as a line: one of the replies of every service.
#[derive(Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(crate) enum RefusedReply {
    Refused(Refusal),
}

/// A service's reply to a request that was carried out, as an enum with the tag `reply`.
pub trait Reply: Serialize + DeserializeOwned {
    /// The request.
    type Request: Serialize + DeserializeOwned;

    /// The kind of service, for messages.
    const SERVICE: &'static str;
}

/// Answers a request line (`None` if it is too long) with a line; both without line ends.
type Answer<'a> = &'a mut dyn FnMut(Option<&[u8]>) -> Vec<u8>;

/// A control socket and its clients. Dropping it removes the file.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: BufReader<UnixStream>,
    /// Received part of the next request.
    input: Vec<u8>,
    /// Replies not yet read by the client.
    output: Vec<u8>,
    /// When it last sent or read something.
    active: u64,
    /// Disconnect it when it has read its replies.
    leaving: bool,
}

impl Server {
    /// Listens at `path`. Replaces an abandoned socket of that name.
    ///
    /// # Errors
    /// When another process listens there, the path is too long for a socket, or the folder does not exist.
    pub fn bind(path: &Path) -> Result<Self, SystemError> {
        let what = || format!("the control socket {} cannot be made", path.display());
        Self::listen(path).map_err(|source| SystemError::new(what(), source))
    }

    fn listen(path: &Path) -> io::Result<Self> {
        let listener = match UnixListener::bind(path) {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && UnixStream::connect(path).is_err() => {
                fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            other => other?,
        };
        let server = Self { listener, path: path.to_owned(), clients: Vec::new() };
        server.listener.set_nonblocking(true)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(server)
    }

    /// File descriptors to poll: call [`Server::serve`] when one of them is readable.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        // clients with unread replies are not read from
        let clients = self.clients.iter().filter(|c| c.output.is_empty()).map(|c| c.stream.get_ref().as_fd());
        [self.listener.as_fd()].into_iter().chain(clients).collect()
    }

    /// True if a client has unread replies: call [`Server::serve`] again after 10 ms even without input.
    pub fn is_behind(&self) -> bool {
        self.clients.iter().any(|c| !c.output.is_empty())
    }

    /// Answers the requests received. Never blocks, except in `answer`.
    pub fn serve<R: Reply>(&mut self, answer: &mut dyn FnMut(R::Request) -> Result<R, Refusal>) {
        self.accept();
        let now = monotonic();
        let mut answer = |line: Option<&[u8]>| {
            let reply = match line.map(serde_json::from_slice) {
                Some(Ok(request)) => answer(request),
                Some(Err(error)) => Err(format!("invalid request: {error}").into()),
                None => Err(format!("a request is at most {LONGEST} bytes long").into()),
            };
            let line = match reply {
                Ok(reply) => serde_json::to_vec(&reply),
                Err(refusal) => serde_json::to_vec(&RefusedReply::Refused(refusal)),
            };
            // a reply contains only strings and finite numbers or null, so this cannot fail
            line.unwrap_or_default()
        };
        self.clients.retain_mut(|client| client.serve(now, &mut answer).is_ok());
    }

    fn accept(&mut self) {
        for _ in 0..CLIENTS {
            // an error of a connecting client affects no other client
            let Ok((stream, _)) = self.listener.accept() else { return };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.clients.len() >= CLIENTS
                && let Some(oldest) = (0..self.clients.len()).min_by_key(|&i| self.clients[i].active)
            {
                self.clients.swap_remove(oldest);
            }
            let active = monotonic();
            let (stream, input, output) = (BufReader::new(stream), Vec::new(), Vec::new());
            self.clients.push(Client { stream, input, output, active, leaving: false });
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // a file that is left over is replaced by the next service of this name
        let _ = fs::remove_file(&self.path);
    }
}

/// The client is gone or must be disconnected.
struct Disconnect;

impl Client {
    fn serve(&mut self, now: u64, answer: Answer<'_>) -> Result<(), Disconnect> {
        for _ in 0..IN_A_ROW {
            if !self.may_ask(now)? {
                return Ok(());
            }
            let Some(line) = self.line(now)? else { return Ok(()) };
            self.output = answer((!self.leaving).then_some(line.as_slice()));
            self.output.push(b'\n');
        }
        self.may_ask(now).map(|_| ())
    }

    /// Sends what is left of the replies; true if the client has read all of them, and may ask again.
    fn may_ask(&mut self, now: u64) -> Result<bool, Disconnect> {
        self.flush(now)?;
        let has_read = self.output.is_empty();
        let is_done = if has_read { self.leaving } else { now.saturating_sub(self.active) >= PATIENCE };
        if is_done { Err(Disconnect) } else { Ok(has_read) }
    }

    /// Returns the next request once it is complete. Of one that is too long, returns the beginning and marks
    /// the client as leaving.
    fn line(&mut self, now: u64) -> Result<Option<Vec<u8>>, Disconnect> {
        let before = self.input.len();
        let room = (LONGEST + 1 - before) as u64;
        let read = self.stream.by_ref().take(room).read_until(b'\n', &mut self.input);
        if self.input.len() > before {
            self.active = now;
        }
        let is_complete = self.input.ends_with(b"\n");
        self.leaving = !is_complete && self.input.len() > LONGEST;
        match read {
            _ if is_complete || self.leaving => Ok(Some(core::mem::take(&mut self.input))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            _ => Err(Disconnect),
        }
    }

    /// Sends as much of the replies as the client reads.
    fn flush(&mut self, now: u64) -> Result<(), Disconnect> {
        while !self.output.is_empty() {
            match self.stream.get_mut().write(&self.output) {
                Ok(0) => return Err(Disconnect),
                Ok(n) => {
                    self.active = now;
                    self.output.drain(..n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Disconnect),
            }
        }
        Ok(())
    }
}
