//! A TCP flow: from the listening socket to the acknowledgment of the last byte.

use super::end::{ConnectionEnd, KernelSocket, Window};
use super::sample::Samples;
use super::setup::{HostNamespace, Socket, set_rto_min};
use super::{Error, KernelRequirements, ends_of};
use bentpipe_base::{Cx, Instant, Size, World};
use bentpipe_nodes::{Reader, Writer};
use bentpipe_os::{socket, tcp};
use bentpipe_report::{RequestsReport, TcpReport, TelnetReport};
use bentpipe_scenario::FlowSpec;
use bentpipe_sim::build::writers;
use bentpipe_sim::report;
use core::fmt::Display;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// An end of the connection, in the order of [`ends_of`].
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
    spec: Box<FlowSpec>,
    established: Option<Instant>,
    pub(super) finished: Option<Instant>,
    pub(super) samples: Samples,
    /// Text of an error.
    pub(super) fault: Option<String>,
}

impl TcpFlow {
    /// Opens the sockets of `flow`: one listens, the other waits for its start time.
    pub(super) fn open(
        world: &mut World,
        flow: &FlowSpec,
        start: Instant,
        (places, ports): ((&HostNamespace<'_>, &HostNamespace<'_>), (u16, u16)),
        congestion: &str,
        needs: &KernelRequirements,
    ) -> Result<Self, Error> {
        let [(_, opener, opens, opener_gets), (_, acceptor, accepts, acceptor_gets)] = ends_of(flow);
        let socket = |host: usize, config, gets| Socket {
            config,
            congestion,
            locks_buffer: needs.hosts.iter().any(|h| h.host == host && h.locks_buffers),
            reader: if gets { flow.reader } else { Reader::Eager },
        };
        let answers = super::acceptor_sends(flow);
        let opening = socket(opener, opens, opener_gets);
        // requests are read eagerly; the flow's reader is that of its data
        let accepting = socket(acceptor, accepts, acceptor_gets && !answers);
        let at = |place: &HostNamespace<'_>, port| SocketAddr::new(place.address, port);
        let (from, to) = (at(places.0, ports.0), at(places.1, ports.1));
        let what = |word: &str| format!("flow `{}`: {word}", flow.name);
        let listener = places.1.within(&what("a socket that listens"), || {
            let fd = accepting.open(&to)?;
            socket::listen(&fd)?;
            Ok(fd)
        })?;
        let caller = places.0.within(&what("a socket that connects"), || opening.open(&from))?;
        let (writer, answerer) = writers(world, flow);
        let line = KernelSocket::new(caller, false, opens.send_buffer, opening.window());
        let sender = if answers { accepts } else { opens };
        Ok(Self {
            start,
            to,
            answers,
            listener: Some(listener),
            opener: ConnectionEnd::new(line, writer, opening.reader),
            acceptor: None,
            waiting: Some((accepts.send_buffer, accepting.window(), answerer, accepting.reader)),
            spec: Box::new(flow.clone()),
            established: None,
            finished: None,
            samples: Samples::new(start, sender.send_buffer.is_some()),
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
        if let Err(error) = socket::connect(self.opener.socket.fd(), &self.to) {
            self.fail(now, error);
        }
    }

    /// Handles an event of the listening socket; returns the descriptor to poll from now on.
    pub(super) fn accept(&mut self, now: Instant) -> Option<BorrowedFd<'_>> {
        let accepted = socket::accept(self.listener.as_ref()?);
        let fd = accepted.map_err(|error| self.fail(now, error)).ok().flatten()?;
        let (send_buffer, window, writer, reader) = self.waiting.take()?;
        let line = KernelSocket::new(fd, true, send_buffer, window);
        self.listener = None;
        self.opened(now, Side::Acceptor, line.fd());
        let end = self.acceptor.insert(ConnectionEnd::new(line, writer, reader));
        Some(end.socket.fd())
    }

    /// Handles the end of the handshake at one end.
    fn opened(&mut self, now: Instant, side: Side, fd: BorrowedFd<'_>) {
        let sends = self.answers == (side == Side::Acceptor);
        if sends {
            self.established.get_or_insert(now);
            self.samples.opening(now);
        }
        let (_, _, config, _) = ends_of(&self.spec)[side as usize];
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
            end.socket.look(hung_up);
        }
        let connects = writable && !self.opener.socket.connected && now >= self.start;
        if !self.has_failed(now, side) && side == Side::Opener && connects {
            self.opener.socket.connected = true;
            if let Ok(fd) = self.opener.socket.fd().try_clone_to_owned() {
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
        let error = self.end(side).and_then(|end| end.socket.fault.as_ref()).map(ToString::to_string);
        error.is_some_and(|error| {
            self.fail(now, error);
            true
        })
    }

    fn fail(&mut self, now: Instant, error: impl Display) {
        let (name, at) = (&self.spec.name, now.as_secs_f64());
        self.fault.get_or_insert_with(|| format!("flow {name}: {error}, at {at:.3} s"));
    }

    /// Samples the kernel's figures; for a flow that has finished since the last sample, those at its end.
    pub(super) fn look(&mut self, now: Instant) {
        if self.established.is_some() {
            if let Some(info) = self.sender().and_then(|end| tcp::info(end.socket.fd()).ok()) {
                self.samples.look(self.finished.unwrap_or(now), &info);
            }
        } else if now >= self.start {
            self.samples.opening(now);
        }
    }

    /// Reads data that has arrived before the end of the run.
    pub(super) fn last_read(&mut self, now: Instant) {
        let reader = if self.answers { Some(&mut self.opener) } else { self.acceptor.as_mut() };
        if let Some(end) = reader.filter(|end| end.socket.fault.is_none()) {
            let _ = end.reader.run(now, &mut end.socket);
        }
    }

    /// Bytes read by the reader of its data.
    pub(super) fn delivered(&self) -> u64 {
        let reader = if self.answers { Some(&self.opener) } else { self.acceptor.as_ref() };
        reader.map_or(0, |end| end.socket.consumed)
    }

    pub(super) fn report(&self) -> TcpReport {
        let (requests, telnet) = application(&self.opener.writer);
        TcpReport {
            established_s: self.established.map(Instant::as_secs_f64),
            finished_s: self.finished.map(Instant::as_secs_f64),
            bytes_acked: self.acknowledged(),
            requests,
            telnet,
            ..self.samples.report(self.spec.sender.scheme.name)
        }
    }

    /// Payload acknowledged: TCP_INFO also counts the opener's SYN, and the FIN.
    fn acknowledged(&self) -> u64 {
        let Some(end) = self.sender() else { return 0 };
        let syn = u64::from(!self.answers);
        self.samples.last.bytes_acked.saturating_sub(syn).min(end.socket.written)
    }
}

/// Measurements of an application that has some.
pub(super) fn application(of: &Writer) -> (Option<Box<RequestsReport>>, Option<Box<TelnetReport>>) {
    match of {
        Writer::Requests(client) => (Some(report::requests(client).into()), None),
        Writer::Telnet(client) => (None, Some(report::telnet(client).into())),
        _ => (None, None),
    }
}
