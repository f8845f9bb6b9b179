//! The live driver: the simulator's network with real packets at its ends, under the real clock.

pub mod addresses;
pub mod buffers;
pub mod control;
pub mod digest;
pub mod endpoint;
pub mod journal;
pub mod label;
pub mod lateness;
pub mod network;
pub mod relay;
pub mod replay;
pub mod samples;
pub mod speed;
pub mod tap;
pub mod thread;
pub mod transfer;

pub use addresses::Addresses;
pub use lateness::Timing;
pub use network::Net;
pub use relay::{Attendant, Core, Relay};
pub use thread::{Door, LiveError, Outcome, Running, Setup};
