//! Whatever touches packets is a [`Node`]: host, link, router, later gateway and flow router.
//!
//! The run-loop contract, once: a driver hands a node **one** input; the node changes its state, sends
//! packets and asks for wake-ups through [`Cx`]; the driver then delivers what was sent and calls again when
//! a wake-up is due. A timer may come early, late or twice: a node looks at its own deadlines, never at the
//! fact of being called.

use crate::cx::Cx;
use crate::ids::{Port, Slot};
use crate::packet::{Addr, Pkt};

/// What can happen to a node.
#[derive(Debug)]
pub enum Input {
    /// A packet arrived at a port.
    Packet(Port, Pkt),
    /// A wake-up that the node asked for is due (or came early; it does no harm).
    Timer(Slot),
}

/// Takes one input; says what follows through `cx`.
///
/// In a network of real packets a node sends only what it received: whole, in part, changed in its header, or
/// copied ([`Cx::duplicate`]). What it does not send it gives back ([`Cx::recycle`]).
pub trait Node {
    /// Handles one input at time `cx.now`.
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input);

    /// Stops holding packets: what is held leaves in order, and from now on every packet passes.
    fn release(&mut self, _cx: &mut Cx<'_>) {}

    /// Names every address that the node has stored: these keep their numbers.
    fn addresses(&self, _each: &mut dyn FnMut(Addr)) {}

    /// What the node has counted, for reports: a key in `snake_case`, and the number.
    fn counters(&self, _each: &mut dyn FnMut(&'static str, u64)) {}
}
