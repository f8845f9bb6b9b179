//! The engine as a real TCP: connections whose bytes are real, in packets as they stand on a wire, against
//! any peer.
//!
//! An [`Endpoint`] is a host's TCP without I/O and without a clock. Who drives it
//! * hands in what arrives ([`Endpoint::packet`]) and the time ([`Endpoint::timer`]),
//! * sends what it gives ([`Endpoint::next_packet`] or [`Endpoint::next_super`], until there is nothing
//!   more),
//! * and calls again at [`Endpoint::next_at`].
//!
//! Whoever does that decides where it lives: at a port of a [`bentpipe_sim::Simulation`] under simulated or
//! real time, or alone behind a [`bentpipe_os::PacketPort`] ([`Station`]). Time and chance come in through
//! `Cx`. Its packets are the engine's own, so a world whose pool also gets packets that stand for something
//! (opaque ones) is not lent to it: it has a world of its own.
//!
//! Applications use [`Endpoint::listen`], [`Endpoint::connect`], [`Endpoint::accept`], [`Endpoint::write`],
//! [`Endpoint::read`], [`Endpoint::shutdown`], [`Endpoint::close`], [`Endpoint::abort`], and ask
//! [`Endpoint::news`]. After any of them the driver sends what there is to send.
//!
//! Memory is bounded whatever a peer does: streams by their buffers, gaps in a stream, answers to strangers,
//! half-open connections, TIME-WAIT and connections by number. Every state that only a silent peer could end
//! has a limit in time once nobody holds the connection. ICMP is read as far as it quotes a segment in
//! flight: segments follow the path's MTU, and a call that a router calls hopeless ends. Initial sequence
//! numbers are random (RFC 6528 asks that they cannot be guessed: a live driver seeds its world from the
//! system).

mod app;
mod bundle;
mod guest;
mod icmp;
mod input;
mod news;
mod output;
mod ring;
mod socket;
mod station;
mod table;
mod ways;

pub use guest::{Guest, GuestError};
pub use news::News;
pub use station::Station;
pub use table::ConnId;
pub use ways::LedPort;

use bentpipe_base::{Cx, Duration, Instant, Pkt, Purpose, RngSlot, Seq, Size, World};
use bentpipe_tcp::{Chance, Config, Connection};
use core::net::{IpAddr, SocketAddr};
use news::Inbox;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use table::Table;

/// What an endpoint is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its own addresses. Packets to others are not for it.
    pub addresses: Vec<IpAddr>,
    /// The only port that is its own, where it shares its addresses with others (the kernel's TCP): packets
    /// to all others are not for it, and not answered.
    pub port: Option<u16>,
    /// Longest packet of the network it is on, in bytes: what the headers leave is the largest MSS.
    pub mtu: u16,
    /// Bytes written and not acknowledged, where a connection's configuration sets no bound: an endpoint
    /// keeps them, so there is one.
    pub send_buffer: Size,
    /// Connections at most, all states counted.
    pub max_connections: usize,
    /// Connections in TIME-WAIT at most; one more than that ends at once.
    pub max_time_wait: usize,
    /// Time to open a connection, ours or a caller's.
    pub open_timeout: Duration,
    /// Time in FIN-WAIT-2 once nobody holds the connection (RFC 9293 sets none, Linux has 60 s).
    pub fin_wait: Duration,
    /// Time without progress for what was written before the application let go.
    pub linger: Duration,
}

impl Default for Settings {
    /// Ethernet, buffers of 4 MiB, times as Linux has them.
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            port: None,
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

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// Both sides said their last byte, and all of it arrived.
    #[error("closed by both sides")]
    Closed,
    /// The peer refused to open it.
    #[error("the peer refused the connection: nothing listens at that port")]
    Refused,
    /// The peer broke it off.
    #[error("the peer reset the connection")]
    Reset,
    /// The peer did not answer any more.
    #[error("the peer did not answer any more")]
    TimedOut,
    /// We broke it off.
    #[error("broken off on this side")]
    Aborted,
    /// It did not answer, and a router or the peer's host said why.
    #[error("the peer cannot be reached: a router on the way, or the peer's host, says so")]
    Unreachable,
}

/// Why a verb of an application did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The name finds nothing.
    #[error("no such connection: it was closed or aborted on this side")]
    Unknown,
    /// Nothing to read, no room to write: news will say when.
    #[error("not now: wait for the news that it is readable or writable")]
    NotNow,
    /// Written after `shutdown`.
    #[error("nothing can be written after `shutdown`")]
    Shut,
    /// It is over.
    #[error("{0}")]
    Ended(Ending),
    /// The endpoint has no address of that family.
    #[error("the endpoint has no own address of the family of {0}: give it one in its settings")]
    NoAddress(SocketAddr),
    /// Nobody can be reached there.
    #[error("{0} is no address of a host and a port")]
    BadAddress(SocketAddr),
    /// The connection's own port is in use towards that address.
    #[error("no free port of our own towards {0}: close a connection first")]
    NoPort(SocketAddr),
    /// Somebody listens there already.
    #[error("something listens at port {0} already")]
    Listening(u16),
    /// The endpoint is full.
    #[error("{0} connections are open, the most that the settings allow")]
    TooMany(usize),
}

