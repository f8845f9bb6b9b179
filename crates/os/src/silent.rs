//! Reserves a TCP port of the kernel without the kernel answering on it, for a user-space TCP at one of the
//! kernel's own addresses.
//!
//! Without this the kernel's TCP does not know the connection and answers each packet of the peer with a RST.
//! A listening socket reserves the port, and a filter on this socket accepts nothing: the kernel finds the
//! socket, runs the filter and drops the packet silently (packet sockets have seen it before). This needs no
//! permission, nobody else can take the port, and nothing is left when the process ends, however it ends.

use crate::options::set;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::OwnedFd;

/// A reserved port, until it is dropped.
#[derive(Debug)]
pub struct SilentPort {
    /// Held open; never receives anything.
    _socket: OwnedFd,
    address: SocketAddr,
}

impl SilentPort {
    /// Reserves the port of `at` in the calling thread's network namespace; port 0 means any free port. Only
    /// root may take a port below 1024.
    ///
    /// # Errors
    /// When the port is in use, the address is not of this namespace, or an ordinary user asks for a port
    /// below 1024.
    pub fn take(at: SocketAddr) -> io::Result<Self> {
        let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        if at.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::bind(&socket, &at)?;
        // before listening, so that no connection is accepted
        let_nothing_in(&socket)?;
        rustix::net::listen(&socket, 1)?;
        let address = rustix::net::getsockname(&socket)?;
        let v4 = SocketAddrV4::try_from(address.clone()).map(SocketAddr::V4);
        let address = v4.or_else(|_| SocketAddrV6::try_from(address).map(SocketAddr::V6))?;
        Ok(Self { _socket: socket, address })
    }

    /// Address and port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Attaches a filter (Documentation/networking/filter.rst) of one instruction: accept zero bytes.
fn let_nothing_in(socket: &OwnedFd) -> io::Result<()> {
    let mut nothing = [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 }];
    let program = libc::sock_fprog { len: 1, filter: nothing.as_mut_ptr() };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    #[test]
    fn a_silent_port_is_taken_and_never_answers() {
        let port = SilentPort::take("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_ne!(port.address().port(), 0);
        assert_eq!(TcpListener::bind(port.address()).unwrap_err().kind(), ErrorKind::AddrInUse);
        // neither a SYN/ACK nor a RST
        let called = TcpStream::connect_timeout(&port.address(), Duration::from_millis(300));
        assert_eq!(called.unwrap_err().kind(), ErrorKind::TimedOut);
        let at = port.address();
        drop(port);
        assert_eq!(TcpStream::connect(at).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_port_that_is_taken_cannot_be_silenced() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let refused = SilentPort::take(taken.local_addr().unwrap()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
    }
}
