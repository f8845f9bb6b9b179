//! Receives a stream from a peer that connects to us.

use super::{
    CHUNK, FIN_TIMEOUT, PROGRESS_INTERVAL, RETRY_INTERVAL, Sink, TransferError, TransferProgress, leave,
    wait_for_events,
};
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

/// Receives one connection at `host`'s port and writes its data to `sink`.
///
/// # Errors
/// When the connection fails, or the sink cannot be written.
pub fn receive(
    host: &mut HostEndpoint,
    config: &Config,
    sink: &mut Sink,
    watch: &mut dyn FnMut(TransferProgress),
) -> Result<Received, TransferError> {
    let (id, from) = accept_first(host, config)?;
    let start = host.driver.clock.now();
    let mut receiver = Receiver { id, start, chunk: Vec::new(), at: 0, bytes: 0, last: start, ended: None };
    let done = receiver.run(host, sink, watch);
    let end = host.driver.clock.now();
    let is_whole = done.is_ok();
    leave(host, |endpoint| if is_whole { endpoint.close(id) } else { endpoint.abort(id) });
    done?;
    let name = format!("{from} > port {}", host.port);
    let goodput_bps = rate_bps(receiver.bytes, receiver.last.since(start));
    let tcp = TcpReport {
        scheme: "TCP".into(),
        established_s: Some(start.as_secs_f64()),
        finished_s: Some(receiver.last.as_secs_f64()),
        bytes_acked: receiver.bytes,
        ..TcpReport::default()
    };
    let report = FlowReport::new(name, start, goodput_bps, FlowKind::from(tcp));
    Ok(Received { report, end })
}

/// Returns the first connection that completes its handshake. Port scans and forged SYNs do not delay it.
fn accept_first(host: &mut HostEndpoint, config: &Config) -> Result<(ConnId, SocketAddr), TransferError> {
    let port = host.port;
    host.driver.with(|e, _| e.listen(port, config, BACKLOG)).map_err(TransferError::Call)?;
    loop {
        let next = host.driver.turn().map_err(TransferError::Port)?;
        let accepted = host.driver.with(|e, _| {
            let id = e.accept(port)?;
            e.stop_listening(port);
            Some((id, e.addresses(id)?.1))
        });
        if let Some((id, from)) = accepted {
            host.driver.port.keep_next_hop(from.ip());
            return Ok((id, from));
        }
        let look = host.driver.clock.now() + PROGRESS_INTERVAL;
        wait_for_events(host, None, next, look)?;
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
        host: &mut HostEndpoint,
        sink: &mut Sink,
        watch: &mut dyn FnMut(TransferProgress),
    ) -> Result<(), TransferError> {
        let mut look = self.start + PROGRESS_INTERVAL;
        loop {
            let next = host.driver.turn().map_err(TransferError::Port)?;
            let mut over = false;
            host.driver.with(|e, _| {
                while let Some((id, event)) = e.next_event() {
                    over |= id == self.id && event == SocketEvent::Ended;
                }
            });
            let blocked = self.drain(host, sink)?;
            let now = host.driver.clock.now();
            if now >= look {
                host.driver.with(|e, _| {
                    watch(TransferProgress::at(now, self.start, self.bytes, e.connection(self.id)));
                });
                look = now + PROGRESS_INTERVAL;
            }
            // we send our FIN after everything is written; whether its acknowledgment arrives does not matter
            if self.ended.is_some_and(|ended| over || now >= ended + FIN_TIMEOUT) {
                return Ok(());
            }
            let next = if blocked { next.min(now + RETRY_INTERVAL) } else { next };
            wait_for_events(host, None, next, look)?;
        }
    }

    /// Writes arrived data to the sink; true if the sink takes no more now.
    fn drain(&mut self, host: &mut HostEndpoint, sink: &mut Sink) -> Result<bool, TransferError> {
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
            let now = host.driver.clock.now();
            self.chunk.resize(CHUNK, 0);
            let read = host.driver.with(|e, _| e.read(now, self.id, &mut self.chunk));
            self.chunk.truncate(*read.as_ref().unwrap_or(&0));
            self.at = 0;
            match read {
                Ok(0) => {
                    self.ended = Some(now);
                    let _ = host.driver.with(|e, _| e.shutdown(self.id));
                    return Ok(false);
                }
                Ok(read) => {
                    self.bytes += read as u64;
                    self.last = now;
                    // send window updates first
                    if host.driver.with(|e, _| e.wants_to_send()) {
                        host.driver.send_out().map_err(TransferError::Port)?;
                    }
                }
                Err(EndpointError::Ended(Ending::Closed) | EndpointError::WouldBlock) => return Ok(false),
                Err(EndpointError::Ended(ending)) => return Err(TransferError::Ended(ending, self.bytes)),
                Err(other) => return Err(TransferError::Call(other)),
            }
        }
    }
}
