//! What runs in the background and must be found, asked, ended and cleaned up after: emulation sessions and
//! gateways.
//!
//! A service writes an [`Entry`] into a [`Registry`], a folder, before it changes anything on the machine.
//! The entry names its [`Process`] and lists in an [`Undo`] what does not end with that process, so that
//! whoever finds the entry of a dead process can clean up. While the service runs, [`Client`]s ask it over
//! the socket of its [`Server`], and [`Signals`] tell it to stop.
//!
//! Entries and messages are those of version 0.1.0 or a superset that 0.1.0 reads.

mod client;
mod finding;
mod registry;
mod server;
mod signals;
mod undo;

pub use client::{Client, ClientError};
pub use finding::{Finding, Standing};
pub use registry::{Entry, FileError, Lock, Process, Registry, boot_id, pick};
pub use server::{Refusal, Reply, Server, ServerError};
pub use signals::Signals;
pub use undo::Undo;

use bentpipe_base::Duration;
use rustix::thread::nanosleep;
use rustix::time::Timespec;

/// Waits until `done`, looking again after every `step`; false when it is still not so after `patience`.
pub fn wait_until(patience: Duration, step: Duration, mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..patience.0 / step.0.max(1) {
        if done() {
            return true;
        }
        let nanoseconds = step.0.min(999_999_999) as i64;
        // a signal may cut it short: then `done` is asked earlier
        let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: nanoseconds });
    }
    done()
}
