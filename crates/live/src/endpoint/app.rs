//! The verbs of applications.

use super::socket::{Owner, Pair, Socket};
use super::table::ConnId;
use super::{Endpoint, EndpointError, Listener, fitted};
use bentpipe_base::{Cx, Instant};
use bentpipe_tcp::{Config, Connection};
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

/// Ports for calls (RFC 6335, section 6: the dynamic ones).
const FIRST_PORT: u16 = 49_152;
const PORTS: u64 = 16_384;

impl Endpoint {
    /// Accepts calls to `port` at all own addresses; `backlog` callers may wait, the half-open ones included.
    /// When that many do, a new one takes the place of the half-open one that has waited longest: who forges
    /// calls, or leaves them, keeps nobody out.
    ///
    /// # Errors
    /// When something listens there already.
    pub fn listen(&mut self, port: u16, config: &Config, backlog: usize) -> Result<(), EndpointError> {
        if self.listeners.contains_key(&port) {
            return Err(EndpointError::Listening(port));
        }
        let (v4, v6) = (fitted(config, &self.settings, false), fitted(config, &self.settings, true));
        self.listeners.insert(
            port,
            Listener { v4, v6, backlog, waiting: 0, open: VecDeque::new(), called: VecDeque::new() },
        );
        Ok(())
    }

    /// Accepts no more calls to `port`. Callers who wait are sent away.
    pub fn stop_listening(&mut self, port: u16) {
        self.listeners.remove(&port);
        for id in self.table.ids() {
            let waits = |s: &Socket| s.owner == Owner::Listener && s.pair.local().port() == port;
            if self.table.get(id).is_some_and(waits) {
                self.abort(id);
            }
        }
    }

    /// The next caller at `port` whose connection is open. News says [`super::News::Calling`] for each.
    pub fn accept(&mut self, port: u16) -> Option<ConnId> {
        let listener = self.listeners.get_mut(&port)?;
        while let Some(id) = listener.open.pop_front() {
            if let Some(socket) = self.table.get_mut(id).filter(|s| s.owner == Owner::Listener) {
                socket.owner = Owner::Application;
                listener.waiting = listener.waiting.saturating_sub(1);
                return Some(id);
            }
        }
        None
    }

    /// Calls `to` from one of our addresses and a free port, or the only one that is ours.
    ///
    /// # Errors
    /// When there is no address of its family, no free port, or no room for another connection.
    pub fn connect(
        &mut self,
        cx: &mut Cx<'_>,
        to: SocketAddr,
        config: &Config,
    ) -> Result<ConnId, EndpointError> {
        if let Some(own) = self.settings.port {
            return self.connect_from(cx, own, to, config);
        }
        let first = cx.rng(self.chance).bits() % PORTS;
        for i in 0..PORTS {
            let port = FIRST_PORT + ((first + i) % PORTS) as u16;
            match self.connect_from(cx, port, to, config) {
                Err(EndpointError::NoPort(_)) => {}
                other => return other,
            }
        }
        Err(EndpointError::NoPort(to))
    }

