//! Sends a stream to a peer that listens.

use super::{
    CHUNK, FIN_TIMEOUT, PROGRESS_INTERVAL, Source, TransferError, TransferProgress, leave, wait_for_events,
};
use crate::endpoint::{ConnId, Ending, EndpointError, HostEndpoint, SocketEvent};
use bentpipe_base::Instant;
use bentpipe_report::FlowReport;
use bentpipe_sim::report::sender_report;
use bentpipe_tcp::{Config, Connection};
use core::net::SocketAddr;

/// At least this many bytes are buffered, whatever the window is.
const LEAST_BUFFER: u64 = 1 << 20;

/// Result of a sent stream.
#[derive(Debug)]
pub struct Sent {
    /// Report, as for a flow of a scenario.
    pub report: FlowReport,
    /// Time of the end; the connection attempt began at 0.
    pub end: Instant,
    /// The peer's TCP has everything, but did not send its FIN in time.
    pub open: bool,
    /// Bytes received from the peer and ignored.
    pub ignored: u64,
}

/// A stream that failed.
#[derive(Debug)]
pub struct Failed {
    /// What went wrong.
    pub why: TransferError,
    /// Report up to then, if there was a connection.
    pub report: Option<Box<FlowReport>>,
}

impl Failed {
    /// True if nobody answered and nothing was read: the caller may try another address of the peer.
    pub const fn may_try_another(&self) -> bool {
        matches!(self.why, TransferError::Ended(Ending::Refused | Ending::TimedOut | Ending::Unreachable, _))
            && self.report.is_none()
    }
}

/// Connects to `to`, sends the data of `source`, and closes.
///
/// # Errors
/// When there is no connection, it fails, or the source cannot be read.
pub fn send(
    host: &mut HostEndpoint,
    to: SocketAddr,
    config: &Config,
    source: &mut Source,
    watch: &mut dyn FnMut(TransferProgress),
) -> Result<Sent, Failed> {
    let start = host.driver.clock.now();
    let id = host.driver.with(|endpoint, cx| endpoint.connect(cx, to, config));
    let id = id.map_err(|e| Failed { why: TransferError::Call(e), report: None })?;
    let mut sender =
        Sender { id, start, chunk: Vec::new(), at: 0, ended: false, ignored: 0, delivered: None };
    match sender.run(host, source, watch) {
        Ok(open) => {
            let (report, end) = sender.report(host, to);
            let why = TransferError::Call(EndpointError::Unknown);
            let report = report.ok_or(Failed { why, report: None })?;
            leave(host, |endpoint| endpoint.close(id));
            Ok(Sent { report, end, open, ignored: sender.ignored })
        }
        Err(why) => {
            let (report, _) = sender.report(host, to);
            leave(host, |endpoint| endpoint.abort(id));
            Err(Failed { why, report: report.filter(opened).map(Box::new) })
        }
    }
}

struct Sender {
    id: ConnId,
    start: Instant,
    /// Data read from the source; not yet written from `at` on.
    chunk: Vec<u8>,
    at: usize,
    /// The source has ended.
    ended: bool,
    ignored: u64,
    /// Time at which all data was acknowledged.
    delivered: Option<Instant>,
}

impl Sender {
    /// Runs the transfer. True if the peer has everything but has not closed its side.
    fn run(
        &mut self,
        host: &mut HostEndpoint,
        source: &mut Source,
        watch: &mut dyn FnMut(TransferProgress),
    ) -> Result<bool, TransferError> {
        let mut look = self.start + PROGRESS_INTERVAL;
        loop {
            let next = host.driver.turn().map_err(TransferError::Port)?;
            let (over, waits) = self.handle_events(host, source)?;
            let now = host.driver.clock.now();
            if now >= look || over {
                host.driver.with(|e, _| {
                    let connection = e.connection(self.id);
                    watch(TransferProgress::at(now, self.start, acknowledged(connection), connection));
                });
                look = now + PROGRESS_INTERVAL;
            }
            if over {
                return Ok(false);
            }
            if self.delivered.is_some_and(|delivered| now >= delivered + FIN_TIMEOUT) {
                return Ok(true);
            }
            wait_for_events(host, source.fd().filter(|_| waits), next, look)?;
        }
    }

