//! What the data path has done, and every packet that it did not forward, or not through the node, with the cause.

use super::parse::Other;
use bentpipe_os::PortDrops;

/// Counters of the data path. Indices of ports are those of the gateway: 0 LAN, 1 satellite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Units that came in at each port; a super-packet is one.
    pub received: [u64; 2],
    /// Bytes of them, from where the port's units begin.
    pub received_bytes: [u64; 2],
    /// Units that were sent out of each port.
    pub sent: [u64; 2],
    /// Bytes of them.
    pub sent_bytes: [u64; 2],
    /// Of those, units that left as they came.
    pub untouched: u64,
    /// Units that passed unread, in the order of [`Other::ALL`].
    pub other: [u64; Other::ALL.len()],
    /// Passed around the node, since the store was full.
    pub store_full: u64,
    /// Passed unread, since there was no number for an address.
    pub addresses_full: u64,
    /// Sent with their old options, since new ones found no room.
    pub options_short: u64,
    /// Not sent: the kernel refused the packet, most often because it is longer than the interface's MTU.
    pub refused: u64,
    /// Turns in which the thread came too late for what was due, by more than [`super::drive::CATCH_UP`].
    pub late_turns: u64,
    /// Lost at each port beside the gateway.
    pub ports: [PortDrops; 2],
}

impl Counters {
    /// A unit that passes unread.
    pub(super) fn note(&mut self, why: Other) {
        if let Some(counter) = Other::ALL.iter().position(|o| *o == why).and_then(|i| self.other.get_mut(i)) {
            *counter += 1;
        }
    }

    /// Packets that came and were not forwarded.
    pub fn lost(&self) -> u64 {
        self.ports.iter().map(|port| port.receive + port.send).sum::<u64>() + self.refused
    }
}
