//! A TUN interface as a port, with super-packets (IFF_VNET_HDR, TUNSETOFFLOAD;
//! Documentation/networking/tuntap.rst).
//!
//! It avoids the second half of a veth pair but needs the device node, which usually only root may open. The
//! kernel gives no receive timestamp: the arrival time is when the packet was read, so time in the queue
//! counts as link delay.

#![allow(unsafe_code, reason = "ioctls of /dev/net/tun; each block says why it is sound")]

use crate::clock::monotonic;
use crate::options::checked;
use crate::port::{PARTS, PacketPort, PortDrops, PortError, Received, SKIP, invalid, offer};
use bentpipe_wire::offload::VnetHeader;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use std::ffi::{c_int, c_uint, c_ulong};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use zerocopy::IntoBytes;

/// Length of the queue in packets. The kernel's default, 500, holds half a millisecond of small packets.
const QUEUE: c_int = 2000;

/// A TUN interface.
#[derive(Debug)]
pub struct TunPort {
    device: OwnedFd,
    name: String,
    /// `/proc/net/dev` of the namespace it was created in.
    table: File,
    drops: PortDrops,
}

impl TunPort {
    /// Creates a TUN interface in the calling thread's network namespace; it is removed when the port is
    /// dropped.
    ///
    /// # Errors
    /// When the device node cannot be opened, the interface cannot be created, or its name is in use.
    pub fn create(name: &str) -> Result<Self, PortError> {
        Self::with(name, true)
    }

    /// The same without super-packets: the kernel segments them and fills in checksums.
    ///
    /// # Errors
    /// As [`TunPort::create`].
    pub fn create_plain(name: &str) -> Result<Self, PortError> {
        Self::with(name, false)
    }

    fn with(name: &str, offloads: bool) -> Result<Self, PortError> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let device = openat(rustix::fs::CWD, "/dev/net/tun", flags, Mode::empty()).map_err(|e| match e {
            Errno::NOENT | Errno::NODEV | Errno::NXIO => PortError::NoTun,
            Errno::ACCESS | Errno::PERM => PortError::TunNotAllowed,
            e => PortError::Kernel { what: "opening /dev/net/tun", source: e.into() },
        })?;
        make(&device, name)?;
        let size: c_int = size_of::<VnetHeader>() as c_int;
        // SAFETY: TUNSETVNETHDRSZ reads an int, which lives during the call.
        unsafe { ioctl(&device, libc::TUNSETVNETHDRSZ, (&raw const size) as c_ulong) }
            .map_err(PortError::kernel("setting the size of virtio headers"))?;
        if offloads {
            offload(&device)?;
        }
        lengthen_queue(name)?;
        // of this thread: /proc/net is the main thread's namespace, which may be another one
        let table = File::open("/proc/thread-self/net/dev")
            .map_err(PortError::kernel("opening /proc/thread-self/net/dev"))?;
        Ok(Self { device, name: name.to_owned(), table, drops: PortDrops::default() })
    }
}

impl PacketPort for TunPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        for _ in 0..SKIP {
            let mut vnet = VnetHeader::default();
            let mut parts = [IoSliceMut::new(vnet.as_mut_bytes()), IoSliceMut::new(&mut *buffer)];
            let read = match rustix::io::readv(&self.device, &mut parts) {
                Ok(read) => read,
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            };
            let len = read.saturating_sub(size_of::<VnetHeader>());
            if len > buffer.len() {
                self.drops.receive += 1;
                continue;
            }
            if len == 0 || !matches!(buffer[0] >> 4, 4 | 6) {
                self.drops.not_ip += 1;
                continue;
            }
            return Ok(Some(Received { vnet, len, at: monotonic() }));
        }
        Ok(None)
    }

    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        if parts.iter().all(|p| p.is_empty()) {
            return Ok(true);
        }
        if parts.len() > PARTS {
            return Err(invalid("a packet of at most six parts is needed"));
        }
        let mut packet = [IoSlice::new(&[]); 1 + PARTS];
        packet[0] = IoSlice::new(vnet.as_bytes());
        packet[1..=parts.len()].copy_from_slice(parts);
        match offer(&mut self.drops, || rustix::io::writev(&self.device, &packet[..=parts.len()])) {
            // EIO: the interface is down
            Err(Errno::IO | Errno::NETDOWN) => Ok(false),
            done => Ok(done?),
        }
    }

    fn drops(&mut self) -> io::Result<PortDrops> {
        let mut table = [0; 16 << 10];
        let mut len = 0;
        loop {
            match self.table.read_at(&mut table[len..], len as u64)? {
                0 => break,
                more => len += more,
            }
        }
        let text = String::from_utf8_lossy(&table[..len]);
        let lost = transmit_drops(&text, &self.name).unwrap_or_default();
        Ok(PortDrops { receive: self.drops.receive + lost, ..self.drops })
    }
}

