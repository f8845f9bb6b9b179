//! Whatever touches packets is a [`Node`]: host, link, router, later gateway and flow router.
//!
//! The run-loop contract, once: a driver hands a node **one** input; the node changes its state, sends packets and
//! asks for wake-ups through [`Cx`]; the driver then delivers what was sent and calls again when a wake-up is due.
//! A timer may come early, late or twice: a node looks at its own deadlines, never at the fact of being called.

use crate::cx::Cx;
use crate::ids::{Port, Slot};
use crate::packet::Pkt;

/// What can happen to a node.
#[derive(Debug)]
pub enum Input {
    /// A packet arrived at a port.
    Packet(Port, Pkt),
    /// A wake-up that the node asked for is due (or came early; it does no harm).
    Timer(Slot),
}

/// Takes one input; says what follows through `cx`.
pub trait Node {
    /// Handles one input at time `cx.now`.
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input);
}
