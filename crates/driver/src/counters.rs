//! Counters of the driver: packets handled, and packets that were not forwarded or were passed unread, by
//! cause.

use crate::core::SendOutcome;
use crate::parse::UnreadReason;
use bentpipe_os::PortDrops;

/// Counters of one port. A super-packet is one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Units received.
    pub received: u64,
    /// Bytes received, counted from the start of the port's units.
    pub received_bytes: u64,
    /// Units sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets lost at the port, outside the network.
    pub drops: PortDrops,
}

/// Counters of a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Counters of each port.
    pub ports: Vec<PortCounters>,
    /// Units sent unchanged.
    pub untouched: u64,
    /// Units forwarded unread although headers are read, in the order of [`UnreadReason::ALL`].
    pub other: [u64; UnreadReason::ALL.len()],
    /// Units dropped because they are not IP, where packets are routed.
    pub not_ip: u64,
    /// Units that bypassed the network because the store was full.
    pub store_full: u64,
    /// Units forwarded unread because there was no free address number.
    pub addresses_full: u64,
    /// Packets sent with their old options because the new ones did not fit.
    pub options_short: u64,
    /// Packets refused by the kernel, usually because they are longer than the interface's MTU.
    pub refused: u64,
    /// Turns that came late by more than [`crate::CATCH_UP`].
    pub late_turns: u64,
}

impl Counters {
    pub(crate) fn new(ports: usize) -> Self {
        Self { ports: vec![PortCounters::default(); ports], ..Self::default() }
    }

    /// Counts the result of offering a unit to the kernel at a port.
    pub(crate) fn note_sent(&mut self, port: usize, outcome: SendOutcome) {
        match outcome {
            SendOutcome::Taken(bytes) => {
                self.ports[port].sent += 1;
                self.ports[port].sent_bytes += bytes;
            }
            SendOutcome::Refused => self.refused += 1,
            SendOutcome::Lost => {}
        }
    }

    pub(crate) fn note(&mut self, why: UnreadReason) {
        self.other[why as usize] += 1;
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.ports.iter().map(|port| port.received_bytes).sum()
    }

    /// Packets lost at the ports and frames that are not IP, over all ports.
    pub fn drops(&self) -> PortDrops {
        let add = |sum: PortDrops, port: &PortCounters| PortDrops {
            receive: sum.receive + port.drops.receive,
            send: sum.send + port.drops.send,
            not_ip: sum.not_ip + port.drops.not_ip,
        };
        self.ports.iter().fold(PortDrops { not_ip: self.not_ip, ..PortDrops::default() }, add)
    }
}
