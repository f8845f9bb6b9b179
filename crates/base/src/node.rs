//! The [`Node`] trait: everything that handles packets implements it (hosts, links, routers, gateways).
//!
//! The contract of the run loop: a driver hands a node **one** input; the node changes its state, sends
//! packets and requests wake-ups through [`Cx`]; the driver then delivers the packets and calls again when a
//! wake-up is due. A timer may come early, late or twice, so a node must check its own deadlines.

use crate::cx::Cx;
use crate::ids::{Port, Slot};
use crate::packet::{Addr, Pkt};
use crate::shift::Walk;
use crate::units::Rate;

/// An input of a node.
#[derive(Debug)]
pub enum Input {
    /// A packet arrived at a port.
    Packet(Port, Pkt),
    /// A wake-up that the node requested. It may come early.
    Timer(Slot),
}

/// Handles inputs and acts through `cx`.
///
/// In a network of real packets a node sends only what it received: whole, in part, with a changed header, or
/// copied ([`Cx::duplicate`]). It returns what it does not send ([`Cx::recycle`]).
pub trait Node {
    /// Handles one input at time `cx.now`.
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input);

    /// True for a node that handles super-packets whole; to others each of their wire packets comes alone.
    fn takes_super_packets(&self) -> bool {
        false
    }

    /// True for a node that reads and writes rate signalling ([`crate::Packet::signal`]), and follows UDP
    /// datagrams. If no node does, signalling stays part of real packets' payload, and datagrams are opaque.
    fn reads_signalling(&self) -> bool {
        false
    }

    /// True for a node beside a host that knows of no structures: it must see every end of an IPv4 payload
    /// that looks like one, whatever the DSCP says.
    fn reads_all_ends(&self) -> bool {
        false
    }

    /// Somebody outside has set the rate of the link direction that this node feeds; `None`: no longer.
    fn link_rate(&mut self, _cx: &mut Cx<'_>, _rate: Option<Rate>) {}

    /// Stops holding packets: sends those held in order, and from now on forwards every packet at once.
    fn release(&mut self, _cx: &mut Cx<'_>) {}

    /// Calls `each` with every address that the node has stored; the driver must keep their numbers.
    fn addresses(&self, _each: &mut dyn FnMut(Addr)) {}

    /// Tells `walk` what the node's state is, so that what repeats itself can be skipped exactly
    /// ([`Walk`]). A node that does not say so is never skipped.
    fn shift(&mut self, walk: &mut Walk<'_>) {
        walk.refuse("a node of a kind that cannot be skipped");
    }

    /// Calls `each` with every counter of the node for reports: a key in `snake_case`, and the value.
    fn counters(&self, _each: &mut dyn FnMut(&'static str, u64)) {}
}
