//! Where packets enter and leave: one trait, two kinds of door.
//!
//! The unit is a virtio header and a super-packet that begins with its IP header: link-layer headers are the
//! port's own business, and the offsets in the virtio header count from the IP header.

use bentpipe_wire::offload::VnetHeader;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

/// Longest super-packet, IP header included, with room to spare.
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

/// Why a port could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// No interface of this name in the network namespace.
    #[error("there is no interface \"{name}\" in this network namespace")]
    NoInterface {
        /// The name that was given.
        name: String,
    },
    /// An interface of this name is there already.
    #[error("an interface \"{name}\" is there already: choose another name, or end what uses it")]
    Taken {
        /// The name that was given.
        name: String,
    },
    /// Not a name an interface can have.
    #[error("\"{name}\" cannot name an interface: 1 to 15 bytes, without \"/\", \"%\" or blanks")]
    BadName {
        /// The name that was given.
        name: String,
    },
    /// Packet sockets need CAP_NET_RAW in the network namespace's user namespace.
    #[error(
        "packet sockets are not allowed here (CAP_NET_RAW): start as root, or allow user namespaces (`bentpipe doctor` says how)"
    )]
    NoPacketSockets,
    /// The TUN device node is missing.
    #[error(
        "there is no /dev/net/tun: `modprobe tun`, or start the container with `--device /dev/net/tun`; veth ports need none"
    )]
    NoTun,
    /// The TUN device node may not be opened, or no interface may be made with it.
    #[error(
        "TUN interfaces are not allowed here: /dev/net/tun must be writable and CAP_NET_ADMIN held; veth ports need neither"
    )]
    TunNotAllowed,
    /// Anything else that the kernel refused.
    #[error("{what}: {source}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
}

/// One door. Never blocks.
pub trait PacketPort: Send + core::fmt::Debug {
    /// What to poll for input.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Reads one super-packet into `buffer`, which has room for [`MAX_SUPER`]; `None` when nothing waits.
    /// What is longer than the buffer is lost and counted.
    ///
    /// # Errors
    /// When the port is gone.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>>;

    /// Sends one super-packet that is the bytes of `parts` one after the other, the whole IP header in the
    /// first that is not empty; nothing is sent of nothing. False when the kernel had no room even when asked
    /// again, or the interface is down: the packet is lost and counted in [`PortDrops::send`], nothing need
    /// be done.
    ///
    /// # Errors
    /// When the port is gone or the packet is refused; it is counted too.
    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool>;

    /// What was lost here so far.
    ///
    /// # Errors
    /// When the port is gone.
    fn drops(&mut self) -> io::Result<PortDrops>;
}
