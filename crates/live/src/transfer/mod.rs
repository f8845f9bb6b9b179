//! One transfer with the engine as a real TCP: sends or receives a stream, and reports how it went.
//!
//! The caller supplies a [`Source`] or [`Sink`] and may observe progress ([`TransferProgress`]). One thread
//! does everything, so it never blocks on a slow source or sink (a pipe, a terminal).

mod options;
mod receive;
mod send;
mod streams;

pub use options::parse_options;
pub use receive::{Received, receive};
pub use send::{Failed, Sent, send};
pub use streams::{Sink, Source};

use crate::endpoint::{Ending, Endpoint, EndpointError, HostEndpoint, HostEndpointError};
use bentpipe_base::{Duration, Instant};
use bentpipe_os::wait;
use bentpipe_tcp::Connection;
use std::io;
use std::os::fd::BorrowedFd;

/// Time between two progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes moved between two turns of the network.
const CHUNK: usize = 256 << 10;
/// How long to wait for the peer's FIN after it has received everything.
const FIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a source or sink that was not ready is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// Progress of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferProgress {
    /// Time since its start.
    pub elapsed: Duration,
    /// Bytes that have arrived at the receiver's TCP.
    pub bytes: u64,
    /// Smoothed RTT; zero before the first sample.
    pub rtt: Duration,
    /// Segments sent, and retransmitted.
    pub segments: (u64, u64),
}

impl TransferProgress {
    fn at(now: Instant, start: Instant, bytes: u64, connection: Option<&Connection>) -> Self {
        let stats = connection.map(Connection::stats);
        Self {
            elapsed: now.since(start),
            bytes,
            rtt: connection.map_or(Duration::ZERO, |c| c.rtt().srtt()),
            segments: stats.map_or((0, 0), |s| (s.segments_sent, s.retransmits)),
        }
    }
}

/// Why a transfer failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The endpoint could not be set up.
    #[error(transparent)]
    Host(#[from] HostEndpointError),
    /// The connection attempt could not start.
    #[error(transparent)]
    Call(EndpointError),
    /// How the connection ended before everything had arrived, and the bytes that had.
    #[error("{0}, {1} bytes had arrived")]
    Ended(Ending, u64),
    /// The source cannot be read.
    #[error("what is to be sent cannot be read: {0}")]
    Source(#[source] io::Error),
    /// The sink cannot be written.
    #[error("what arrives cannot be written: {0}")]
    Sink(#[source] io::Error),
    /// The interface is gone.
    #[error("the interface: {0}")]
    Port(#[source] io::Error),
}

/// Waits for the network or for `other`, until `next` or `look`, unless there is something to send.
fn wait_for_events(
    host: &mut HostEndpoint,
    other: Option<BorrowedFd<'_>>,
    next: Instant,
    look: Instant,
) -> Result<(), TransferError> {
    if host.driver.with(|e, _| e.wants_to_send()) {
        return Ok(());
    }
    let network = host.driver.fd();
    let both = [network, other.unwrap_or(network)];
    let fds = &both[..=usize::from(other.is_some())];
    wait::wait(fds, Some(next.min(look)), &host.driver.clock, Duration::ZERO).map_err(TransferError::Port)?;
    Ok(())
}

/// Calls `act` and sends the packets that are ready, once: after this the process may end.
fn leave(host: &mut HostEndpoint, act: impl FnOnce(&mut Endpoint)) {
    host.driver.with(|endpoint, _| act(endpoint));
    // the process ends, so an error here does not matter
    let _ = host.driver.turn();
}
