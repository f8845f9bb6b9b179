//! The engine as a real TCP: connections that carry real bytes in real packets, with any peer.
//!
//! An [`Endpoint`] is a host's TCP without I/O and without a clock. Its driver
//! * hands in packets ([`Endpoint::packet`]) and the time ([`Endpoint::timer`]),
//! * sends its packets ([`Endpoint::next_packet`] or [`Endpoint::next_super`], until there are no more),
//! * and calls it again at [`Endpoint::next_at`].
//!
//! It runs at a port of a [`bentpipe_sim::Simulation`], under simulated or real time, or alone behind a
//! [`bentpipe_os::PacketPort`] ([`EndpointDriver`]). Time and randomness come in through `Cx`. An endpoint
//! needs a `World` of its own if the other nodes' packets are opaque (not TCP): the packet pool is shared.
//!
//! Applications call [`Endpoint::listen`], [`Endpoint::connect`], [`Endpoint::write`] and so on, and poll
//! [`Endpoint::next_event`]. After each of these calls the driver sends the packets that are ready.
//!
//! Memory is bounded whatever a peer does: streams by their buffers; gaps in a stream, replies to packets of
//! no connection, half-open connections, TIME-WAIT and connections by number. Once the application has closed
//! a connection, every state that only a silent peer could end has a time limit. ICMP is obeyed if it quotes
//! a segment in flight: segments follow the path MTU, and a hard error ends a connection attempt. Initial
//! sequence numbers are random (RFC 6528 requires that they cannot be guessed: a live driver seeds its world
//! from the system).

mod app;
mod bundle;
mod endpoint_driver;
mod host_endpoint;
mod icmp;
mod input;
mod neighbour_port;
mod offers;
mod output;
mod ring;
mod signal;
mod socket;
mod table;

pub use endpoint_driver::EndpointDriver;
pub use host_endpoint::{HostEndpoint, HostEndpointError};
pub use neighbour_port::NeighbourPort;
pub use offers::HeldOffer;
pub use table::ConnId;

use bentpipe_base::{Cx, Duration, Instant, IpVersion, Pkt, Purpose, RngSlot, Seq, Size, World};
use bentpipe_nodes::Peers;
use bentpipe_tcp::{Config, Connection, Encoding, RandomValues};
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use table::Table;

/// Settings of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its own addresses. It ignores packets to others.
    pub addresses: Vec<IpAddr>,
    /// It takes every address as its own, in the place of `addresses`: for a proxy that speaks for others.
    pub transparent: bool,
    /// Its only port, where it shares its addresses with the kernel's TCP: it ignores packets to all others.
    pub port: Option<u16>,
    /// Its only ports, for an application that names the port of each connection; all if there is none.
    pub ports: BTreeSet<u16>,
    /// MTU of its network, in bytes; the MSS is this minus the headers.
    pub mtu: u16,
    /// Send buffer (bytes written and not acknowledged) where a connection's configuration sets none.
    pub send_buffer: Size,
    /// Maximum number of connections, in all states.
    pub max_connections: usize,
    /// Maximum number of connections in TIME-WAIT; beyond it, connections end at once.
    pub max_time_wait: usize,
    /// Time limit for the handshake, in both directions.
    pub open_timeout: Duration,
    /// Time limit in FIN-WAIT-2 after the application has closed (RFC 9293 sets none, Linux has 60 s).
    pub fin_wait: Duration,
    /// Time limit without progress for data written before the application closed the connection.
    pub linger: Duration,
}

impl Default for Settings {
    /// Ethernet's MTU, buffers of 4 MiB, times as in Linux.
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            transparent: false,
            port: None,
            ports: BTreeSet::new(),
            mtu: 1500,
            send_buffer: Size(4 << 20),
            max_connections: 16_384,
            max_time_wait: 4096,
            open_timeout: Duration::from_secs(130),
            fin_wait: Duration::from_secs(60),
            linger: Duration::from_secs(120),
        }
    }
}

