//! TCP connections of a network namespace with their statistics, whichever program owns them (`sock_diag`,
//! linux/inet_diag.h).
//!
//! A netlink socket stays bound to the namespace it was opened in, even if its thread moves to another one.
//! To watch a namespace, open the socket there ([`crate::namespace::in_network`]) and keep it.

use crate::tcp::{State, TcpInfo};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer, NlasIterator,
};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with, sockopt,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const SOCK_DESTROY: u16 = 21;
/// Length of a netlink header, and of `struct inet_diag_msg`.
const HEADER: usize = 16;
const MESSAGE: usize = 72;
/// Where `struct inet_diag_sockid` begins in a message, and its length: ports, addresses, interface, cookie.
const SOCKET_ID: usize = 4;
const SOCKET_ID_LEN: usize = 48;
/// Attributes: TCP_INFO and the congestion control's name.
const ATTR_INFO: u16 = 2;
const ATTR_CONGESTION: u16 = 4;
/// All states except LISTEN (10) and TIME-WAIT (6), which have no statistics.
const STATES: u32 = 0xfff & !(1 << 10) & !(1 << 6);
/// Multicast groups `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY` (linux/sock_diag.h).
const ENDINGS: u32 = 1 << 0 | 1 << 2;
/// How long to wait for an answer. The kernel answers at once.
const PATIENCE: time::Duration = time::Duration::from_secs(2);
/// Buffer for one part of an answer; the kernel fills at most 32 KiB at a time.
const PIECE: usize = 1 << 16;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub peer: SocketAddr,
    /// TCP state.
    pub state: State,
    /// Name of the congestion control.
    pub congestion: String,
    /// TCP_INFO; `None` while a peer is opening the connection.
    pub info: Option<TcpInfo>,
    /// What the kernel knows the socket by: `struct inet_diag_sockid`.
    pub id: [u8; SOCKET_ID_LEN],
}

/// A sock_diag socket.
#[derive(Debug)]
pub struct Diag {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Diag {
    /// Opens a socket for the network namespace of the calling thread.
    ///
    /// # Errors
    /// On kernels without sock_diag.
    pub fn open() -> io::Result<Self> {
        let socket = open(SocketFlags::CLOEXEC)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; PIECE] })
    }

    /// Returns all TCP connections, IPv4 and IPv6, in the kernel's order, without sockets in LISTEN or
    /// TIME-WAIT.
    ///
    /// # Errors
    /// When the kernel refuses or does not answer.
    pub fn connections(&mut self) -> io::Result<Vec<Connection>> {
        let mut all = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            self.dump(family as u8, &mut all)?;
        }
        Ok(all)
    }

    /// Resets a connection, as if its program had aborted it; one that is gone is no error. It needs
    /// CAP_NET_ADMIN.
    ///
    /// # Errors
    /// When the kernel refuses, or was built without `CONFIG_INET_DIAG_DESTROY`.
    pub fn reset(&mut self, connection: &Connection) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let family = if connection.local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u8;
        let mut bytes = message(SOCK_DESTROY, NLM_F_REQUEST | NLM_F_ACK, family, self.sequence);
        bytes.truncate(HEADER + 8);
        bytes.extend(connection.id);
        send(&self.socket, &bytes, SendFlags::empty())?;
        let (len, _) =
            rustix::io::retry_on_intr(|| recv(&self.socket, self.buffer.as_mut_slice(), RecvFlags::empty()))?;
        match pieces(&self.buffer[..len], self.sequence, &mut Vec::new()) {
            Err(error) if !matches!(error.raw_os_error(), Some(0 | libc::ENOENT)) => Err(error),
            _ => Ok(()),
        }
    }

    fn dump(&mut self, family: u8, all: &mut Vec<Connection>) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.socket, &request(family, self.sequence), SendFlags::empty())?;
        loop {
            let (len, _) = rustix::io::retry_on_intr(|| {
                recv(&self.socket, self.buffer.as_mut_slice(), RecvFlags::empty())
            })?;
            if pieces(&self.buffer[..len], self.sequence, all)? {
                return Ok(());
            }
        }
    }
}

