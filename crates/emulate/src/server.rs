//! The control socket of a session: lines of JSON in, lines of JSON out, served by the main thread between its other duties.

use bentpipe_live::control::{Reply, Request};
use bentpipe_os::lines::{self, Asked};
use std::os::fd::BorrowedFd;
use std::path::Path;

pub use bentpipe_os::lines::ServerError;

/// A control socket and its clients. The file is removed when it is dropped.
#[derive(Debug)]
pub struct Server(lines::Server);

impl Server {
    /// Listens at `path`. A socket of that name that nobody listens to any more is replaced.
    ///
    /// # Errors
    /// When somebody listens there, the path is too long for a socket, or the folder is not there.
    pub fn bind(path: &Path) -> Result<Self, ServerError> {
        lines::Server::bind(path).map(Self)
    }

    /// What to wait for: call [`Server::serve`] when one of these can be read.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.0.fds()
    }

    /// True when a client is slow to take its answers: call [`Server::serve`] again after some 10 ms even if nothing can be read.
    pub fn is_behind(&self) -> bool {
        self.0.is_behind()
    }

    /// Answers what has come in. Never blocks, but for what `answer` takes.
    pub fn serve(&mut self, answer: &mut dyn FnMut(Request) -> Reply) {
        self.0.serve(&mut |asked| {
            let reply = match asked {
                Asked::Line(line) => match serde_json::from_slice::<Request>(line) {
                    Ok(request) => answer(request),
                    Err(error) => Reply::refused(format!("this is no request: {error}")),
                },
                Asked::TooLong(most) => Reply::refused(format!("a request is at most {most} bytes long")),
            };
            // a reply is made of texts and finite numbers, or null
            serde_json::to_vec(&reply).unwrap_or_default()
        });
    }
}
