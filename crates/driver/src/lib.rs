//! The live driver: runs any network between real ports, under the real clock.
//!
//! ```text
//! port -> scratch of the store -> parse -> packet (its bytes stay in a slot) -> network -> emit: the slot's
//!   bytes, header edited -> port
//! ```
//!
//! The unit at a port is the kernel's super-packet with its virtio header. A relay of an emulated link, a
//! gateway on real interfaces, and a gateway within an emulated link run the same loop over different
//! networks; they differ in how they wait ([`Pacing`]).
//!
//! [`LiveNetwork`] has no clock and no socket. A [`Journal`] records its inputs; the same inputs at the same
//! times give the same outputs.

mod core;
mod counters;
mod datagram;
mod datagram_signal;
mod drive;
mod emit;
mod frame;
mod hosts;
mod journal;
mod label;
mod lateness;
mod moderation;
mod network;
mod options;
mod pacing;
mod parse;
mod signal;
mod store;
mod thread;

pub use crate::core::{CATCH_UP, Core};
pub use counters::{Counters, PortCounters};
pub use datagram::DatagramShape;
pub use drive::{Driver, TurnHook};
pub use emit::{Emitted, emit};
pub use frame::{Link, Unit};
pub use hosts::Hosts;
pub use journal::{Entry, Journal, JournalError, Preamble, Reader};
pub use lateness::{LATE, Lateness, Timing};
pub use network::{Arrival, LiveNetwork};
pub use pacing::Pacing;
pub use parse::{HEADER_SPACE, Parsed, UnreadReason, parse};
pub use signal::{signal_at_end, signal_header, signal_in_options};
pub use store::{Content, Store, StoredUnit};
pub use thread::{DataThreadTask, Error, NetworkSetup, Running, ThreadSetup};