/// Packets the kernel dropped because the TUN queue was full, from /proc/net/dev: the fourth of the eight
/// transmit columns.
fn transmit_drops(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().nth(8 + 3)?.parse().ok()
}

fn make(device: &OwnedFd, name: &str) -> Result<(), PortError> {
    let bad = |c: char| c == '/' || c == '%' || c == ':' || c.is_whitespace() || c == '\0';
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(bad) || name == "." || name == ".." {
        return Err(PortError::BadName(name.to_owned()));
    }
    let mut request = named(name);
    // IFF_TUN_EXCL: never attach to an existing interface
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
    request.ifr_ifru.ifru_flags = flags as i16;
    // SAFETY: TUNSETIFF reads and writes an ifreq, which lives during the call.
    unsafe { ioctl(device, libc::TUNSETIFF, (&raw mut request) as c_ulong) }.map_err(|source| {
        match Errno::from_io_error(&source) {
            Some(Errno::PERM) => PortError::TunNotAllowed,
            Some(Errno::BUSY | Errno::EXIST) => PortError::Taken(name.to_owned()),
            Some(Errno::INVAL) => PortError::BadName(name.to_owned()),
            _ => PortError::Kernel { what: "making a TUN interface", source },
        }
    })
}

/// An ifreq with this name. A name that is too long is truncated; the last byte stays zero.
fn named(name: &str) -> libc::ifreq {
    // SAFETY: bytes and a union of integers; all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from as _;
    }
    request
}

/// Gives the interface a queue of [`QUEUE`] packets: netdevice(7), SIOCSIFTXQLEN.
fn lengthen_queue(name: &str) -> Result<(), PortError> {
    const WHAT: &str = "making room for packets";
    let socket =
        rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(PortError::kernel(WHAT))?;
    let mut request = named(name);
    request.ifr_ifru.ifru_metric = QUEUE;
    // SAFETY: SIOCSIFTXQLEN reads an ifreq, which lives during the call; the length is the integer at the
    // start of its union.
    unsafe { ioctl(&socket, libc::SIOCSIFTXQLEN as libc::Ioctl, (&raw mut request) as c_ulong) }
        .map_err(PortError::kernel(WHAT))
}

/// Enables the offloads that the kernel supports, so that it leaves checksums and segmentation of received
/// packets undone; segmentation of UDP needs Linux 6.2.
fn offload(device: &OwnedFd) -> Result<(), PortError> {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let udp = tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6;
    let accepted = |flags: c_uint| {
        // SAFETY: TUNSETOFFLOAD takes a number, no pointer.
        unsafe { ioctl(device, libc::TUNSETOFFLOAD, c_ulong::from(flags)) }
    };
    let done = accepted(udp).or_else(|_| accepted(tcp)).or_else(|_| accepted(0));
    done.map_err(PortError::kernel("asking for offloads"))
}

/// # Safety
/// `argument` must be what `request` takes.
unsafe fn ioctl(device: &OwnedFd, request: libc::Ioctl, argument: c_ulong) -> io::Result<()> {
    // SAFETY: the descriptor is open; the caller guarantees the argument.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), request, argument) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_right_column() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
            lo:       1       2    3    4    5     6          7         8        9       10   11   12   13    14      15         16\n\
            tun10: 1 2 3 4 5 6 7 8 9 10 11 99 13 14 15 16\n tun1: 1 2 3 4 5 6 7 8 9 10 11 77 13 14 15 16\n";
        assert_eq!(transmit_drops(table, "tun1"), Some(77));
        assert_eq!(transmit_drops(table, "lo"), Some(12));
        assert_eq!(transmit_drops(table, "tun"), None);
        assert_eq!(transmit_drops("tun1: 1 2", "tun1"), None);
    }

    #[test]
    fn names_that_no_interface_can_have_are_refused() {
        let device: OwnedFd = File::open("/dev/null").unwrap().into();
        for name in ["", "a-name-too-long-", "a/b", "a b", "a%d", ".", ".."] {
            assert!(matches!(make(&device, name), Err(PortError::BadName(_))), "{name}");
        }
    }
}
