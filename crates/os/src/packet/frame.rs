//! A port for bridging: whole frames for any destination, with their Ethernet header and VLAN tags.
//!
//! Here a packet begins at the Ethernet header, not at the IP header as in other [`PacketPort`]s, and the
//! offsets in the virtio header count from there. Frames that are not IP are passed too. The kernel removes
//! the VLAN tag before a packet socket sees the frame and reports it separately (PACKET_AUXDATA, packet(7));
//! this port puts it back.

use super::{ETHERNET, VethPort, index_of, sys};
use crate::options::set;
use crate::port::{PARTS, PacketPort, PortDrops, PortError, Received, SKIP, invalid};
use bentpipe_wire::offload::VnetHeader;
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
        let fd = inner.socket.as_fd();
        set(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1)
            .map_err(PortError::kernel("asking for PACKET_AUXDATA"))?;
        sys::listen_to_all(fd, index_of(&inner.socket, name)?)
            .map_err(PortError::kernel("asking for the frames of other hosts"))?;
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
            let Some((frame, at)) = port.read(&mut parts)? else { return Ok(None) };
            let len = frame.len.saturating_sub(size_of::<VnetHeader>());
            if len < ETHERNET || len + TAG > buffer.len() {
                port.drops.receive += 1;
                continue;
            }
            let Some(tag) = frame.tag else { return Ok(Some(Received { vnet, len, at })) };
            buffer.copy_within(TAG_AT..len, TAG_AT + TAG);
            buffer[TAG_AT..TAG_AT + TAG].copy_from_slice(&tag);
            return Ok(Some(Received { vnet: vnet.with_prefix(TAG as u16), len: len + TAG, at }));
        }
        Ok(None)
    }

    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(true);
        }
        if parts.len() > PARTS {
            return Err(invalid("a frame of at most six parts is needed"));
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
