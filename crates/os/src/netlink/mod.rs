//! Interfaces, addresses and routes of the calling thread's network namespace (rtnetlink(7)). Every call
//! blocks until the kernel answers.

mod link;
mod lookup;
mod route;
mod rule;

pub use link::{Mac, VethPair};
pub use lookup::{Interface, RouteLookup};
pub use route::{Metrics, Route, RouteEntry};
pub use rule::MarkRule;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;

/// A failed rtnetlink request.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct Error {
    /// What failed, with the names involved.
    pub what: String,
    /// The kernel's error.
    #[source]
    pub source: io::Error,
}

impl Error {
    fn new(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self { what: what.into(), source: source.into() }
    }

    /// True if something of that name or address already exists.
    pub fn is_taken(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

/// An rtnetlink socket. It stays bound to the namespace in which it was opened, even if the thread moves.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// When the kernel refuses the socket.
    pub fn open() -> Result<Self, Error> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        open()
            .map(|socket| Self { socket, sequence: 0 })
            .map_err(|source: io::Error| Error::new("netlink cannot be opened", source))
    }

    /// Sends a request that only needs an acknowledgment; `failed` describes a failure.
    fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        failed: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        let told = self.exchange(message, NLM_F_REQUEST | NLM_F_ACK | flags, |_| ());
        told.map_err(|source| Error::new(failed(), source))
    }

    /// Requests the list of all `what`; returns what `pick` takes from the entries, in the kernel's order.
    fn list<T>(
        &mut self,
        what: &str,
        message: RouteNetlinkMessage,
        pick: impl Fn(RouteNetlinkMessage) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        self.exchange(message, NLM_F_REQUEST | NLM_F_DUMP, |entry| all.extend(pick(entry)))
            .map_err(|source| Error::new(format!("{what} cannot be listed"), source))?;
        Ok(all)
    }

    /// Sends a request and reads answers until the last one.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        mut each: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            if self.read(&answer, &mut each)? {
                return Ok(());
            }
        }
    }

    /// Reads one datagram of answers; returns true if it holds the last one.
    fn read(&self, mut answer: &[u8], each: &mut impl FnMut(RouteNetlinkMessage)) -> io::Result<bool> {
        const HEADER: usize = 16;
        while answer.len() >= HEADER {
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(answer)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            let length = (message.header.length as usize).next_multiple_of(4);
            if message.header.sequence_number == self.sequence {
                match message.payload {
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(true),
                    NetlinkPayload::InnerMessage(message) => each(message),
                    _ => {}
                }
            }
            answer = answer.get(length.max(HEADER)..).unwrap_or_default();
        }
        Ok(false)
    }
}
