//! A port for bridging: whole frames for any destination, with their Ethernet header and VLAN tags.
//!
//! Here a packet begins at the Ethernet header, not at the IP header as in other [`PacketPort`]s, and the
//! offsets in the virtio header count from there. Frames that are not IP are passed too. The kernel removes
//! the VLAN tag before a packet socket sees the frame and reports it separately (PACKET_AUXDATA, packet(7));
//! this port puts it back.

use super::{ETHERNET, PARTS, SKIP, VethPort, sys};
use crate::port::{PacketPort, PortDrops, PortError, Received};
use bentpipe_wire::offload::VnetHeader;
use rustix::io::Errno;
use rustix::net::netdevice;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use zerocopy::IntoBytes;

/// Offset and length of a VLAN tag.
const TAG_AT: usize = 12;
const TAG: usize = 4;

/// A packet socket on one interface that receives and sends whole frames.
#[derive(Debug)]
pub struct FramePort {
    inner: VethPort,
}

impl FramePort {
    /// Opens a port on interface `name` of the calling thread's network namespace, in promiscuous mode.
    ///
    /// # Errors
    /// As [`VethPort::open`].
    pub fn open(name: &str) -> Result<Self, PortError> {
        let inner = VethPort::open(name, [0; 6])?;
        let failed = |what| move |source| PortError::Kernel { what, source };
        let fd = inner.socket.as_fd();
        sys::set(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)
            .map_err(failed("asking for PACKET_AUXDATA"))?;
        let interface = netdevice::name_to_index(&inner.socket, name)
            .map_err(|_| PortError::NoInterface { name: name.to_owned() })?;
        sys::listen_to_all(fd, interface).map_err(failed("asking for the frames of other hosts"))?;
        // frames received before PACKET_AUXDATA was enabled lack their tag
        let mut byte = [0];
        while sys::receive(fd, &mut [IoSliceMut::new(&mut byte)]).is_ok() {}
        Ok(Self { inner })
    }
}

impl PacketPort for FramePort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.inner.fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let port = &mut self.inner;
        for _ in 0..SKIP {
            let mut vnet = VnetHeader::default();
            let mut parts = [IoSliceMut::new(vnet.as_mut_bytes()), IoSliceMut::new(&mut *buffer)];
            let frame = match sys::receive(port.socket.as_fd(), &mut parts) {
                Ok(frame) => frame,
                Err(e) => match Errno::from_io_error(&e) {
                    Some(Errno::AGAIN) => {
                        port.stamps.empty();
                        return Ok(None);
                    }
                    Some(Errno::INTR) => continue,
                    // reported once when the interface goes down; packets arrive again once it is up
                    Some(Errno::NETDOWN) => {
                        port.still_there()?;
                        continue;
                    }
                    _ => return Err(e),
                },
            };
            let at = port.stamps.convert(frame.stamp);
            let len = frame.len.saturating_sub(size_of::<VnetHeader>());
            if len < ETHERNET || len + TAG > buffer.len() {
                port.drops.receive += 1;
                continue;
            }
            let Some(tag) = frame.tag else { return Ok(Some(Received { vnet, len, at })) };
            buffer.copy_within(TAG_AT..len, TAG_AT + TAG);
            buffer[TAG_AT..TAG_AT + TAG].copy_from_slice(&tag);
            return Ok(Some(Received { vnet: vnet.behind(TAG as u16), len: len + TAG, at }));
        }
        Ok(None)
    }

    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(true);
        }
        if parts.len() > PARTS {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a frame of at most six parts is needed",
            ));
        }
        let mut frame = [IoSlice::new(&[]); 1 + PARTS];
        frame[0] = IoSlice::new(vnet.as_bytes());
        frame[1..=parts.len()].copy_from_slice(parts);
        self.inner.offer(&frame[..=parts.len()])
    }

    fn drops(&mut self) -> io::Result<PortDrops> {
        self.inner.drops()
    }
}
