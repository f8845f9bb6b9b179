//! A port on a veth pair: a packet socket that carries super-packets with virtio headers (PACKET_VNET_HDR,
//! packet(7)).
//!
//! It needs no device node and no capability outside its own user namespace. Link-layer headers are ignored;
//! frames that are not IP are counted and skipped.
//!
//! The host's end should have ARP disabled (IFF_NOARP), so that it sends to its own address. The port's end
//! should have a different address: then its network stack, which sees every frame too, drops them early
//! ("for another host") and not after a route lookup. The sending host pays for that lookup: 0.4 to 1.9 us
//! per packet where it was measured, on top of 1.1 us.

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
/// Maximum number of parts of one sent packet.
const PARTS: usize = 6;
/// Receive buffer in the kernel's units, which include its overhead.
const QUEUE: usize = 32 << 20;
/// Maximum number of non-IP frames skipped per call, so that a flood of them cannot block the caller.
const SKIP: usize = 64;
/// How often a packet is offered to the kernel before it counts as lost.
const TRIES: usize = 3;

/// A packet socket on one interface, one end of a veth pair.
#[derive(Debug)]
pub struct VethPort {
    socket: OwnedFd,
    name: String,
    /// Ethernet header for sending, without the EtherType.
    mac: [u8; 12],
    /// Source address of the last received frame.
    from: [u8; 6],
    stamps: Stamps,
    drops: PortDrops,
}

impl VethPort {
    /// Opens a port on interface `name` of the calling thread's network namespace. `mac` is the address of
    /// the host's end of the pair.
    ///
    /// # Errors
    /// When there is no such interface, packet sockets are not allowed, or the kernel lacks a needed option.
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
        // only root of the machine may exceed net.core.rmem_max; others get that much
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

    /// Sets source and destination MAC address of sent frames, for networks whose hosts have different
    /// addresses.
    pub fn lead(&mut self, own: [u8; 6], next: [u8; 6]) {
        let (to, from) = self.mac.split_at_mut(6);
        to.copy_from_slice(&next);
        from.copy_from_slice(&own);
    }

    /// Source MAC address of the last received packet.
    pub const fn came_from(&self) -> [u8; 6] {
        self.from
    }

    /// Size of the receive buffer in bytes, in the kernel's units: a packet of 1500 bytes counts as about
    /// 2300, a super-packet as a little more than its length.
    ///
    /// # Errors
    /// When the port is gone.
    pub fn queue(&self) -> io::Result<usize> {
        Ok(sockopt::socket_recv_buffer_size(&self.socket)?)
    }

    /// Checks that the interface still exists: the kernel gives the same error for one that is down and one
    /// that is gone.
    fn still_there(&self) -> io::Result<()> {
        netdevice::name_to_index(&self.socket, &self.name)?;
        Ok(())
    }

    /// Offers a frame to the kernel; returns false if it has no room.
    fn offer(&mut self, frame: &[IoSlice<'_>]) -> io::Result<bool> {
        let mut tries = TRIES;
        loop {
            let mut control = SendAncillaryBuffer::default();
            match sendmsg(&self.socket, frame, &mut control, SendFlags::DONTWAIT) {
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                // EAGAIN: the send buffer is full; ENOBUFS: the queue of the other end is full, or that end
                // is down
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
                    // reported once when the interface goes down; packets arrive again once it is up
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

fn ethertype(packet: Option<&[u8]>) -> Option<[u8; 2]> {
    match packet?.first()? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}
