//! Background services that must be found, queried, stopped and cleaned up after: sessions and gateways.
//!
//! A service writes an [`Entry`] into a [`Registry`] (a folder) before it changes anything on the machine.
//! The entry names its [`Process`] and lists in an [`Undo`] the changes that outlive the process, so that
//! anyone who finds the entry of a dead process can undo them. While the service runs, [`Client`]s send
//! requests to the socket of its [`Server`], and [`Signals`] stop it.
//!
//! Entries and messages are compatible with version 0.1.0: the same, or a superset that 0.1.0 can read.

mod client;
mod finding;
mod http;
pub mod metrics;
mod registry;
mod server;
mod signals;
mod undo;

pub use client::{Client, ClientError};
pub use finding::{CheckStatus, Finding};
pub use http::Http;
pub use registry::{Entry, Lock, Process, Registry, SystemError, boot_id, pick};
pub use server::{Refusal, Reply, Server};
pub use signals::{Signals, end_by};
pub use undo::Undo;

use bentpipe_base::Duration;
use std::thread::park_timeout;

/// Waits until `done` returns true, calling it after every `step`; returns false after `patience`.
pub fn wait_until(patience: Duration, step: Duration, mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..patience.0 / step.0.max(1) {
        if done() {
            return true;
        }
        // this may return early; then `done` is only called earlier
        park_timeout(std::time::Duration::from_nanos(step.0));
    }
    done()
}
