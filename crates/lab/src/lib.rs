//! Measures live links from outside, with real programs: what tests, acceptance lists and benchmarks share.
//!
//! It knows `bentpipe` only as a program. A [`Rig`] is a place to run it in: a folder of its own, a user, and for root a network namespace in place of the
//! machine's, so that what others do at the same time shows in no figure. The figures come from `ping`, `iperf3`, `tcpdump` and `/proc`, not from us.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it waits for real programs, and measures them by the clock"
)]

pub mod again;
pub mod agreement;
pub mod capture;
pub mod census;
pub mod change;
pub mod cycles;
pub mod datagrams;
pub mod death;
pub mod delay;
pub mod features;
pub mod flood;
pub mod gateway_hops;
pub mod gateway_programs;
pub mod gateway_runs;
pub mod gateway_stops;
pub mod kernel;
pub mod lag;
pub mod once;
pub mod passage;
pub mod refused;
pub mod rig;
pub mod routed;
pub mod scenario;
pub mod shares;
pub mod soak;
pub mod speed;
pub mod stats;
pub mod transfers;
pub mod winds;

pub use census::Census;
pub use rig::{Done, Rig, Running, Who};

/// What a measurement gives, or a sentence that says why there is none.
pub type Outcome<T> = Result<T, String>;