/// Receives the last statistics of TCP connections that close in a network namespace.
///
/// It reports connections that open and close between two dumps of [`Diag`], and what a connection did after
/// the last dump.
#[derive(Debug)]
pub struct ClosedConnections {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl ClosedConnections {
    /// Opens a socket in the calling thread's network namespace; reports connections closed from now on.
    ///
    /// # Errors
    /// On kernels without sock_diag.
    pub fn open() -> io::Result<Self> {
        let socket = open(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        rustix::net::bind(&socket, &netlink::SocketAddrNetlink::new(0, ENDINGS))?;
        Ok(Self { socket, buffer: vec![0; PIECE] })
    }

    /// Returns the connections that have closed since the last call, without the names of their congestion
    /// controls. Some are missing if too many closed at once.
    ///
    /// # Errors
    /// When the kernel's messages cannot be parsed.
    pub fn take(&mut self) -> io::Result<Vec<Connection>> {
        let mut all = Vec::new();
        loop {
            let got = recv(&self.socket, self.buffer.as_mut_slice(), RecvFlags::empty());
            match got {
                Ok((len, _)) => pieces(&self.buffer[..len], 0, &mut all).map(drop)?,
                Err(Errno::INTR | Errno::NOBUFS) => {}
                Err(Errno::AGAIN) => return Ok(all),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn open(flags: SocketFlags) -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))
}

/// A request for all connections of a family.
fn request(family: u8, sequence: u32) -> Vec<u8> {
    message(SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, family, sequence)
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`, for any socket.
fn message(kind: u16, flags: u16, family: u8, sequence: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + 56);
    bytes.extend((HEADER as u32 + 56).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    let wanted = 1 << (ATTR_INFO - 1) | 1 << (ATTR_CONGESTION - 1);
    bytes.extend([family, libc::IPPROTO_TCP as u8, wanted, 0]);
    bytes.extend(STATES.to_ne_bytes());
    bytes.resize(HEADER + 56, 0);
    bytes
}

/// Reads the messages of one datagram; returns true after the last one.
fn pieces(mut bytes: &[u8], sequence: u32, all: &mut Vec<Connection>) -> io::Result<bool> {
    while !bytes.is_empty() {
        let message = NetlinkBuffer::new_checked(bytes).map_err(|_| broken())?;
        if message.sequence_number() == sequence {
            match message.message_type() {
                NLMSG_DONE => return Ok(true),
                NLMSG_ERROR => {
                    let code = message.payload().first_chunk::<4>().ok_or_else(broken)?;
                    return Err(io::Error::from_raw_os_error(i32::from_ne_bytes(*code).wrapping_neg()));
                }
                SOCK_DIAG_BY_FAMILY => all.extend(connection(message.payload())),
                _ => {}
            }
        }
        bytes = bytes.get((message.length() as usize).next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(false)
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "sock_diag: an answer that ends in the middle")
}

/// One `struct inet_diag_msg` with its attributes.
fn connection(body: &[u8]) -> Option<Connection> {
    let attributes = NlasIterator::new(body.get(MESSAGE..)?);
    let address = |at: usize| -> Option<IpAddr> {
        Some(if body[0] == libc::AF_INET as u8 {
            Ipv4Addr::from(<[u8; 4]>::try_from(body.get(at..at + 4)?).ok()?).into()
        } else {
            Ipv6Addr::from(<[u8; 16]>::try_from(body.get(at..at + 16)?).ok()?).into()
        })
    };
    let port = |at: usize| Some(u16::from_be_bytes([*body.get(at)?, *body.get(at + 1)?]));
    let mut found = Connection {
        local: SocketAddr::new(address(8)?, port(4)?),
        peer: SocketAddr::new(address(24)?, port(6)?),
        state: State::of(body[1]),
        congestion: String::new(),
        info: None,
        id: *body.get(SOCKET_ID..)?.first_chunk()?,
    };
    for attribute in attributes.map_while(Result::ok) {
        match attribute.kind() {
            ATTR_INFO => found.info = TcpInfo::parse(attribute.value()),
            ATTR_CONGESTION => {
                let name = attribute.value().split(|b| *b == 0).next().unwrap_or_default();
                found.congestion = String::from_utf8_lossy(name).into_owned();
            }
            _ => {}
        }
    }
    Some(found)
}