/// What came in and was of no use, and how much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came in.
    pub received: u64,
    /// Packets given out.
    pub sent: u64,
    /// Not IP, cut short, a fragment, or with impossible headers.
    pub malformed: u64,
    /// Another protocol than TCP.
    pub not_tcp: u64,
    /// A checksum that does not hold.
    pub bad_checksum: u64,
    /// To an address that is not ours, or from one that nobody has.
    pub not_ours: u64,
    /// To no connection and no listener: answered with a RST, as far as there was room for answers.
    pub refused: u64,
    /// Callers who were not answered, or forgotten before they had opened: the backlog or the endpoint was
    /// full.
    pub overflowed: u64,
}

/// Waits for callers at a port.
#[derive(Debug)]
struct Listener {
    v4: Arc<Config>,
    v6: Arc<Config>,
    backlog: usize,
    /// Callers not yet accepted, the half-open ones included.
    waiting: usize,
    /// Those that are open, in the order they were.
    open: VecDeque<ConnId>,
    /// Those that were half-open when they called, in that order; some are not any more.
    called: VecDeque<ConnId>,
}

/// A host's TCP.
#[derive(Debug)]
pub struct Endpoint {
    settings: Settings,
    chance: RngSlot,
    table: Table,
    listeners: BTreeMap<u16, Listener>,
    /// Connections that may have something to send, each once.
    ready: VecDeque<ConnId>,
    /// A segment that did not fit the super-packet before it: it is next.
    held: Option<(ConnId, Pkt)>,
    /// Answers to strangers.
    replies: VecDeque<Vec<u8>>,
    inbox: Inbox,
    in_time_wait: usize,
    counters: Counters,
    /// A payload that goes round the end of its ring, in one piece.
    joined: Vec<u8>,
}

impl Endpoint {
    /// An endpoint that draws sequence numbers and ports from a random stream of `world`, under `name`.
    pub fn new(world: &mut World, name: &str, settings: Settings) -> Self {
        Self {
            settings,
            chance: world.open_rng(name, Purpose::Isn),
            table: Table::default(),
            listeners: BTreeMap::new(),
            ready: VecDeque::new(),
            held: None,
            replies: VecDeque::new(),
            inbox: Inbox::default(),
            in_time_wait: 0,
            counters: Counters::default(),
            joined: Vec::new(),
        }
    }

    /// What it is.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What came in and went out.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Connections it keeps, in any state.
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// The engine's view of a connection: state, options agreed on, counters.
    pub fn connection(&self, id: ConnId) -> Option<&Connection> {
        self.table.get(id).map(|s| &s.conn)
    }

    /// Our address and the peer's.
    pub fn addresses(&self, id: ConnId) -> Option<(SocketAddr, SocketAddr)> {
        self.table.get(id).map(|s| (s.pair.local(), s.pair.remote()))
    }

    /// How it ended; `None` while it lives.
    pub fn ending(&self, id: ConnId) -> Option<Ending> {
        self.table.get(id).and_then(|s| s.ending)
    }

    /// Bytes of memory that the streams of a connection hold.
    pub fn memory(&self, id: ConnId) -> Option<usize> {
        self.table.get(id).map(socket::Socket::memory)
    }

    /// When [`Endpoint::timer`] must be called next; [`Instant::NEVER`] when only a packet or an application
    /// can cause something.
    pub fn next_at(&self) -> Instant {
        self.table.next_at()
    }

    /// True when [`Endpoint::next_packet`] is worth calling: always after a packet, a timer or an
    /// application's verb.
    pub fn wants_to_send(&self) -> bool {
        !self.ready.is_empty() || self.held.is_some() || !self.replies.is_empty()
    }

    /// The next fact for an application. Each is told once until it becomes true anew.
    pub fn news(&mut self) -> Option<(ConnId, News)> {
        while let Some(id) = self.inbox.first() {
            if let Some(news) = self.table.get_mut(id).and_then(|s| s.unread.take()) {
                return Some((id, news));
            }
            self.inbox.pop();
        }
        None
    }

    fn chance(&self, cx: &mut Cx<'_>) -> Chance {
        let bits = cx.rng(self.chance).bits();
        Chance { isn: Seq(bits as u32), timestamp: (bits >> 32) as u32, jitter: None }
    }

    /// The connection may have something to send.
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

/// The configuration for one address family: the MSS that the network leaves, a bounded buffer, and no sender
/// jitter, which is a model's.
fn fitted(config: &Config, settings: &Settings, v6: bool) -> Arc<Config> {
    let headers = if v6 { 60 } else { 40 };
    Arc::new(Config {
        mss: config.mss.min(settings.mtu.saturating_sub(headers)).max(1),
        send_buffer: config.send_buffer.or(Some(settings.send_buffer)),
        jitter: None,
        ..config.clone()
    })
}
