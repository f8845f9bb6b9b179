//! Measures live links from outside with real programs; shared by the tests of several crates, acceptance
//! lists and benchmarks.
//!
//! It uses `bentpipe` only as a program. A [`Rig`] is a place to run it: a folder, a user, and for root a
//! separate network namespace, so that other traffic does not affect the figures. The figures come from
//! `ping`, `iperf3`, `tcpdump` and `/proc`, not from bentpipe.

#![allow(clippy::missing_errors_doc, reason = "every error says which program failed, and how")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures programs by the clock")]

pub mod agents;
pub mod capture;
pub mod census;
pub mod chain;
pub mod change;
pub mod cycles;
pub mod datagrams;
pub mod delay;
pub mod features;
pub mod kills;
pub mod once;
pub mod passage;
pub mod quic;
pub mod refused;
pub mod rig;
pub mod scenario;
pub mod soak;
pub mod speed;
pub mod stats;
pub mod streams;
pub mod transfers;

pub use rig::{ProgramResult, Rig, Running, Who, wait_for};

/// A measurement, or the reason why there is none.
pub type Outcome<T> = Result<T, String>;

/// What was tested, and its figure or message, or the error.
pub type Step = (&'static str, Outcome<String>);

/// The result of a measuring thread.
pub fn join<T>(thread: std::thread::ScopedJoinHandle<'_, Outcome<T>>) -> Outcome<T> {
    thread.join().unwrap_or_else(|_| Err("a measuring thread panicked".to_owned()))
}

/// Applies `f` to a measurement that may have failed, without consuming it.
pub fn with<T, U>(measured: &Outcome<T>, f: impl FnOnce(&T) -> Outcome<U>) -> Outcome<U> {
    f(measured.as_ref().map_err(Clone::clone)?)
}
