//! Signals as something to wait for.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Signals that came to this process.
#[derive(Debug)]
pub(super) struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To stop.
    Stop,
    /// To read the file again.
    Reload,
}

impl Signals {
    /// Listens from now on.
    pub(super) fn listen() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let wanted = [SIGTERM, SIGINT, SIGHUP];
        Ok(Self { delivery: SignalDelivery::with_pipe(read, write, SignalOnly, wanted)? })
    }

    /// What to poll.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }

    /// Those that came.
    pub(super) fn take(&mut self) -> Vec<Wish> {
        self.delivery.pending().map(|s| if s == SIGHUP { Wish::Reload } else { Wish::Stop }).collect()
    }
}
