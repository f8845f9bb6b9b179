//! Signals as something to wait for.

use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Signals that came to this process.
#[derive(Debug)]
pub struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
}

impl Signals {
    /// Listens from now on. Signals that were ignored when the program was started stay so, for the programs that it starts too: `nohup` works.
    ///
    /// # Errors
    /// When the kernel has no descriptors to give.
    pub fn listen() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let ignored = ignored();
        let wanted = [SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2];
        let wanted = wanted.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).chain([SIGCHLD]);
        Ok(Self { delivery: SignalDelivery::with_pipe(read, write, SignalOnly, wanted)? })
    }

    /// What to poll: readable when there is one.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }

    /// Those that came, but not those of children: for them see [`super::Session::news`].
    pub fn take(&mut self) -> Vec<Signal> {
        let pending = self.delivery.pending().filter(|signal| *signal != SIGCHLD);
        pending.filter_map(Signal::from_named_raw).collect()
    }
}

/// Bit `n - 1` is set when signal `n` is ignored.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
