//! Signals as a file descriptor to poll.

use rustix::process::Signal;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Signals received by this process.
#[derive(Debug)]
pub struct Signals(SignalDelivery<UnixStream, SignalOnly>);

impl Signals {
    /// Catches these signals from now on.
    ///
    /// # Errors
    /// When no file descriptors are available.
    pub fn listen(wanted: &[Signal]) -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let wanted = wanted.iter().map(|signal| signal.as_raw());
        SignalDelivery::with_pipe(read, write, SignalOnly, wanted).map(Self)
    }

    /// File descriptor to poll; readable when a signal was received.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }

    /// Returns the signals received since the last call.
    pub fn take(&mut self) -> Vec<Signal> {
        self.0.pending().filter_map(Signal::from_named_raw).collect()
    }

    /// True for a signal that was ignored when this process was started, as SIGHUP is by `nohup`. Catching it
    /// would also un-ignore it for the programs that this process starts.
    pub fn is_ignored(signal: Signal) -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        mask >> (signal.as_raw() - 1) & 1 == 1
    }
}

/// Ends this process by `signal`, as if it had not been caught: a shell sees that its command was
/// interrupted, and ends its loop.
pub fn end_by(signal: Signal) -> ! {
    // it fails only for a signal without a default action, and returns only for one that does not end
    let _ = signal_hook::low_level::emulate_default_handler(signal.as_raw());
    std::process::exit(128 + signal.as_raw())
}
