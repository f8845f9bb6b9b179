//! The calls that an application makes on an endpoint.

use super::socket::{FourTuple, Owner, Socket};
use super::table::ConnId;
use super::{Endpoint, EndpointError, Listener, fitted};
use bentpipe_base::{Cx, Instant, Size};
use bentpipe_tcp::{Config, Connection};
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

/// Ephemeral ports for outgoing connections (RFC 6335, section 6: the dynamic ones).
const FIRST_PORT: u16 = 49_152;
const PORTS: u64 = 16_384;

impl Endpoint {
    /// Listens at `port` on all own addresses. At most `backlog` connections may wait to be accepted,
    /// half-open ones included. When the backlog is full, a new connection replaces the half-open one that
    /// has waited longest, so a SYN flood cannot block other clients.
    ///
    /// # Errors
    /// When a listener exists at that port.
    pub fn listen(&mut self, port: u16, config: &Config, backlog: usize) -> Result<(), EndpointError> {
        if self.listeners.contains_key(&port) {
            return Err(EndpointError::Listening(port));
        }
        let (v4, v6) = (fitted(config, &self.settings, false), fitted(config, &self.settings, true));
        let (open, called) = (VecDeque::new(), VecDeque::new());
        self.listeners
            .insert(port, Listener { v4, v6, backlog, waiting: 0, accept_queue: open, syn_queue: called });
        Ok(())
    }

    /// Stops listening at `port`. Connections that were not accepted are closed.
    pub fn stop_listening(&mut self, port: u16) {
        self.listeners.remove(&port);
        for id in self.table.ids() {
            let waits = |s: &Socket| s.owner == Owner::Listener && s.pair.local().port() == port;
            if self.table.get(id).is_some_and(waits) {
                self.abort(id);
            }
        }
    }

    /// Returns the next open connection at `port`. [`super::SocketEvent::Calling`] announces each one.
    pub fn accept(&mut self, port: u16) -> Option<ConnId> {
        let listener = self.listeners.get_mut(&port)?;
        while let Some(id) = listener.accept_queue.pop_front() {
            if let Some(socket) = self.table.get_mut(id).filter(|s| s.owner == Owner::Listener) {
                socket.owner = Owner::Application;
                listener.waiting = listener.waiting.saturating_sub(1);
                return Some(id);
            }
        }
        None
    }

    /// Connects to `to` from one of our addresses and a free port, or from [`super::Settings::port`].
    ///
    /// # Errors
    /// When we have no address of its family, no free port, or too many connections.
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