    /// Handles events and writes data. Returns if the transfer is over, and if the source has nothing now.
    fn handle_events(
        &mut self,
        host: &mut HostEndpoint,
        source: &mut Source,
    ) -> Result<(bool, bool), TransferError> {
        let now = host.driver.clock.now();
        let mut ending = None;
        host.driver.with(|endpoint, _| {
            while let Some((id, event)) = endpoint.next_event() {
                match event {
                    SocketEvent::Delivered if id == self.id => _ = self.delivered.get_or_insert(now),
                    SocketEvent::Ended if id == self.id => ending = endpoint.ending(id),
                    _ => {}
                }
            }
            let mut scrap = [0; 4096];
            while let Ok(read @ 1..) = endpoint.read(now, self.id, &mut scrap) {
                self.ignored += read as u64;
            }
        });
        let closed = host.driver.with(|e, _| e.connection(self.id).is_some_and(Connection::peer_closed));
        match ending {
            // errors after all data was acknowledged do not matter
            Some(ending) if ending != Ending::Closed && self.delivered.is_none() => {
                let bytes = host.driver.with(|e, _| acknowledged(e.connection(self.id)));
                Err(TransferError::Ended(ending, bytes))
            }
            None if self.delivered.is_none() || !closed => Ok((false, self.fill(host, source)?)),
            _ => Ok((true, false)),
        }
    }

    /// Fills the send buffer, in proportion to the window as the kernel does: more only costs memory and
    /// time. True if the source has nothing to read now.
    fn fill(&mut self, host: &mut HostEndpoint, source: &mut Source) -> Result<bool, TransferError> {
        for _ in 0..4 {
            if self.ended {
                return Ok(false);
            }
            if self.at == self.chunk.len() {
                let room = host.driver.with(|e, _| {
                    let c = e.connection(self.id)?;
                    // read nothing before the connection is open: another address may have to be tried
                    c.stats().established_at?;
                    Some(c.unacknowledged() < LEAST_BUFFER.max(2 * c.cwnd().0) && c.send_room() > 0)
                });
                if room != Some(true) {
                    return Ok(false);
                }
                self.chunk.resize(CHUNK, 0);
                let read = source.read(&mut self.chunk).map_err(TransferError::Source)?;
                self.chunk.truncate(read.unwrap_or(0));
                self.at = 0;
                match read {
                    None => return Ok(true),
                    Some(0) => {
                        self.ended = true;
                        let _ = host.driver.with(|e, _| e.shutdown(self.id));
                        return Ok(false);
                    }
                    Some(_) => {}
                }
            }
            let bytes = &self.chunk[self.at..];
            match host.driver.with(|e, _| e.write(self.id, bytes)) {
                Ok(taken) => self.at += taken,
                // no room, or ended: an event will follow
                Err(_) => return Ok(false),
            }
        }
        Ok(false)
    }

    fn report(&self, host: &mut HostEndpoint, to: SocketAddr) -> (Option<FlowReport>, Instant) {
        let now = host.driver.clock.now();
        let report = host.driver.with(|e, _| {
            let name =
                e.addresses(self.id).map_or_else(|| to.to_string(), |(own, to)| format!("{own} > {to}"));
            Some(sender_report(name, e.connection(self.id)?, self.start, now))
        });
        (report, now)
    }
}

fn opened(report: &FlowReport) -> bool {
    report.tcp().is_some_and(|tcp| tcp.established_s.is_some())
}

fn acknowledged(connection: Option<&Connection>) -> u64 {
    connection.map_or(0, |c| c.stats().bytes_acked.0)
}
