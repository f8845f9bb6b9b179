//! A TCP flow: from the listening socket to the acknowledgment of the last byte.

use super::end::{ConnectionEnd, KernelSocket, Window};
use super::sample::Samples;
use super::setup::{HostNamespace, Socket, set_rto_min};
use super::{Error, ends_of};
use bentpipe_base::{Cx, Instant, Size, World};
use bentpipe_nodes::{Reader, Writer};
use bentpipe_os::{socket, tcp};
use bentpipe_scenario::FlowSpec;
use bentpipe_sim::build::apps;
use core::fmt::Display;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// An end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The one that opens the connection.
    Opener,
    /// The one that accepts it.
    Acceptor,
}

/// A connection, before, during and after its life.
#[derive(Debug)]
pub(super) struct TcpFlow {
    pub(super) start: Instant,
    to: SocketAddr,
    /// The acceptor sends the data.
    answers: bool,
    listener: Option<OwnedFd>,
    pub(super) opener: ConnectionEnd,
    acceptor: Option<ConnectionEnd>,
    /// Limits and applications for the accepted socket.
    waiting: Option<(Option<Size>, Window, Writer, Reader)>,
    pub(super) spec: Box<FlowSpec>,
    pub(super) established: Option<Instant>,
    pub(super) finished: Option<Instant>,
    pub(super) samples: Samples,
    /// Time and text of an error.
    pub(super) fault: Option<(Instant, String)>,
}

/// The ends of a flow: hosts, ports and socket options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'a> {
    pub(super) places: (&'a HostNamespace<'a>, &'a HostNamespace<'a>),
    pub(super) ports: (u16, u16),
    pub(super) start: Instant,
    pub(super) congestion: &'a str,
    /// Whether buffers are locked on the opener's and the acceptor's host.
    pub(super) locks: (bool, bool),
}

impl TcpFlow {
    /// Opens the sockets of `flow`: one listens, the other waits for its start time.
    pub(super) fn open(world: &mut World, flow: &FlowSpec, ends: &Ends<'_>) -> Result<Self, Error> {
        let [(_, _, opens, opener_gets), (_, _, accepts, acceptor_gets)] = ends_of(flow);
        let socket = |config, gets, locks_buffer| Socket {
            config,
            congestion: ends.congestion,
            locks_buffer,
            reader: if gets { flow.reader } else { Reader::Eager },
        };
        let answers = super::answers(flow);
        let opening = socket(opens, opener_gets, ends.locks.0);
        // requests are read eagerly; the flow's reader is that of its data
        let accepting = socket(accepts, acceptor_gets && !answers, ends.locks.1);
        let at = |place: &HostNamespace<'_>, port| SocketAddr::new(place.address, port);
        let (from, to) = (at(ends.places.0, ends.ports.0), at(ends.places.1, ends.ports.1));
        let what = |word: &str| format!("flow `{}`: {word}", flow.name);
        let listener = ends.places.1.within(&what("a socket that listens"), || {
            let fd = accepting.open(&to)?;
            socket::listen(&fd)?;
            Ok(fd)
        })?;
        let caller = ends.places.0.within(&what("a socket that connects"), || opening.open(&from))?;
        let (writer, answerer) = apps::writers(world, flow);
        let reader = flow.reader;
        let (opener_reads, acceptor_reads) =
            if answers { (reader, Reader::Eager) } else { (Reader::Eager, reader) };
        let line = KernelSocket::new(caller, false, opens.send_buffer, opening.window());
        let sender = if answers { accepts } else { opens };
        Ok(Self {
            start: ends.start,
            to,
            answers,
            listener: Some(listener),
            opener: ConnectionEnd::new(line, writer, opener_reads),
            acceptor: None,
            waiting: Some((accepts.send_buffer, accepting.window(), answerer, acceptor_reads)),
            spec: Box::new(flow.clone()),
            established: None,
            finished: None,
            samples: Samples::new(ends.start, sender.send_buffer.is_some()),
            fault: None,
        })
    }

    /// The listening socket, until a connection was accepted.
    pub(super) fn listener(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(OwnedFd::as_fd)
    }

    pub(super) fn end(&mut self, side: Side) -> Option<&mut ConnectionEnd> {
        match side {
            Side::Opener => Some(&mut self.opener),
            Side::Acceptor => self.acceptor.as_mut(),
        }
    }

    fn sender(&self) -> Option<&ConnectionEnd> {
        if self.answers { self.acceptor.as_ref() } else { Some(&self.opener) }
    }

    pub(super) fn connect(&mut self, now: Instant) {
        if let Err(error) = socket::connect(self.opener.line.fd(), &self.to) {
            self.fail(now, error);
        }
    }

