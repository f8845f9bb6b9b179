//! Receives a stream from a peer that connects to us.

use super::{AGAIN, CHUNK, FIN_TIMEOUT, LOOK, Sink, TransferError, TransferProgress, leave, wait_for_events};
use crate::endpoint::{ConnId, Ending, EndpointError, HostEndpoint, SocketEvent};
use bentpipe_base::Instant;
use bentpipe_report::{FlowKind, FlowReport, TcpReport, rate_bps};
use bentpipe_tcp::Config;
use core::net::SocketAddr;

/// Limit of half-open connections: more than arrive within an RTT, except in a SYN flood.
const BACKLOG: usize = 256;

/// Result of a received stream.
#[derive(Debug)]
pub struct Received {
    /// Report with the figures that a receiver knows.
    pub report: FlowReport,
    /// Time of the end; listening began at 0.
    pub end: Instant,
}

/// Receives one connection at `guest`'s port and writes its data to `sink`.
///
/// # Errors
/// When the connection fails, or the sink cannot be written.
pub fn receive(
    guest: &mut HostEndpoint,
    config: &Config,
    sink: &mut Sink,
    watch: &mut dyn FnMut(TransferProgress),
) -> Result<Received, TransferError> {
    let (id, from) = answer(guest, config)?;
    let start = guest.station.clock().now();
    let mut receiver = Receiver { id, start, chunk: Vec::new(), at: 0, bytes: 0, last: start, ended: None };
    let done = receiver.run(guest, sink, watch);
    let end = guest.station.clock().now();
    let is_whole = done.is_ok();
    leave(guest, |endpoint| if is_whole { endpoint.close(id) } else { endpoint.abort(id) });
    done?;
    let name = format!("{from} > port {}", guest.port);
    let goodput_bps = rate_bps(receiver.bytes, receiver.last.since(start));
    let tcp = TcpReport {
        scheme: "TCP".to_owned(),
        established_s: Some(start.as_secs_f64()),
        finished_s: Some(receiver.last.as_secs_f64()),
        bytes_acked: receiver.bytes,
        ..TcpReport::default()
    };
    let report = FlowReport::new(name, start, goodput_bps, FlowKind::Tcp(tcp));
    Ok(Received { report, end })
}

/// Returns the first connection that completes its handshake. Port scans and forged SYNs do not delay it.
fn answer(guest: &mut HostEndpoint, config: &Config) -> Result<(ConnId, SocketAddr), TransferError> {
    let port = guest.port;
    guest.station.with(|e, _| e.listen(port, config, BACKLOG)).map_err(TransferError::Call)?;
    loop {
        let next = guest.station.turn().map_err(TransferError::Port)?;
        let accepted = guest.station.with(|e, _| {
            let id = e.accept(port)?;
            e.stop_listening(port);
            Some((id, e.addresses(id)?.1))
        });
        if let Some((id, from)) = accepted {
            guest.station.port().keep_next_hop(from.ip());
            return Ok((id, from));
        }
        if !guest.station.with(|e, _| e.wants_to_send()) {
            let look = guest.station.clock().now() + LOOK;
            wait_for_events(guest, None, next, look)?;
        }
    }
}

struct Receiver {
    id: ConnId,
    start: Instant,
    /// Data read from the connection; not yet written from `at` on.
    chunk: Vec<u8>,
    at: usize,
    bytes: u64,
    last: Instant,
    /// Time at which the end of the stream was read.
    ended: Option<Instant>,
}

impl Receiver {
    fn run(
        &mut self,
        guest: &mut HostEndpoint,
        sink: &mut Sink,
        watch: &mut dyn FnMut(TransferProgress),
    ) -> Result<(), TransferError> {
        let mut look = self.start + LOOK;
        loop {
            let next = guest.station.turn().map_err(TransferError::Port)?;
            let mut over = false;
            guest.station.with(|e, _| {
                while let Some((id, news)) = e.next_event() {
                    over |= id == self.id && news == SocketEvent::Ended;
                }
            });
            let blocked = self.drain(guest, sink)?;
            let now = guest.station.clock().now();
            if now >= look {
                guest.station.with(|e, _| {
                    watch(TransferProgress::at(now, self.start, self.bytes, e.connection(self.id)));
                });
                look = now + LOOK;
            }
            // we send our FIN after everything is written; whether its acknowledgment arrives does not matter
            if let Some(ended) = self.ended
                && (over || now >= ended + FIN_TIMEOUT)
            {
                return Ok(());
            }
            if !guest.station.with(|e, _| e.wants_to_send()) {
                let next = if blocked { next.min(now + AGAIN) } else { next };
                wait_for_events(guest, None, next, look)?;
            }
        }
    }

    /// Writes arrived data to the sink; true if the sink takes no more now.
    fn drain(&mut self, guest: &mut HostEndpoint, sink: &mut Sink) -> Result<bool, TransferError> {
        loop {
            while self.at < self.chunk.len() {
                match sink.write(&self.chunk[self.at..]).map_err(TransferError::Sink)? {
                    0 => return Ok(true),
                    written => self.at += written,
                }
            }
            if self.ended.is_some() {
                return Ok(false);
            }
            let now = guest.station.clock().now();
            self.chunk.resize(CHUNK, 0);
            let read = guest.station.with(|e, _| e.read(now, self.id, &mut self.chunk));
            self.chunk.truncate(*read.as_ref().unwrap_or(&0));
            self.at = 0;
            match read {
                Ok(0) => {
                    self.ended = Some(now);
                    let _ = guest.station.with(|e, _| e.shutdown(self.id));
                    return Ok(false);
                }
                Ok(read) => {
                    self.bytes += read as u64;
                    self.last = now;
                    // send window updates first
                    if guest.station.with(|e, _| e.wants_to_send()) {
                        guest.station.send_out().map_err(TransferError::Port)?;
                    }
                }
                Err(EndpointError::Ended(Ending::Closed) | EndpointError::NotNow) => return Ok(false),
                Err(EndpointError::Ended(ending)) => return Err(TransferError::Ended(ending, self.bytes)),
                Err(other) => return Err(TransferError::Call(other)),
            }
        }
    }
}
