//! A network of nodes: which port leads where, who is called when, and what lies at its open ends.
//!
//! A [`Network`] knows no clock: who drives it says up to which time it runs. Under simulated time `now`
//! jumps from event to event; a live driver brings it up to the present, lets packets in at its open ends and
//! takes out what has arrived there.

mod network;
mod nodes;
mod wires;

pub use network::Network;
pub use wires::End;
