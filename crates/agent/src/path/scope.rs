//! Which packets on the network's interface of a host are the agent's; the kernel handles the others.
//!
//! The rules speak of the packet that opens a connection, but any packet of it must be found. So each packet
//! is compared twice: as if its source had opened the connection, and as if its destination had. The nftables
//! rules of [`bentpipe_accelerate::deploy`] do the same, and drop for the kernel what is in the scope.

use bentpipe_gateway::{Action, Policy, Side, SynProperties};
use bentpipe_wire::{Network, TCP};
use core::net::IpAddr;

/// Where a packet of `protocol` comes from and where it goes. `None` for a fragment; also for an IPv6 packet
/// whose fragment header says that it is whole (RFC 6946), which nftables matches as a fragment.
pub(super) fn ends(packet: &[u8], protocol: u8) -> Option<((IpAddr, u16), (IpAddr, u16))> {
    let network = Network::of(packet).ok().filter(|n| n.protocol == protocol && n.fragment.is_none())?;
    let [a, b, c, d] = *packet.get(network.transport..network.end)?.first_chunk::<4>()?;
    let (from, to) = network.ends.addresses();
    Some(((from, u16::from_be_bytes([a, b])), (to, u16::from_be_bytes([c, d]))))
}

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
        let Some(((from, from_port), (to, port))) = ends(packet, TCP) else { return false };
        let as_opened = SynProperties { from, to, from_port, port, dscp: 0, side: Side::Satellite };
        let as_answer =
            SynProperties { from: to, to: from, from_port: port, port: from_port, dscp: 0, side: Side::Lan };
        [as_opened, as_answer].iter().any(|opening| self.policy.decide(opening) == Action::Accelerate)
    }
}
