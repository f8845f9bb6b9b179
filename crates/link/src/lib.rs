//! One direction of a link: queue, serialise, errors, propagate, in that order.
//!
//! A link sees a packet's size, priority and ECN bits, never TCP.

pub mod channel;
pub mod link;
pub mod queue;
pub mod stats;

pub use channel::{Channel, Errors};
pub use link::Link;
pub use queue::{Capacity, DropTail};
pub use stats::{LinkStats, Served};