    /// Handles an event of the listening socket; returns the descriptor to poll from now on.
    pub(super) fn accept(&mut self, now: Instant) -> Option<BorrowedFd<'_>> {
        match socket::accept(self.listener.as_ref()?) {
            Ok(Some(fd)) => {
                let (send_buffer, window, writer, reader) = self.waiting.take()?;
                let line = KernelSocket::new(fd, true, send_buffer, window);
                self.listener = None;
                self.opened(now, Side::Acceptor, line.fd());
                let end = self.acceptor.insert(ConnectionEnd::new(line, writer, reader));
                Some(end.line.fd())
            }
            Ok(None) => None,
            Err(error) => {
                self.fail(now, error);
                None
            }
        }
    }

    /// Handles the end of the handshake at one end.
    fn opened(&mut self, now: Instant, side: Side, fd: BorrowedFd<'_>) {
        let sends = self.answers == (side == Side::Acceptor);
        if sends {
            self.established.get_or_insert(now);
            self.samples.opening(now);
        }
        let config = if side == Side::Acceptor { ends_of(&self.spec)[1].2 } else { ends_of(&self.spec)[0].2 };
        // fails only if the connection has ended
        let _ = set_rto_min(fd, config);
    }

    pub(super) fn ready(
        &mut self,
        now: Instant,
        side: Side,
        (writable, hung_up, failed): (bool, bool, bool),
    ) {
        let Some(end) = self.end(side) else { return };
        if failed || hung_up {
            end.line.look(hung_up);
        }
        if self.has_failed(now, side) {
            return;
        }
        if side == Side::Opener && writable && !self.opener.line.connected && now >= self.start {
            self.opener.line.connected = true;
            if let Ok(fd) = self.opener.line.fd().try_clone_to_owned() {
                self.opened(now, Side::Opener, fd.as_fd());
            }
        }
    }

    /// Runs the applications of one end; returns when they must run again.
    pub(super) fn run(&mut self, cx: &mut Cx<'_>, side: Side) -> Instant {
        let Some(end) = self.end(side) else { return Instant::NEVER };
        let again = end.run(cx);
        self.has_failed(cx.now, side);
        if self.finished.is_none() {
            self.finished = self.finished_by(cx.now);
        }
        again
    }

    fn finished_by(&self, now: Instant) -> Option<Instant> {
        match &self.opener.writer {
            Writer::Requests(asker) => asker.finished_at,
            _ if self.answers => None,
            _ => self.opener.is_done().then_some(now),
        }
    }

    /// Notes the error of an end, with which its applications stop; false if there is none.
    fn has_failed(&mut self, now: Instant, side: Side) -> bool {
        let error = self.end(side).and_then(|end| end.line.fault.as_ref()).map(ToString::to_string);
        error.is_some_and(|error| {
            self.fail(now, error);
            true
        })
    }

    fn fail(&mut self, now: Instant, error: impl Display) {
        self.fault.get_or_insert_with(|| (now, format!("flow {}: {error}", self.spec.name)));
    }

    /// Samples the kernel's figures.
    pub(super) fn look(&mut self, now: Instant) {
        if now < self.start || self.finished.is_some() {
            return;
        }
        if self.established.is_none() {
            self.samples.opening(now);
            return;
        }
        if let Some(info) = self.sender().and_then(|end| tcp::info(end.line.fd()).ok()) {
            self.samples.look(now, &info);
        }
    }

    /// Reads data that has arrived before the end of the run.
    pub(super) fn last_read(&mut self, now: Instant) {
        let reader = if self.answers { Some(&mut self.opener) } else { self.acceptor.as_mut() };
        if let Some(end) = reader.filter(|end| end.line.fault.is_none()) {
            let _ = end.reader.run(now, &mut end.line);
        }
    }

    /// Takes the last sample, at or before the end: counters of a flow that finished between two samples.
    pub(super) fn last_look(&mut self, now: Instant) {
        let at = self.finished.unwrap_or(now);
        if self.established.is_some()
            && let Some(info) = self.sender().and_then(|end| tcp::info(end.line.fd()).ok())
        {
            self.samples.look(at, &info);
        } else if now >= self.start {
            self.samples.opening(now);
        }
    }

    /// Bytes read by the reader of its data.
    pub(super) fn delivered(&self) -> u64 {
        let reader = if self.answers { Some(&self.opener) } else { self.acceptor.as_ref() };
        reader.map_or(0, |end| end.line.consumed)
    }

    /// Payload acknowledged: TCP_INFO also counts the opener's SYN, and the FIN.
    pub(super) fn acknowledged(&self) -> u64 {
        let Some(end) = self.sender() else { return 0 };
        let syn = u64::from(!self.answers);
        self.samples.last.bytes_acked.saturating_sub(syn).min(end.line.written)
    }
}
