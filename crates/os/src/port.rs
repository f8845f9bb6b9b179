//! The trait for packet input and output.
//!
//! A packet is a virtio header and a super-packet that begins with its IP header. The port handles link-layer
//! headers; offsets in the virtio header count from the IP header.

use bentpipe_wire::offload::VnetHeader;
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

/// Maximum length of a super-packet including its IP header, with some reserve.
pub const MAX_SUPER: usize = 65_535 + 256;

/// Maximum number of parts of one sent packet.
pub(crate) const PARTS: usize = 6;
/// Maximum number of packets skipped per call, so that a flood of them cannot block the caller.
pub(crate) const SKIP: usize = 64;
/// How often a packet is offered to the kernel before it counts as lost.
const TRIES: usize = 3;

/// A received super-packet.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// How to segment it and what its checksum field holds.
    pub vnet: VnetHeader,
    /// Bytes in the buffer, from the IP header on.
    pub len: usize,
    /// When the kernel received it (`CLOCK_MONOTONIC`, ns). The time that it waits to be read must not count
    /// as link delay.
    pub at: u64,
}

/// Packets lost at a port, not on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortDrops {
    /// Arrived faster than they were read.
    pub receive: u64,
    /// Not accepted by the kernel for sending.
    pub send: u64,
    /// Not IP, so not emulated.
    pub not_ip: u64,
}

/// Why a port could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// No interface of this name in the network namespace.
    #[error("there is no interface \"{0}\" in this network namespace")]
    NoInterface(String),
    /// An interface of this name exists already.
    #[error("an interface \"{0}\" is there already: choose another name, or end what uses it")]
    Taken(String),
    /// Not a valid interface name.
    #[error("\"{0}\" cannot name an interface: 1 to 15 bytes, without \"/\", \"%\" or blanks")]
    BadName(String),
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
    /// The TUN device node may not be opened, or no interface may be created with it.
    #[error(
        "TUN interfaces are not allowed here: /dev/net/tun must be writable and CAP_NET_ADMIN held; veth ports need neither"
    )]
    TunNotAllowed,
    /// Any other error of the kernel.
    #[error("{what}: {source}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl PortError {
    /// Wraps an error of the kernel; `what` was tried.
    pub(crate) fn kernel<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Kernel { what, source: error.into() }
    }
}

/// Offers a packet to the kernel up to [`TRIES`] times; returns false if the kernel has no room. Counts a
/// packet that the kernel does not take as lost.
pub(crate) fn offer(
    drops: &mut PortDrops,
    mut write: impl FnMut() -> Result<usize, Errno>,
) -> Result<bool, Errno> {
    let mut tries = TRIES;
    loop {
        match write() {
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            // EAGAIN: the send buffer is full; ENOBUFS: the queue of the other end is, or that end is down
            Err(Errno::AGAIN | Errno::NOBUFS) if tries > 1 => {
                tries -= 1;
                rustix::thread::sched_yield();
            }
            Err(error) => {
                drops.send += 1;
                return if matches!(error, Errno::AGAIN | Errno::NOBUFS) { Ok(false) } else { Err(error) };
            }
        }
    }
}

/// The error for invalid arguments.
pub(crate) fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why.into())
}

/// A port. Its calls never block.
pub trait PacketPort: Send + core::fmt::Debug {
    /// Descriptor to poll for input.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Reads one super-packet into `buffer`, which has room for [`MAX_SUPER`]; `None` if none is waiting. A
    /// packet longer than the buffer is lost and counted.
    ///
    /// # Errors
    /// When the port is gone.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>>;

    /// Sends one super-packet, the concatenation of `parts`; its whole IP header is in the first part that is
    /// not empty. If all parts are empty, nothing is sent. Returns false if the kernel had no room after
    /// several tries or the interface is down: the packet is lost and counted in [`PortDrops::send`], and the
    /// caller need not act.
    ///
    /// # Errors
    /// When the port is gone or the kernel rejects the packet, which is counted too.
    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool>;

    /// Packets lost at this port so far.
    ///
    /// # Errors
    /// When the port is gone.
    fn drops(&mut self) -> io::Result<PortDrops>;

    /// True if it holds packets that it could not send yet. It tries again when it is read, so read it soon.
    fn holds(&self) -> bool {
        false
    }
}
