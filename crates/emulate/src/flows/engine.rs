//! The engine at a host: an endpoint beside the kernel, for the flows that the kernel's TCP cannot run.
//!
//! It reads and writes the host's interface with a packet socket and has the ports of its flows, which the
//! kernel leaves alone ([`SilentPort`]). All other traffic of the host stays the kernel's. The thread of the
//! flows drives it: [`EngineHost::turn`] when its socket is readable or its time has come.

use super::Error;
use super::setup::HostNamespace;
use super::stream::Side;
use crate::session::HOST_MAC;
use bentpipe_base::{Cx, Instant, Size};
use bentpipe_live::endpoint::{ConnId, Endpoint, EndpointDriver, Settings};
use bentpipe_nodes::{ByteStream, ReaderState, Writer};
use bentpipe_os::{Clock, SilentPort, VethPort};
use bentpipe_tcp::{Config, Connection, State};
use std::io;
use std::os::fd::BorrowedFd;

/// Bytes written that no limit of the scenario's bounds: what the window holds, and this much more.
const AHEAD: u64 = 1 << 20;
/// Send buffer where the scenario sets none: it never fills, because of [`AHEAD`].
const SEND_BUFFER: Size = Size(1 << 30);
/// Bytes read per call.
const READ: usize = 1 << 14;
/// Bytes written per call. The data is all zeros, as of a kernel flow.
const PIECE: usize = 1 << 16;
static ZEROS: [u8; PIECE] = [0; PIECE];

/// One end of a flow at a host: the flow's index, which end, and its port.
pub(super) type EndAt = (usize, Side, u16);

/// The endpoint of one host.
#[derive(Debug)]
pub(super) struct EngineHost {
    pub(super) driver: EndpointDriver<VethPort>,
    /// The ends of flows here.
    pub(super) ends: Vec<EndAt>,
    /// Earliest pending wake-up.
    pub(super) armed: Instant,
    /// Held open.
    _silent: Vec<SilentPort>,
}

impl EngineHost {
    /// Opens the endpoint of the host called `name` with the ports of `ends`.
    pub(super) fn open(
        name: &str,
        place: &HostNamespace<'_>,
        ends: Vec<EndAt>,
        seed: u64,
    ) -> Result<Self, Error> {
        let mut addresses = vec![place.address];
        addresses.extend(place.v6.filter(|v6| *v6 != place.address));
        let (silent, port) = place.within(&format!("host `{name}`: the flows' own TCP"), || {
            let all = addresses.iter().flat_map(|address| ends.iter().map(|end| (*address, end.2)));
            let silent = all.map(|at| SilentPort::take(at.into())).collect::<io::Result<Vec<_>>>()?;
            // every host of a session has this address, and so has its next hop
            let port = VethPort::open(place.interface, HOST_MAC).map_err(io::Error::other)?;
            Ok((silent, port))
        })?;
        let settings = Settings {
            addresses,
            ports: ends.iter().map(|(_, _, port)| *port).collect(),
            send_buffer: SEND_BUFFER,
            ..Settings::default()
        };
        let mut driver = EndpointDriver::new(port, Clock::start(), seed, settings);
        // schemes count acknowledgments, so there must be as many as in simulated time
        driver.batch = 1;
        Ok(Self { driver, ends, armed: Instant::NEVER, _silent: silent })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.driver.fd()
    }

    /// Reads and sends packets, and handles timers. Returns when to call again.
    pub(super) fn turn(&mut self) -> Result<Instant, Error> {
        self.driver.turn().map_err(|e| Error::system("the packets of a flow", e))
    }

    pub(super) fn listen(&mut self, port: u16, config: &Config) -> Result<(), Error> {
        let listens = self.driver.with(|endpoint, _| endpoint.listen(port, config, 1));
        listens.map_err(|e| Error::system("a flow's own TCP", io::Error::other(e)))
    }

    pub(super) fn connection(&self, id: ConnId) -> Option<&Connection> {
        self.driver.endpoint().connection(id)
    }
}

/// One end of a connection of the engine, with its applications.
#[derive(Debug)]
pub(super) struct EngineEnd {
    /// Its host, by index among the scenario's nodes.
    pub(super) node: usize,
    pub(super) port: u16,
    /// Its connection, once there is one.
    pub(super) id: Option<ConnId>,
    pub(super) writer: Writer,
    reader: ReaderState,
    /// Earliest pending wake-up of its applications.
    pub(super) armed: Instant,
    /// Bytes read.
    pub(super) consumed: u64,
    /// What the network had done when the applications last ran.
    seen: Option<Seen>,
}

/// State, and bytes acknowledged, sent and received.
type Seen = (State, u64, u64, u64);

impl EngineEnd {
    pub(super) const fn new((node, port): (usize, u16), writer: Writer, reader: ReaderState) -> Self {
        Self { node, port, id: None, writer, reader, armed: Instant::NEVER, consumed: 0, seen: None }
    }

    /// Runs the applications, the reader first, if the network did something since the last call, or if they
    /// are `due`. Returns when they must run again; `None` if they did not run.
    pub(super) fn run(&mut self, cx: &mut Cx<'_>, host: &mut EngineHost, due: bool) -> Option<Instant> {
        let id = self.id?;
        let connection = host.connection(id)?;
        let board = connection.scoreboard();
        let seen = (connection.state(), board.una(), board.next(), connection.received());
        if self.seen.replace(seen) == Some(seen) && !due {
            return None;
        }
        host.driver.with(|endpoint, _| {
            let mut stream = EngineStream { endpoint, id, consumed: &mut self.consumed };
            let read_at = self.reader.run(cx.now, &mut stream);
            Some(read_at.min(self.writer.run(cx, &mut stream)))
        })
    }
}

/// A connection of an endpoint as an application sees it.
struct EngineStream<'a> {
    endpoint: &'a mut Endpoint,
    id: ConnId,
    consumed: &'a mut u64,
}

impl EngineStream<'_> {
    fn ask(&self, what: fn(&Connection) -> u64) -> u64 {
        self.endpoint.connection(self.id).map_or(0, what)
    }
}

impl ByteStream for EngineStream<'_> {
    fn state(&self) -> State {
        self.endpoint.connection(self.id).map_or(State::Closed, Connection::state)
    }

    fn write(&mut self, bytes: u64) -> u64 {
        let mut left = bytes.min(AHEAD.saturating_sub(self.unsent()));
        let mut taken = 0;
        while left > 0 {
            let piece = &ZEROS[..left.min(PIECE as u64) as usize];
            // without room, or once the connection has ended, it takes nothing
            let Ok(n) = self.endpoint.write(self.id, piece) else { break };
            taken += n as u64;
            left = left.saturating_sub(n as u64);
        }
        taken
    }

    fn unacknowledged(&self) -> u64 {
        self.ask(Connection::unacknowledged)
    }

    fn unsent(&self) -> u64 {
        self.ask(ByteStream::unsent)
    }

    fn readable(&self) -> u64 {
        self.ask(Connection::readable)
    }

    fn consumed(&self) -> u64 {
        *self.consumed
    }

    fn consume(&mut self, now: Instant, bytes: u64) {
        let mut buffer = [0; READ];
        let mut left = bytes;
        while left > 0 {
            let piece = &mut buffer[..left.min(READ as u64) as usize];
            let Ok(n @ 1..) = self.endpoint.read(now, self.id, piece) else { break };
            *self.consumed += n as u64;
            left = left.saturating_sub(n as u64);
        }
    }

    fn close(&mut self) {
        // it may have ended already
        let _ = self.endpoint.shutdown(self.id);
    }
}
