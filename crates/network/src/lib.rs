//! A network of nodes: connects ports, calls nodes when events are due, collects packets at its open ends.
//!
//! A [`Network`] has no clock: its driver says up to which time it runs. Under simulated time `now` jumps
//! from event to event; a live driver advances it to the present, injects packets at its open ends and takes
//! packets that have arrived there.

mod chains;
mod forward;
mod network;
mod nodes;
mod room;
mod wires;

pub use network::Network;
pub use wires::{ChainNode, WireEnd};