    /// Calls `to` from our port `port`.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub fn connect_from(
        &mut self,
        cx: &mut Cx<'_>,
        port: u16,
        to: SocketAddr,
        config: &Config,
    ) -> Result<ConnId, EndpointError> {
        if to.port() == 0 || !is_a_host(to.ip()) {
            return Err(EndpointError::BadAddress(to));
        }
        let own = self.settings.addresses.iter().find(|a| a.is_ipv4() == to.is_ipv4());
        let pair = own.and_then(|a| Pair::between((*a, port), to)).ok_or(EndpointError::NoAddress(to))?;
        if self.table.find(&pair).is_some() {
            return Err(EndpointError::NoPort(to));
        }
        if self.table.len() >= self.settings.max_connections {
            return Err(EndpointError::TooMany(self.settings.max_connections));
        }
        let config = fitted(config, &self.settings, to.is_ipv6());
        let chance = self.chance(cx);
        let conn = Connection::connect(cx, pair.tuple(), config, chance);
        let id = self.table.add(pair, Socket::new(cx.now, conn, pair, Owner::Application));
        self.mark(id);
        Ok(id)
    }

    /// Writes to the stream; says how many bytes were taken, at least one unless `bytes` is empty. Before the
    /// connection is open they wait.
    ///
    /// # Errors
    /// [`EndpointError::NotNow`] when there is no room: [`super::News::Writable`] says when half of the
    /// buffer is free. When the connection is over, or this side of it was shut.
    pub fn write(&mut self, id: ConnId, bytes: &[u8]) -> Result<usize, EndpointError> {
        let socket = self.table.get_mut(id).ok_or(EndpointError::Unknown)?;
        if let Some(ending) = socket.ending {
            return Err(EndpointError::Ended(ending));
        }
        if socket.shut {
            return Err(EndpointError::Shut);
        }
        let taken = socket.write(bytes);
        socket.wants_write |= taken < bytes.len();
        if taken > 0 {
            self.mark(id);
        } else if !bytes.is_empty() {
            return Err(EndpointError::NotNow);
        }
        Ok(taken)
    }

    /// Reads from the stream; zero is its end.
    ///
    /// # Errors
    /// [`EndpointError::NotNow`] when nothing has arrived: [`super::News::Readable`] or
    /// [`super::News::PeerClosed`] says when. When the connection ended in another way than by the peer's
    /// last byte, and what had arrived before was read.
    pub fn read(&mut self, now: Instant, id: ConnId, into: &mut [u8]) -> Result<usize, EndpointError> {
        let socket = self.table.get_mut(id).ok_or(EndpointError::Unknown)?;
        let len = socket.read(now, into);
        if len > 0 || into.is_empty() {
            self.mark(id); // the window may have opened
            return Ok(len);
        }
        if socket.conn.peer_closed() {
            return Ok(0);
        }
        if let Some(ending) = socket.ending {
            return Err(EndpointError::Ended(ending));
        }
        socket.wants_read = true;
        Err(EndpointError::NotNow)
    }

    /// Says that more will be written soon, so that a partial segment waits for it, 200 ms at most; or that
    /// no more follows, and all leaves now.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn cork(&mut self, id: ConnId, on: bool) -> Result<(), EndpointError> {
        let socket = self.table.get_mut(id).ok_or(EndpointError::Unknown)?;
        if let Some(ending) = socket.ending {
            return Err(EndpointError::Ended(ending));
        }
        socket.conn.cork(on);
        self.mark(id);
        Ok(())
    }

    /// Says the last byte: the peer sees the end of our stream after what was written, and may go on sending.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn shutdown(&mut self, id: ConnId) -> Result<(), EndpointError> {
        let socket = self.table.get_mut(id).ok_or(EndpointError::Unknown)?;
        if let Some(ending) = socket.ending {
            return Err(EndpointError::Ended(ending));
        }
        socket.shut();
        self.mark(id);
        Ok(())
    }

    /// Lets go of a connection; its name finds nothing from now on. What was written is still delivered. What
    /// arrived and was not read, or arrives from now on, resets it: the peer shall know that it was lost.
    pub fn close(&mut self, id: ConnId) {
        self.disown(id);
        let Some(socket) = self.table.get_mut(id) else { return };
        if socket.over {
            self.forget(id);
            return;
        }
        socket.let_go();
        self.mark(id);
    }

    /// Breaks a connection off with a RST and lets go of it.
    pub fn abort(&mut self, id: ConnId) {
        let Some(socket) = self.table.get_mut(id) else { return };
        socket.conn.abort();
        self.close(id);
    }
}

/// Can a host have this address?
pub(super) fn is_a_host(ip: IpAddr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && ip != IpAddr::V4(core::net::Ipv4Addr::BROADCAST)
}
