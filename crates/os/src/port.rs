//! Where packets enter and leave: one trait, two kinds of door.
//!
//! The unit is a virtio header and a super-packet that begins with its IP header: link-layer headers are the port's own business, and the
//! offsets in the virtio header count from the IP header.

use bentpipe_wire::offload::VnetHeader;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

/// Longest super-packet, IP header included.
pub const MAX_SUPER: usize = 65_535 + 256;

/// A super-packet that was read.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// How to split it and what its checksum field holds.
    pub vnet: VnetHeader,
    /// Bytes in the buffer, from the IP header on.
    pub len: usize,
    /// When the kernel had it, `CLOCK_MONOTONIC` in nanoseconds: waiting to be read is not part of the link.
    pub at: u64,
}

/// Packets that were lost at a port, not on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortDrops {
    /// Came in faster than we read.
    pub receive: u64,
    /// The kernel did not take them from us.
    pub send: u64,
    /// Could not be read as IP: nothing to emulate.
    pub not_ip: u64,
}

/// One door. Never blocks.
pub trait PacketPort: Send + core::fmt::Debug {
    /// What to poll for input.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Reads one super-packet into `buffer`, which has room for [`MAX_SUPER`]; `None` when nothing waits.
    ///
    /// # Errors
    /// When the port is gone.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>>;

    /// Sends one super-packet that is the bytes of `parts` one after the other; false when the kernel has no room now.
    ///
    /// # Errors
    /// When the port is gone or the packet is refused.
    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool>;

    /// What was lost here so far.
    ///
    /// # Errors
    /// When the port is gone.
    fn drops(&mut self) -> io::Result<PortDrops>;
}
