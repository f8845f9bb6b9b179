//! System calls for packet sockets that rustix does not have: options of packet(7), binding to an interface,
//! receiving with a timestamp.

#![allow(unsafe_code, reason = "libc calls with pointers; each block says why it is sound")]

use crate::options::{checked, get, set};
use rustix::net::RecvFlags;
use std::ffi::c_int;
use std::io::{Error, IoSliceMut, Result};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Frames lost at this socket since the last call; the kernel resets the counter on reading.
pub(super) fn lost(fd: BorrowedFd<'_>) -> Result<u64> {
    // struct tpacket_stats: all frames, and those dropped
    let mut stats = [0; 8];
    get(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
    let [.., a, b, c, d] = stats;
    Ok(u64::from(u32::from_ne_bytes([a, b, c, d])))
}

/// Binds to one interface and all protocols; starts the reception of frames.
pub(super) fn bind(fd: BorrowedFd<'_>, interface: u32) -> Result<()> {
    // SAFETY: integers and bytes; all zeros is valid.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface as c_int;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` lives during the call and `len` is its size.
    checked(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) })
}

pub(super) struct Frame {
    /// Length of the frame, even if it was truncated.
    pub len: usize,
    /// `CLOCK_REALTIME` in nanoseconds when the kernel received it.
    pub stamp: Option<u64>,
    /// VLAN tag that the kernel removed from the frame, if PACKET_AUXDATA is enabled.
    pub tag: Option<[u8; 4]>,
}

/// Room for one timestamp, one PACKET_AUXDATA and one further option that the kernel might add.
#[repr(C, align(8))]
struct Control([u8; 128]);

/// Reads a frame into `parts`, filling them in order.
pub(super) fn receive(fd: BorrowedFd<'_>, parts: &mut [IoSliceMut<'_>]) -> Result<Frame> {
    let mut control = Control([0; 128]);
    // SAFETY: pointers and integers; all zeros is valid: no address, no buffers, no control data.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = parts.as_mut_ptr().cast();
    message.msg_iovlen = parts.len() as _;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    // with MSG_TRUNC the result is the length of the whole frame
    let flags = (RecvFlags::TRUNC | RecvFlags::DONTWAIT).bits() as c_int;
    // SAFETY: `IoSliceMut` is `iovec` by its contract; buffers, control data and `message` outlive the call,
    // each with its size.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags) };
    let Ok(len) = usize::try_from(len) else { return Err(Error::last_os_error()) };
    let (stamp, tag) = control_data(&message);
    Ok(Frame { len, stamp, tag })
}

/// Enables promiscuous mode (packet(7), PACKET_ADD_MEMBERSHIP); it ends when the socket is closed.
pub(super) fn listen_to_all(fd: BorrowedFd<'_>, interface: u32) -> Result<()> {
    // SAFETY: integers and bytes; all zeros is valid.
    let mut membership: libc::packet_mreq = unsafe { zeroed() };
    membership.mr_ifindex = interface as c_int;
    membership.mr_type = libc::PACKET_MR_PROMISC as _;
    set(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// Timestamp and VLAN tag from the control data of a received message.
fn control_data(message: &libc::msghdr) -> (Option<u64>, Option<[u8; 4]>) {
    let (mut stamp, mut tag) = (None, None);
    // SAFETY: `message` was filled in by the kernel; its control buffer is aligned, initialised and still
    // alive.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !at.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return headers that lie wholly within the control buffer, or
        // null.
        let header = unsafe { *at };
        let room = (header.cmsg_len as usize).saturating_sub(size_of::<libc::cmsghdr>());
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if room >= size_of::<libc::timespec>() => {
                // SAFETY: the header says that a whole timespec follows; it may be unaligned.
                stamp = nanoseconds(unsafe { libc::CMSG_DATA(at).cast::<libc::timespec>().read_unaligned() });
            }
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) if room >= size_of::<libc::tpacket_auxdata>() => {
                // SAFETY: the header says that a whole tpacket_auxdata follows; it may be unaligned.
                tag = vlan(&unsafe { libc::CMSG_DATA(at).cast::<libc::tpacket_auxdata>().read_unaligned() });
            }
            _ => {}
        }
        // SAFETY: `at` is a header within the control buffer of `message`.
        at = unsafe { libc::CMSG_NXTHDR(message, at) };
    }
    (stamp, tag)
}

fn nanoseconds(time: libc::timespec) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(time.tv_nsec as u64)
}

/// The VLAN tag as it was in the frame.
fn vlan(data: &libc::tpacket_auxdata) -> Option<[u8; 4]> {
    const VALID: u32 = 1 << 4; // TP_STATUS_VLAN_VALID
    const HAS_TYPE: u32 = 1 << 6; // TP_STATUS_VLAN_TPID_VALID
    let kind = if data.tp_status & HAS_TYPE != 0 { data.tp_vlan_tpid } else { 0x8100 };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), data.tp_vlan_tci.to_be_bytes());
    (data.tp_status & VALID != 0).then_some([a, b, c, d])
}
