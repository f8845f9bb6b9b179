//! Sockets of the kernel for a driver that has many of them: none of these calls ever waits.
//!
//! A socket belongs for ever to the network namespace of the thread that made it: make it in
//! [`crate::namespace::in_network`] and use it anywhere.

use crate::sysctl;
use bentpipe_base::Size;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

/// What an ordinary user may ask for where the kernel does not say (`SK_RMEM_MAX`).
const USUAL_MOST: usize = 212_992;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// A TCP socket for addresses like `like`, which does not block.
///
/// # Errors
/// When the kernel has no room or no such protocol.
pub fn stream(like: &SocketAddr) -> io::Result<OwnedFd> {
    open(like, SocketType::STREAM)
}

/// A UDP socket for addresses like `like`, which does not block.
///
/// # Errors
/// When the kernel has no room or no such protocol.
pub fn datagrams(like: &SocketAddr) -> io::Result<OwnedFd> {
    open(like, SocketType::DGRAM)
}

fn open(like: &SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
    let family = if like.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

/// Gives a socket its address, also when a connection that is over still lingers there.
///
/// # Errors
/// When the address is taken or not of this namespace.
pub fn bind(socket: impl AsFd, at: &SocketAddr) -> io::Result<()> {
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(rustix::net::bind(socket, at)?)
}

/// Waits for connections.
///
/// # Errors
/// When the address is taken.
pub fn listen(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::listen(socket, BACKLOG)?)
}

/// The next connection, which does not block; `None` when none waits.
///
/// # Errors
/// When the kernel has no room.
pub fn accept(socket: impl AsFd) -> io::Result<Option<OwnedFd>> {
    match rustix::net::accept_with(socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok(fd) => Ok(Some(fd)),
        // the peer may be gone again before we look
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Begins to connect; the socket can be written when it has.
///
/// # Errors
/// When there is no way to `to`.
pub fn connect(socket: impl AsFd, to: &SocketAddr) -> io::Result<()> {
    match rustix::net::connect(socket, to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Asks for a receive buffer of `size`; returns what the kernel gave, which holds its bookkeeping too and is
/// twice what was asked.
///
/// # Errors
/// When it is not a socket.
pub fn set_receive_buffer(socket: impl AsFd, size: Size) -> io::Result<Size> {
    let bytes = usize::try_from(size.0).unwrap_or(usize::MAX);
    // beyond the system's limit only root may ask; for others the limit is what they get
    if sockopt::set_socket_recv_buffer_size_force(&socket, bytes).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    Ok(Size(sockopt::socket_recv_buffer_size(&socket)? as u64))
}

/// Gives a socket a receive buffer of `size`, bookkeeping included, if it may have all of it; false when it
/// may not, and then nothing is changed.
///
/// # Errors
/// When it is not a socket.
pub fn cut_receive_buffer(socket: impl AsFd, size: Size) -> io::Result<bool> {
    // the kernel doubles what is asked for
    let bytes = usize::try_from(size.0 / 2).unwrap_or(usize::MAX);
    if sockopt::set_socket_recv_buffer_size_force(&socket, bytes).is_ok() {
        return Ok(true);
    }
    let most = sysctl::read("net/core/rmem_max").ok().and_then(|text| text.parse().ok());
    if bytes > most.unwrap_or(USUAL_MOST) {
        return Ok(false);
    }
    sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    Ok(true)
}

/// Asks for a send buffer of `size`; returns what the kernel gave, as [`set_receive_buffer`].
///
/// # Errors
/// When it is not a socket.
pub fn set_send_buffer(socket: impl AsFd, size: Size) -> io::Result<Size> {
    let bytes = usize::try_from(size.0).unwrap_or(usize::MAX);
    if sockopt::set_socket_send_buffer_size_force(&socket, bytes).is_err() {
        sockopt::set_socket_send_buffer_size(&socket, bytes)?;
    }
    Ok(Size(sockopt::socket_send_buffer_size(&socket)? as u64))
}
