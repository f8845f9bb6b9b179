//! A port on a veth pair: a packet socket that carries super-packets with their notes (PACKET_VNET_HDR), as
//! packet(7) has it.
//!
//! It needs no device node and no capability outside its own user namespace. What a frame's link-layer header
//! says is of no interest; a frame that is not IP is counted and left out.
//!
//! The host's end should not resolve addresses (IFF_NOARP), so that it sends to its own address. Our end is
//! best given another one: then its own stack, which sees every frame too, throws them away at the door ("for
//! another host") and not after a look at its routes; the sending host pays for that look, 0.4 to 1.9 us per
//! packet where it was measured, of 1.1 us without.

mod frame;
mod stamp;
mod sys;

pub use frame::FramePort;

use crate::port::{PacketPort, PortDrops, PortError, Received};
use bentpipe_wire::offload::VnetHeader;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType};
use rustix::net::{netdevice, sendmsg, socket_with, sockopt};
use stamp::Stamps;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use zerocopy::IntoBytes;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Most parts of one packet that is sent.
const PARTS: usize = 6;
/// What may wait to be read, in the kernel's own measure (which counts its overhead too).
const QUEUE: usize = 32 << 20;
/// Frames that are not IP and are skipped in one call, so that a flood of them cannot hold the caller.
const SKIP: usize = 64;
/// How often a packet is offered to a kernel that has no room before it counts as lost.
const TRIES: usize = 3;

/// A packet socket on one interface, the near end of a veth pair.
#[derive(Debug)]
pub struct VethPort {
    socket: OwnedFd,
    name: String,
    /// Ethernet header of what is sent, without its type.
    mac: [u8; 12],
    /// Where the last frame that was read came from.
    from: [u8; 6],
    stamps: Stamps,
    drops: PortDrops,
}

impl VethPort {
    /// Opens a port on interface `name` of the calling thread's network namespace. `mac` is the address of
    /// the host's end of the pair.
    ///
    /// # Errors
    /// When there is no such interface, packet sockets are not allowed, or the kernel lacks what we need.
    pub fn open(name: &str, mac: [u8; 6]) -> Result<Self, PortError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // protocol 0: nothing arrives before it is bound
        let socket =
            socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(|e| match e {
                Errno::PERM | Errno::ACCESS => PortError::NoPacketSockets,
                e => PortError::Kernel { what: "opening a packet socket", source: e.into() },
            })?;
        let interface = netdevice::name_to_index(&socket, name)
            .map_err(|_| PortError::NoInterface { name: name.to_owned() })?;
        let failed = |what| move |source| PortError::Kernel { what, source };
        let fd = socket.as_fd();
        sys::set(fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)
            .map_err(failed("asking for PACKET_VNET_HDR"))?;
        sys::set(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
            .map_err(failed("asking for PACKET_IGNORE_OUTGOING (Linux 4.20)"))?;
        sys::set(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)
            .map_err(failed("asking for PACKET_QDISC_BYPASS"))?;
        sys::set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).map_err(failed("asking for timestamps"))?;
        // only root of the machine may go beyond net.core.rmem_max; others get that much
        if sys::set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, QUEUE as i32).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, QUEUE)
                .map_err(|e| PortError::Kernel { what: "making room for packets", source: e.into() })?;
        }
        let _ = sys::set(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, QUEUE as i32);
        sys::bind(fd, interface).map_err(failed("binding to the interface"))?;
        let mut both = [0; 12];
        both[..6].copy_from_slice(&mac);
        both[6..].copy_from_slice(&mac);
        let (stamps, drops) = (Stamps::default(), PortDrops::default());
        Ok(Self { socket, name: name.to_owned(), mac: both, from: [0; 6], stamps, drops })
    }

    /// From now on frames come from `own` and go to `next`, as on a network where neighbours have addresses
    /// of their own.
    pub fn lead(&mut self, own: [u8; 6], next: [u8; 6]) {
        let (to, from) = self.mac.split_at_mut(6);
        to.copy_from_slice(&next);
        from.copy_from_slice(&own);
    }

    /// The hardware address that the last packet which was received came from.
    pub const fn came_from(&self) -> [u8; 6] {
        self.from
    }

    /// What may wait to be read before packets are lost, in bytes of the kernel's measure: a packet of 1500
    /// bytes counts about 2300, a super-packet a little more than its length.
    ///
    /// # Errors
    /// When the port is gone.
    pub fn queue(&self) -> io::Result<usize> {
        Ok(sockopt::socket_recv_buffer_size(&self.socket)?)
    }

    /// Whether the interface is still there: the kernel says the same of one that is down and of one that is
    /// gone.
    fn still_there(&self) -> io::Result<()> {
        netdevice::name_to_index(&self.socket, &self.name)?;
        Ok(())
    }

    /// Offers a frame to the kernel; false when it has no room.
    fn offer(&mut self, frame: &[IoSlice<'_>]) -> io::Result<bool> {
        let mut tries = TRIES;
        loop {
            let mut control = SendAncillaryBuffer::default();
            match sendmsg(&self.socket, frame, &mut control, SendFlags::DONTWAIT) {
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                // EAGAIN: our own send buffer; ENOBUFS: the other end's queue was full, or the other end is
                // down
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    tries -= 1;
                    if tries == 0 {
                        self.drops.send += 1;
                        return Ok(false);
                    }
                    rustix::thread::sched_yield();
                }
                Err(Errno::NETDOWN) => {
                    self.drops.send += 1;
                    return self.still_there().map(|()| false);
                }
                Err(e) => {
                    self.drops.send += 1;
                    return Err(e.into());
                }
            }
        }
    }
}

