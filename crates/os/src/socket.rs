//! Kernel sockets for a driver that handles many of them: no call blocks.
//!
//! A socket stays in the network namespace of the thread that created it: create it with
//! [`crate::namespace::in_network`] and use it anywhere.

use crate::sysctl;
use bentpipe_base::Size;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

/// Largest buffer of an ordinary user if the kernel's limit cannot be read (`SK_RMEM_MAX`).
const USUAL_MOST: usize = 212_992;
/// Length of the accept queue.
const BACKLOG: i32 = 128;

/// Creates a non-blocking TCP socket of the address family of `like`.
///
/// # Errors
/// When the kernel has no resources or does not support the protocol.
pub fn stream(like: &SocketAddr) -> io::Result<OwnedFd> {
    open(like, SocketType::STREAM)
}

/// Creates a non-blocking UDP socket of the address family of `like`.
///
/// # Errors
/// When the kernel has no resources or does not support the protocol.
pub fn datagrams(like: &SocketAddr) -> io::Result<OwnedFd> {
    open(like, SocketType::DGRAM)
}

fn open(like: &SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
    let family = if like.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

/// Binds a socket, even if an old connection there is in TIME-WAIT.
///
/// # Errors
/// When the address is in use or not of this namespace.
pub fn bind(socket: impl AsFd, at: &SocketAddr) -> io::Result<()> {
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(rustix::net::bind(socket, at)?)
}

/// Starts to listen for connections.
///
/// # Errors
/// When the address is in use.
pub fn listen(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::listen(socket, BACKLOG)?)
}

/// Accepts the next connection, non-blocking; `None` if none is waiting.
///
/// # Errors
/// When the kernel has no resources.
pub fn accept(socket: impl AsFd) -> io::Result<Option<OwnedFd>> {
    match rustix::net::accept_with(socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok(fd) => Ok(Some(fd)),
        // the peer may have closed before the accept
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Starts to connect; the socket becomes writable once connected.
///
/// # Errors
/// When there is no route to `to`.
pub fn connect(socket: impl AsFd, to: &SocketAddr) -> io::Result<()> {
    match rustix::net::connect(socket, to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Requests a receive buffer of `size`. Returns the actual size, which includes the kernel's overhead and is
/// twice the request.
///
/// # Errors
/// When it is not a socket.
pub fn set_receive_buffer(socket: impl AsFd, size: Size) -> io::Result<Size> {
    let bytes = usize::try_from(size.0).unwrap_or(usize::MAX);
    // only root may exceed the system's limit; others get the limit
    if sockopt::set_socket_recv_buffer_size_force(&socket, bytes).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    Ok(Size(sockopt::socket_recv_buffer_size(&socket)? as u64))
}

/// Sets a receive buffer of `size`, overhead included, if all of it is permitted; otherwise changes nothing
/// and returns false.
///
/// # Errors
/// When it is not a socket.
pub fn try_set_receive_buffer(socket: impl AsFd, size: Size) -> io::Result<bool> {
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
