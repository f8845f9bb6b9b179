//! Which packets on the network's interface of a host are the agent's; the kernel handles the others.
//!
//! The rules speak of the packet that opens a connection, but any packet of it must be found. So each packet
//! is compared twice: as if its source had opened the connection, and as if its destination had. The nftables
//! rules of [`bentpipe_accelerate::deploy`] do the same, and drop for the kernel what is in the scope.

use bentpipe_gateway::{Action, Policy, Side, SynProperties};
use bentpipe_wire::{Network, TCP};

/// The packets that the rules may take.
#[derive(Clone, Debug)]
pub struct Scope {
    policy: Policy,
}

impl Scope {
    /// The scope of these rules.
    pub const fn new(policy: Policy) -> Self {
        Self { policy }
    }

    /// True if a packet from the network may be of a connection that the rules take.
    pub fn has(&self, packet: &[u8]) -> bool {
        let Ok(network) = Network::of(packet) else { return false };
        let is_partial = network.fragment.is_some_and(|f| f.is_partial());
        let ports = packet.get(network.transport..).and_then(|tcp| tcp.first_chunk::<4>());
        let Some([a, b, c, d]) = ports.filter(|_| network.protocol == TCP && !is_partial) else {
            return false;
        };
        let (from, to) = network.ends.addresses();
        let (from_port, port) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
        let as_opened = SynProperties { from, to, from_port, port, dscp: 0, side: Side::Satellite };
        let as_answer =
            SynProperties { from: to, to: from, from_port: port, port: from_port, dscp: 0, side: Side::Lan };
        [as_opened, as_answer].iter().any(|opening| self.policy.decide(opening) == Action::Accelerate)
    }
}