impl PacketPort for VethPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let room = buffer.len();
        for _ in 0..SKIP {
            let (mut vnet, mut ethernet) = (VnetHeader::default(), [0; ETHERNET]);
            let mut parts = [
                IoSliceMut::new(vnet.as_mut_bytes()),
                IoSliceMut::new(&mut ethernet),
                IoSliceMut::new(&mut *buffer),
            ];
            let frame = match sys::receive(self.socket.as_fd(), &mut parts) {
                Ok(frame) => frame,
                Err(e) => match Errno::from_io_error(&e) {
                    Some(Errno::AGAIN) => {
                        self.stamps.empty();
                        return Ok(None);
                    }
                    Some(Errno::INTR) => continue,
                    // said once when the interface goes down; more comes when it is up again
                    Some(Errno::NETDOWN) => {
                        self.still_there()?;
                        continue;
                    }
                    _ => return Err(e),
                },
            };
            let at = self.stamps.convert(frame.stamp);
            let Some(len) = frame.len.checked_sub(size_of::<VnetHeader>() + ETHERNET) else {
                self.drops.not_ip += 1;
                continue;
            };
            if len > room {
                self.drops.receive += 1;
                continue;
            }
            if ethertype(buffer.get(..len)) != ethernet.last_chunk::<2>().copied() {
                self.drops.not_ip += 1;
                continue;
            }
            self.from.copy_from_slice(&ethernet[6..12]);
            return Ok(Some(Received { vnet: vnet.without(ETHERNET as u16), len, at }));
        }
        Ok(None)
    }

    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        let first = parts.iter().find(|p| !p.is_empty());
        let Some(first) = first else { return Ok(true) };
        let (Some(kind), true) = (ethertype(Some(first)), parts.len() <= PARTS) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an IP packet of at most six parts is needed",
            ));
        };
        let vnet = vnet.behind(ETHERNET as u16);
        let mut ethernet = [0; ETHERNET];
        ethernet[..12].copy_from_slice(&self.mac);
        ethernet[12..].copy_from_slice(&kind);
        let mut frame = [IoSlice::new(&[]); 2 + PARTS];
        (frame[0], frame[1]) = (IoSlice::new(vnet.as_bytes()), IoSlice::new(&ethernet));
        frame[2..2 + parts.len()].copy_from_slice(parts);
        self.offer(&frame[..2 + parts.len()])
    }

    fn drops(&mut self) -> io::Result<PortDrops> {
        self.drops.receive += sys::lost(self.socket.as_fd())?;
        Ok(self.drops)
    }
}

/// The Ethernet type of an IP packet.
fn ethertype(packet: Option<&[u8]>) -> Option<[u8; 2]> {
    match packet?.first()? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}