    /// Connects to `to` from our port `port`.
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
        match self.settings.addresses.iter().find(|a| a.is_ipv4() == to.is_ipv4()) {
            Some(own) => self.connect_between(cx, SocketAddr::new(*own, port), to, config),
            None if is_a_port_of_a_host(to) => Err(EndpointError::NoAddress(to)),
            None => Err(EndpointError::BadAddress(to)),
        }
    }

    /// Connects to `to` from `own`. A transparent endpoint may use the address of another host.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub fn connect_between(
        &mut self,
        cx: &mut Cx<'_>,
        own: SocketAddr,
        to: SocketAddr,
        config: &Config,
    ) -> Result<ConnId, EndpointError> {
        if !is_a_port_of_a_host(to) {
            return Err(EndpointError::BadAddress(to));
        }
        let pair = FourTuple::between((own.ip(), own.port()), to).ok_or(EndpointError::NoAddress(to))?;
        self.check_room(&pair)?;
        let config = fitted(config, &self.settings, to.is_ipv6());
        let chance = self.chance(cx);
        let mut conn = Connection::connect(cx, pair.tuple(), config, chance);
        self.keep_secret(cx, &mut conn);
        if self.peers.hides(cx.now, to.ip()) {
            conn.hide_request();
        }
        let id = self.table.add(pair, Socket::new(cx.now, conn, pair, Owner::Application));
        self.mark(id);
        Ok(id)
    }

    /// Checks that one more connection, between these addresses, is possible.
    pub(super) fn check_room(&self, pair: &FourTuple) -> Result<(), EndpointError> {
        if self.table.find(pair).is_some() {
            return Err(EndpointError::NoPort(pair.remote()));
        }
        if self.table.len() >= self.settings.max_connections {
            return Err(EndpointError::TooMany(self.settings.max_connections));
        }
        Ok(())
    }

    /// Writes to the stream; returns how many bytes were taken, at least one unless `bytes` is empty. Bytes
    /// written before the connection is open are buffered.
    ///
    /// # Errors
    /// When the buffer is full: [`super::SocketEvent::Writable`] follows when half of it is free, or 128 KiB.
    /// Also when the connection has ended, or this side of it was shut down.
    pub fn write(&mut self, id: ConnId, bytes: &[u8]) -> Result<usize, EndpointError> {
        let socket = self.living(id)?;
        if socket.shut {
            return Err(EndpointError::Shut);
        }
        let taken = socket.write(bytes);
        socket.wants_write |= taken < bytes.len();
        if taken > 0 {
            self.mark(id);
        } else if !bytes.is_empty() {
            return Err(EndpointError::WouldBlock);
        }
        Ok(taken)
    }

    /// Reads from the stream; returns 0 at its end.
    ///
    /// # Errors
    /// When nothing has arrived: [`super::SocketEvent::Readable`] or [`super::SocketEvent::PeerClosed`]
    /// follows. Also when the connection ended other than by the peer's FIN, after all data that arrived was
    /// read.
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
        Err(EndpointError::WouldBlock)
    }

    /// With `on`, a partial segment waits at most 200 ms for more data, as with Linux's TCP_CORK; without,
    /// everything is sent now.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn cork(&mut self, id: ConnId, on: bool) -> Result<(), EndpointError> {
        self.living(id)?.conn.cork(on);
        self.mark(id);
        Ok(())
    }

    /// Asks for a [`super::SocketEvent::Writable`] although nothing was written.
    pub fn await_room(&mut self, id: ConnId) {
        if let Some(socket) = self.table.get_mut(id) {
            socket.wants_write = true;
            self.mark(id);
        }
    }

    /// Sets the memory for the two buffers of a connection, as [`Connection::allow`] says.
    pub fn allow(&mut self, id: ConnId, send: Size, receive: Size, opened: Size) {
        if let Some(socket) = self.table.get_mut(id) {
            socket.conn.allow(send, receive, opened);
        }
    }

    /// Closes the sending side: the peer gets a FIN after the written data, and may go on sending.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn shutdown(&mut self, id: ConnId) -> Result<(), EndpointError> {
        self.living(id)?.shut();
        self.mark(id);
        Ok(())
    }

    /// Returns the socket of a connection that has not ended.
    fn living(&mut self, id: ConnId) -> Result<&mut Socket, EndpointError> {
        let socket = self.table.get_mut(id).ok_or(EndpointError::Unknown)?;
        socket.ending.map_or(Ok(()), |ending| Err(EndpointError::Ended(ending)))?;
        Ok(socket)
    }

    /// Closes a connection; its id is invalid from now on. Written data is still delivered. If data was not
    /// read, or arrives later, the connection is reset, so that the peer learns that the data was lost.
    pub fn close(&mut self, id: ConnId) {
        self.disown(id);
        let Some(socket) = self.table.get_mut(id) else { return };
        if socket.over {
            self.forget(id);
            return;
        }
        socket.close();
        self.mark(id);
    }

    /// Removes a connection without a packet; its id is invalid from now on.
    pub fn discard(&mut self, id: ConnId) {
        self.forget(id);
    }

    /// Aborts a connection with a RST and closes it.
    pub fn abort(&mut self, id: ConnId) {
        let Some(socket) = self.table.get_mut(id) else { return };
        socket.conn.abort();
        self.close(id);
    }
}

fn is_a_port_of_a_host(at: SocketAddr) -> bool {
    at.port() != 0 && is_a_host(at.ip())
}

/// True if a host can have this address.
pub(super) fn is_a_host(ip: IpAddr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && ip != IpAddr::V4(core::net::Ipv4Addr::BROADCAST)
}