impl Settings {
    /// True if packets to this port are the endpoint's.
    fn has_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port) && (self.ports.is_empty() || self.ports.contains(&port))
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// Both sides sent a FIN, and all data arrived.
    #[error("closed by both sides")]
    Closed,
    /// The peer refused the connection.
    #[error("the peer refused the connection: nothing listens at that port")]
    Refused,
    /// The peer reset it.
    #[error("the peer reset the connection")]
    Reset,
    /// The peer stopped answering.
    #[error("the peer did not answer any more")]
    TimedOut,
    /// We aborted it.
    #[error("aborted on this side")]
    Aborted,
    /// The peer did not answer, and an ICMP error said why.
    #[error("the peer cannot be reached: a router on the way, or the peer's host, says so")]
    Unreachable,
}

/// Why an application's call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No connection has this id.
    #[error("no such connection: it was closed or aborted on this side")]
    Unknown,
    /// Nothing to read, or no room to write: [`SocketEvent`] will announce it.
    #[error("it would block: wait until it is readable or writable")]
    WouldBlock,
    /// Write after `shutdown`.
    #[error("nothing can be written after `shutdown`")]
    Shut,
    /// The connection has ended.
    #[error("{0}")]
    Ended(Ending),
    /// The endpoint has no address of that family.
    #[error("the endpoint has no address of the same family as {0}: give it one in its settings")]
    NoAddress(SocketAddr),
    /// Not the address of a host and port.
    #[error("{0} is not the address of a host with a port")]
    BadAddress(SocketAddr),
    /// No free local port towards that address.
    #[error("no free local port towards {0}: close a connection first")]
    NoPort(SocketAddr),
    /// A listener exists at that port.
    #[error("port {0} already has a listener")]
    Listening(u16),
    /// The endpoint has its maximum of connections.
    #[error("{0} connections are open, the most that the settings allow")]
    TooMany(usize),
}

/// Packet counters, with the causes of discarded packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets received.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Not IP, truncated, a fragment, or with invalid headers.
    pub malformed: u64,
    /// Not TCP.
    pub not_tcp: u64,
    /// Wrong checksum.
    pub bad_checksum: u64,
    /// Not to our address, or from an invalid address.
    pub not_ours: u64,
    /// To no connection and no listener: answered with a RST unless too many replies are queued.
    pub refused: u64,
    /// Handshakes ignored or dropped because the backlog or the endpoint was full.
    pub overflowed: u64,
}

/// An event for the application of a connection. Unread events are read in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SocketEvent {
    /// Our connection is open.
    Connected,
    /// A connection can be accepted; reported for each, in the order of [`Endpoint::accept`].
    Calling,
    /// Data can be read, after a read found none.
    Readable,
    /// Data can be written, after a write found too little room.
    Writable,
    /// The peer has sent its FIN; data before it may still be unread.
    PeerClosed,
    /// All written data and our FIN are acknowledged.
    Delivered,
    /// The connection has ended: [`Endpoint::ending`] says how. Data that arrived can still be read.
    Ended,
}

/// Connections with unread events, in FIFO order.
#[derive(Debug, Default)]
struct EventQueue(VecDeque<ConnId>);

impl EventQueue {
    /// Adds `event` for `id`, whose unread events are `unread`. One that is already there is not repeated.
    fn tell(&mut self, id: ConnId, unread: &mut BTreeSet<SocketEvent>, event: SocketEvent) {
        if unread.is_empty() {
            self.0.push_back(id);
        }
        unread.insert(event);
    }
}

#[derive(Debug)]
struct Listener {
    v4: Arc<Config>,
    v6: Arc<Config>,
    backlog: usize,
    /// Connections not yet accepted, half-open ones included.
    waiting: usize,
    /// Open connections to accept, in the order in which they opened.
    accept_queue: VecDeque<ConnId>,
    /// Connections in the order of their SYNs; some are no longer half-open.
    syn_queue: VecDeque<ConnId>,
}

/// A host's TCP.
#[derive(Debug)]
pub struct Endpoint {
    settings: Settings,
    chance: RngSlot,
    table: Table,
    listeners: BTreeMap<u16, Listener>,
    /// Connections that may have something to send; each at most once.
    ready: VecDeque<ConnId>,
    /// A segment that did not fit into the previous super-packet; sent next.
    held: Option<(ConnId, Pkt)>,
    /// Replies to packets of no connection.
    replies: VecDeque<Vec<u8>>,
    inbox: EventQueue,
    in_time_wait: usize,
    /// Peers that SYNs with a request for a rate do not reach.
    peers: Peers<IpAddr>,
    counters: Counters,
    /// Buffer to make a payload contiguous that wraps around the end of its ring.
    scratch: Vec<u8>,
}

