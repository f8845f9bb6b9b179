//! Scenarios under the real clock: relays the kernel's packets through the network of a scenario, and runs
//! the engine as a real TCP.

pub mod control;
pub mod endpoint;
pub mod relay;
pub mod replay;
pub mod samples;
pub mod speed;
pub mod tap;
pub mod thread;
pub mod transfer;

pub use bentpipe_driver::{Error, Timing};
pub use thread::{HostPort, Outcome, Running, Setup};
