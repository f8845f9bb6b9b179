//! The control socket of a service: a line of JSON asked, a line of JSON answered, between the service's
//! other duties.
//!
//! Only its user can reach it: it has mode 0600. Even so nothing that comes in can hold the service up or
//! fill its memory: requests have a longest length, clients are few, a client that does not take its answers
//! is not read from, and after a while it is let go.

use bentpipe_os::clock::monotonic;
use core::fmt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Longest request in bytes; they need a few hundred.
const LONGEST: usize = 16 << 10;
/// Most clients at a time; one more takes the place of the one that was silent longest.
const CLIENTS: usize = 16;
/// Requests of one client that are answered in one go.
const IN_A_ROW: usize = 8;
/// A client that has not taken its answer for so long is let go, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
#[error("the control socket {path} cannot be made: {source}")]
pub struct ServerError {
    /// The socket.
    pub path: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

/// Why a service does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why, in one line; of a file that is at fault, with the place underlined.
    pub message: String,
    /// What to do instead, a line each.
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

/// What a service answers.
pub trait Reply: Serialize + DeserializeOwned + From<Refusal> {
    /// What it is asked.
    type Request: Serialize + DeserializeOwned;

    /// The kind of service, for messages.
    const SERVICE: &'static str;

    /// The reply to a request that was carried out.
    ///
    /// # Errors
    /// Gives the refusal when it was not.
    fn accepted(self) -> Result<Self, Refusal>;
}

/// Answers a line, or a request that is too long, with a line; both without their ends.
type Answer<'a> = &'a mut dyn FnMut(Option<&[u8]>) -> Vec<u8>;

/// A control socket and its clients. The file is removed when it is dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// What has come of the next request.
    input: Vec<u8>,
    /// What it has not yet taken of its answers.
    output: Vec<u8>,
    /// When it last sent or took something.
    active: u64,
    /// To be let go when it has taken its answers.
    leaving: bool,
}

impl Server {
    /// Listens at `path`. A socket of that name that nobody listens to any more is replaced.
    ///
    /// # Errors
    /// When somebody listens there, the path is too long for a socket, or the folder is not there.
    pub fn bind(path: &Path) -> Result<Self, ServerError> {
        Self::listen(path).map_err(|source| ServerError { path: path.to_owned(), source })
    }

    fn listen(path: &Path) -> io::Result<Self> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if UnixStream::connect(path).is_ok() {
                    return Err(error);
                }
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

    /// What to wait for: call [`Server::serve`] when one of these can be read.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        // a client that has answers to take is not read from
        let clients = self.clients.iter().filter(|c| c.output.is_empty()).map(|c| c.stream.as_fd());
        [self.listener.as_fd()].into_iter().chain(clients).collect()
    }

    /// True when a client is slow to take its answers: call [`Server::serve`] again after some 10 ms even if
    /// nothing can be read.
    pub fn is_behind(&self) -> bool {
        self.clients.iter().any(|c| !c.output.is_empty())
    }

    /// Answers what has come in. Never blocks, but for what `answer` takes.
    pub fn serve<R: Reply>(&mut self, answer: &mut dyn FnMut(R::Request) -> R) {
        self.accept();
        let now = monotonic();
        let mut answer = |line: Option<&[u8]>| {
            let reply = match line.map(serde_json::from_slice) {
                Some(Ok(request)) => answer(request),
                Some(Err(error)) => Refusal::from(format!("this is no request: {error}")).into(),
                None => Refusal::from(format!("a request is at most {LONGEST} bytes long")).into(),
            };
            // a reply is made of texts and finite numbers, or null
            serde_json::to_vec(&reply).unwrap_or_default()
        };
        self.clients.retain_mut(|client| client.serve(now, &mut answer).is_ok());
    }

    fn accept(&mut self) {
        for _ in 0..CLIENTS {
            // what goes wrong with a client that is about to connect concerns nobody else
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
            let (input, output) = (Vec::new(), Vec::new());
            self.clients.push(Client { stream, input, output, active, leaving: false });
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // the next service of this name replaces what is left over
        let _ = fs::remove_file(&self.path);
    }
}

/// The client is gone, or is to go.
struct Gone;

impl Client {
    fn serve(&mut self, now: u64, answer: Answer<'_>) -> Result<(), Gone> {
        for _ in 0..IN_A_ROW {
            self.flush(now)?;
            if !self.output.is_empty() {
                let patient = now.saturating_sub(self.active) < PATIENCE;
                return if patient { Ok(()) } else { Err(Gone) };
            }
            if self.leaving {
                return Err(Gone);
            }
            let Some(line) = self.line(now, answer)? else {
                return if self.leaving && self.output.is_empty() { Err(Gone) } else { Ok(()) };
            };
            let reply = answer(Some(&line));
            self.say(reply);
        }
        self.flush(now)
    }

    fn say(&mut self, mut line: Vec<u8>) {
        line.push(b'\n');
        self.output.append(&mut line);
    }

    /// The next whole request, if it is there.
    fn line(&mut self, now: u64, answer: Answer<'_>) -> Result<Option<Vec<u8>>, Gone> {
        let mut ended = false;
        loop {
            if let Some(end) = self.input.iter().position(|b| *b == b'\n') {
                let rest = self.input.split_off(end + 1);
                let line = core::mem::replace(&mut self.input, rest);
                return Ok(Some(line));
            }
            if self.input.len() > LONGEST {
                self.input = Vec::new();
                self.leaving = true;
                let refusal = answer(None);
                self.say(refusal);
                return self.flush(now).map(|()| None);
            }
            if ended {
                return Err(Gone);
            }
            let mut part = [0; 4096];
            match self.stream.read(&mut part) {
                Ok(0) => ended = true,
                Ok(n) => {
                    self.active = now;
                    self.input.extend_from_slice(&part[..n]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Gone),
            }
        }
    }

    /// Hands over what the client takes.
    fn flush(&mut self, now: u64) -> Result<(), Gone> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(0) => return Err(Gone),
                Ok(n) => {
                    self.active = now;
                    self.output.drain(..n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Gone),
            }
        }
        Ok(())
    }
}