impl Endpoint {
    /// Creates an endpoint that draws sequence numbers and ports from the random stream `name` of `world`.
    pub fn new(world: &mut World, name: &str, settings: Settings) -> Self {
        Self {
            settings,
            chance: world.open_rng(name, Purpose::Isn),
            table: Table::default(),
            listeners: BTreeMap::new(),
            ready: VecDeque::new(),
            held: None,
            replies: VecDeque::new(),
            inbox: EventQueue::default(),
            in_time_wait: 0,
            peers: Peers::default(),
            counters: Counters::default(),
            scratch: Vec::new(),
        }
    }

    /// Its packet counters.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of connections, in any state.
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// The engine's connection: state, negotiated options, counters.
    pub fn connection(&self, id: ConnId) -> Option<&Connection> {
        self.table.get(id).map(|s| &s.conn)
    }

    /// Our address and the peer's.
    pub fn addresses(&self, id: ConnId) -> Option<(SocketAddr, SocketAddr)> {
        self.table.get(id).map(|s| (s.pair.local(), s.pair.remote()))
    }

    /// How a connection ended; `None` while it is alive.
    pub fn ending(&self, id: ConnId) -> Option<Ending> {
        self.table.get(id).and_then(|s| s.ending)
    }

    /// Bytes of memory used by the buffers of a connection.
    pub fn memory(&self, id: ConnId) -> Option<usize> {
        self.table.get(id).map(socket::Socket::memory)
    }

    /// When [`Endpoint::timer`] must be called next; [`Instant::NEVER`] if no timer is set.
    pub fn next_at(&self) -> Instant {
        self.table.next_at()
    }

    /// True if [`Endpoint::next_packet`] may have a packet.
    pub fn wants_to_send(&self) -> bool {
        !self.ready.is_empty() || self.held.is_some() || !self.replies.is_empty()
    }

    /// Returns the next event for an application. Each is reported once until it happens again.
    pub fn next_event(&mut self) -> Option<(ConnId, SocketEvent)> {
        while let Some(id) = self.inbox.0.front().copied() {
            if let Some(event) = self.table.get_mut(id).and_then(|s| s.unread.pop_first()) {
                return Some((id, event));
            }
            self.inbox.0.pop_front();
        }
        None
    }

    fn chance(&self, cx: &mut Cx<'_>) -> RandomValues {
        let bits = cx.rng(self.chance).bits();
        RandomValues { isn: Seq(bits as u32), timestamp: (bits >> 32) as u32, jitter: None }
    }

    /// Gives a new connection the random bits that a request by Quick-Start needs.
    fn keep_secret(&self, cx: &mut Cx<'_>, conn: &mut Connection) {
        let encoding = conn.config().signalling.as_ref().map(|signalling| signalling.ask.encoding);
        if encoding == Some(Encoding::QuickStart) {
            conn.set_secret(cx.rng(self.chance).bits());
        }
    }

    /// Queues a connection that may have something to send.
    fn mark(&mut self, id: ConnId) {
        if let Some(socket) = self.table.get_mut(id)
            && !socket.ready
            && !socket.over
        {
            socket.ready = true;
            self.ready.push_back(id);
        }
    }
}

/// Returns the configuration for one address family: IP version, MSS from the MTU, a bounded send buffer,
/// and no sender jitter, which is for simulations only.
fn fitted(config: &Config, settings: &Settings, v6: bool) -> Arc<Config> {
    let headers = if v6 { 60 } else { 40 };
    Arc::new(Config {
        mss: config.mss.min(settings.mtu.saturating_sub(headers)).max(1),
        send_buffer: config.send_buffer.or(Some(settings.send_buffer)),
        jitter: None,
        ip: if v6 { IpVersion::V6 } else { IpVersion::V4 },
        ..config.clone()
    })
}
