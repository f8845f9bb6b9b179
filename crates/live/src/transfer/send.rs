//! A stream to a peer that listens.

use super::{CHUNK, FAREWELL, LOOK, Look, Source, TransferError, leave, rest};
use crate::endpoint::{ConnId, Ending, EndpointError, Guest, News};
use bentpipe_base::Instant;
use bentpipe_report::FlowReport;
use bentpipe_sim::report::sender_report;
use bentpipe_tcp::{Config, Connection};
use core::net::SocketAddr;

/// A buffer of this many bytes is filled whatever the window is.
const LEAST_BUFFER: u64 = 1 << 20;

/// A stream that arrived.
#[derive(Debug)]
pub struct Sent {
    /// The figures, as of a flow of a scenario.
    pub report: FlowReport,
    /// When it was over; the call began at 0.
    pub end: Instant,
    /// The peer's TCP has everything, but it has not closed its own side in time.
    pub open: bool,
    /// Bytes that the peer said, and that nobody wanted.
    pub ignored: u64,
}

/// A stream that did not.
#[derive(Debug)]
pub struct Failed {
    /// What went wrong.
    pub why: TransferError,
    /// The figures up to then, where there was a connection.
    pub report: Option<Box<FlowReport>>,
}

impl Failed {
    /// Nobody answered there, and nothing was read yet: another address of the peer's may do.
    pub const fn may_try_another(&self) -> bool {
        matches!(
            self.why,
            TransferError::Ended { ending: Ending::Refused | Ending::TimedOut | Ending::Unreachable, .. }
        ) && self.report.is_none()
    }
}

/// Calls `to`, sends what `source` has, and its end.
///
/// # Errors
/// When there is no connection, it breaks off, or the source cannot be read.
pub fn send(
    guest: &mut Guest,
    to: SocketAddr,
    config: &Config,
    source: &mut Source,
    watch: &mut dyn FnMut(Look),
) -> Result<Sent, Failed> {
    let start = guest.station.clock().now();
    let id = guest
        .station
        .with(|endpoint, cx| endpoint.connect(cx, to, config))
        .map_err(|e| Failed { why: TransferError::Call(e), report: None })?;
    let mut sender =
        Sender { id, start, chunk: Vec::new(), at: 0, ended: false, ignored: 0, delivered: None };
    match sender.run(guest, source, watch) {
        Ok(open) => {
            let (report, end) = sender.report(guest, to);
            let why = TransferError::Call(EndpointError::Unknown);
            let report = report.ok_or(Failed { why, report: None })?;
            leave(guest, |endpoint| endpoint.close(id));
            Ok(Sent { report, end, open, ignored: sender.ignored })
        }
        Err(why) => {
            let (report, _) = sender.report(guest, to);
            leave(guest, |endpoint| endpoint.abort(id));
            Err(Failed { why, report: report.filter(opened).map(Box::new) })
        }
    }
}

struct Sender {
    id: ConnId,
    start: Instant,
    /// What was read and not written yet, from `at` on.
    chunk: Vec<u8>,
    at: usize,
    /// The source has ended.
    ended: bool,
    ignored: u64,
    /// When everything had arrived.
    delivered: Option<Instant>,
}

impl Sender {
    /// True when the peer has everything and has not closed its side.
    fn run(
        &mut self,
        guest: &mut Guest,
        source: &mut Source,
        watch: &mut dyn FnMut(Look),
    ) -> Result<bool, TransferError> {
        let mut look = self.start + LOOK;
        loop {
            let next = guest.station.turn().map_err(TransferError::Port)?;
            let (over, waits) = self.act(guest, source)?;
            let now = guest.station.clock().now();
            if now >= look || over {
                let bytes = guest.station.with(|e, _| acknowledged(e.connection(self.id)));
                guest.station.with(|e, _| watch(Look::at(now, self.start, bytes, e.connection(self.id))));
                look = now + LOOK;
            }
            if over {
                return Ok(false);
            }
            if let Some(delivered) = self.delivered
                && now >= delivered + FAREWELL
            {
                return Ok(true);
            }
            if !guest.station.with(|e, _| e.wants_to_send()) {
                rest(guest, source.fd().filter(|_| waits), next, look)?;
            }
        }
    }

    /// What an application does now: true when all is over, and true when only the source has nothing.
    fn act(&mut self, guest: &mut Guest, source: &mut Source) -> Result<(bool, bool), TransferError> {
        let now = guest.station.clock().now();
        let mut ending = None;
        guest.station.with(|endpoint, _| {
            while let Some((id, news)) = endpoint.news() {
                match news {
                    News::Delivered if id == self.id => _ = self.delivered.get_or_insert(now),
                    News::Ended if id == self.id => ending = endpoint.ending(id),
                    _ => {}
                }
            }
            let mut scrap = [0; 4096];
            while let Ok(read @ 1..) = endpoint.read(now, self.id, &mut scrap) {
                self.ignored += read as u64;
            }
        });
        let closed = guest.station.with(|e, _| e.connection(self.id).is_some_and(Connection::peer_closed));
        match ending {
            Some(Ending::Closed) => return Ok((true, false)),
            // what comes after everything has arrived changes nothing
            Some(_) if self.delivered.is_some() => return Ok((true, false)),
            Some(ending) => {
                let bytes = guest.station.with(|e, _| acknowledged(e.connection(self.id)));
                return Err(TransferError::Ended { ending, bytes });
            }
            None if self.delivered.is_some() && closed => return Ok((true, false)),
            None => {}
        }
        Ok((false, self.fill(guest, source)?))
    }

    /// Fills the send buffer, which grows with the window as the kernel's does: one that holds much more than
    /// a window only costs memory and time. True when the source has nothing now.
    fn fill(&mut self, guest: &mut Guest, source: &mut Source) -> Result<bool, TransferError> {
        for _ in 0..4 {
            if self.ended {
                return Ok(false);
            }
            if self.at == self.chunk.len() {
                let room = guest.station.with(|e, _| {
                    let c = e.connection(self.id)?;
                    // nothing is read for a call that may be refused: another address may answer
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
                        let _ = guest.station.with(|e, _| e.shutdown(self.id));
                        return Ok(false);
                    }
                    Some(_) => {}
                }
            }
            let bytes = &self.chunk[self.at..];
            match guest.station.with(|e, _| e.write(self.id, bytes)) {
                Ok(taken) => self.at += taken,
                // no room, or over: news will say
                Err(_) => return Ok(false),
            }
        }
        Ok(false)
    }

    fn report(&self, guest: &mut Guest, to: SocketAddr) -> (Option<FlowReport>, Instant) {
        let now = guest.station.clock().now();
        let report = guest.station.with(|e, _| {
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
