//! What the driver has done, and every packet that it did not forward, or that passed unread, with the cause.

use crate::core::Offered;
use crate::parse::Other;
use bentpipe_os::PortDrops;

/// Counters of one port. A super-packet is one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Units that came in.
    pub received: u64,
    /// Bytes of them, from where the port's units begin.
    pub received_bytes: u64,
    /// Units that were sent.
    pub sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Lost at the port, beside the network.
    pub drops: PortDrops,
}

/// Counters of a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Of each port.
    pub ports: Vec<PortCounters>,
    /// Of those that were sent, units that left as they came.
    pub untouched: u64,
    /// Units that passed unread where headers are read, in the order of [`Other::ALL`].
    pub other: [u64; Other::ALL.len()],
    /// Not IP, where packets are routed.
    pub not_ip: u64,
    /// Passed around the network, since the store was full.
    pub store_full: u64,
    /// Passed unread, since there was no number for an address.
    pub addresses_full: u64,
    /// Sent with their old options, since new ones found no room.
    pub options_short: u64,
    /// Not sent: the kernel refused the packet, most often because it is longer than the interface's MTU.
    pub refused: u64,
    /// Turns in which the thread came too late for what was due, by more than [`crate::CATCH_UP`].
    pub late_turns: u64,
}

impl Counters {
    pub(crate) fn new(ports: usize) -> Self {
        Self { ports: vec![PortCounters::default(); ports], ..Self::default() }
    }

    /// What became of a unit that was offered to the kernel at a port.
    pub(crate) fn note_sent(&mut self, port: usize, outcome: Offered) {
        match outcome {
            Offered::Taken(bytes) => {
                self.ports[port].sent += 1;
                self.ports[port].sent_bytes += bytes;
            }
            Offered::Refused => self.refused += 1,
            Offered::Lost => {}
        }
    }

    /// A unit that passes unread.
    pub(crate) fn note(&mut self, why: Other) {
        if let Some(counter) = Other::ALL.iter().position(|o| *o == why).and_then(|i| self.other.get_mut(i)) {
            *counter += 1;
        }
    }

    /// Bytes that came in at all ports.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.ports.iter().map(|port| port.received_bytes).sum()
    }

    /// What was lost at the ports and what was not IP, of all ports together.
    pub fn drops(&self) -> PortDrops {
        let add = |sum: PortDrops, port: &PortCounters| PortDrops {
            receive: sum.receive + port.drops.receive,
            send: sum.send + port.drops.send,
            not_ip: sum.not_ip + port.drops.not_ip,
        };
        self.ports.iter().fold(PortDrops { not_ip: self.not_ip, ..PortDrops::default() }, add)
    }

    /// Packets that came and were not forwarded.
    pub fn lost(&self) -> u64 {
        let drops = self.drops();
        drops.receive + drops.send + self.refused
    }
}
