//! The two ports of a data path, with their clock and counters.

use crate::split::{HOST, NETWORK};
use bentpipe_base::{Duration, Instant};
use bentpipe_os::port::PortDrops;
use bentpipe_os::{Clock, PacketPort};
use bentpipe_wire::offload::VnetHeader;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

/// Most super-packets read from one side before the other gets its turn.
const BATCH: usize = 64;
/// How long a port that holds packets waits before it tries again.
const HELD: Duration = Duration::from_millis(1);

/// Packets and bytes, each for both sides: the host, the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Super-packets received.
    pub received: [u64; 2],
    /// Bytes received, IP headers included.
    pub bytes: [u64; 2],
    /// Received and passed on unread.
    pub passed: [u64; 2],
    /// Sent by the agent.
    pub sent: [u64; 2],
}

/// The ports of a data path, the host's first.
#[derive(Debug)]
pub struct Line {
    pub(crate) ports: [Box<dyn PacketPort>; 2],
    pub(crate) clock: Clock,
    pub(crate) traffic: Traffic,
}

impl Line {
    /// Starts the clock.
    pub(crate) fn new(ports: [Box<dyn PacketPort>; 2]) -> Self {
        Self { ports, clock: Clock::start(), traffic: Traffic::default() }
    }

    /// The clock of the data path.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Counters of its ports.
    pub const fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Packets lost at the ports.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn drops(&mut self) -> io::Result<[PortDrops; 2]> {
        let [host, network] = &mut self.ports;
        Ok([host.drops()?, network.drops()?])
    }

    /// Descriptors to poll for input.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.ports[HOST].fd(), self.ports[NETWORK].fd()]
    }

    /// When ports that hold packets must be read again.
    pub(crate) fn when_held(&self, now: Instant) -> Instant {
        let holds = self.ports.iter().any(|port| port.holds());
        if holds { now + HELD } else { Instant::NEVER }
    }
}

/// Calls `receive` for each side until it has no more, or has had enough; true if a side may have more.
pub(crate) fn read_both(mut receive: impl FnMut(usize) -> io::Result<bool>) -> io::Result<bool> {
    let mut is_full = false;
    for side in [HOST, NETWORK] {
        let mut read = 0;
        while read < BATCH && receive(side)? {
            read += 1;
        }
        is_full |= read == BATCH;
    }
    Ok(is_full)
}

/// Sends a packet. One that the kernel has no room for is lost, and counted by its port.
pub(crate) fn send(port: &mut dyn PacketPort, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<()> {
    tolerate(port.send(vnet, parts))
}

/// A packet that the kernel does not take is lost. Only a port that is gone is an error; the next read says
/// so.
pub(crate) fn tolerate(sent: io::Result<bool>) -> io::Result<()> {
    match sent {
        Err(error) if error.raw_os_error().is_none() => Err(error),
        _ => Ok(()),
    }
}
