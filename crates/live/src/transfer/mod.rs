//! One transfer with the engine as a real TCP: a stream of bytes to a peer, or from one, and the report of
//! how it went.
//!
//! Who calls brings where bytes come from or go to ([`Source`], [`Sink`]) and may watch ([`Look`]). One
//! thread does everything, so a source or sink that is slow (a pipe, a terminal) is asked whether it is ready
//! and never waited for.

mod options;
mod receive;
mod send;
mod streams;

pub use options::{Choice, choose};
pub use receive::{Received, receive};
pub use send::{Failed, Sent, send};
pub use streams::{Sink, Source};

use crate::endpoint::{Ending, Endpoint, EndpointError, Guest, GuestError};
use bentpipe_base::{Duration, Instant, Size};
use bentpipe_os::wait;
use bentpipe_tcp::Connection;
use std::io;
use std::os::fd::BorrowedFd;

/// Most bytes that a sender holds unacknowledged, unless it is told: what 2.5 Gbit/s need over 100 ms. It
/// takes as much of it as its window needs.
pub const SEND_BUFFER: Size = Size(32 << 20);
/// Between two looks of who watches.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes that are moved between two turns of the network.
const CHUNK: usize = 256 << 10;
/// A peer that has everything is waited for so long until it has said its own end.
const FAREWELL: Duration = Duration::from_secs(10);
/// A sink or source that is not ready is asked again after this.
const AGAIN: Duration = Duration::from_millis(2);

/// How a transfer stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Time since it began.
    pub elapsed: Duration,
    /// Bytes that arrived at the peer's TCP, or at ours.
    pub bytes: u64,
    /// The smoothed round trip; zero before the first.
    pub rtt: Duration,
    /// Segments sent, and sent again.
    pub segments: (u64, u64),
}

impl Look {
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
    /// The endpoint has no place here.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// The call could not even begin.
    #[error(transparent)]
    Call(EndpointError),
    /// The connection ended before everything had arrived.
    #[error("{ending}, {bytes} bytes had arrived")]
    Ended {
        /// How.
        ending: Ending,
        /// How many bytes had arrived by then.
        bytes: u64,
    },
    /// Bytes cannot be read.
    #[error("what is to be sent cannot be read: {0}")]
    Source(#[source] io::Error),
    /// Bytes cannot be written.
    #[error("what arrives cannot be written: {0}")]
    Sink(#[source] io::Error),
    /// The interface is gone.
    #[error("the interface: {0}")]
    Port(#[source] io::Error),
}

/// Waits for the network, and for `other` too where there is something to wait for, until `next` or the next
/// look.
fn rest(
    guest: &Guest,
    other: Option<BorrowedFd<'_>>,
    next: Instant,
    look: Instant,
) -> Result<(), TransferError> {
    let clock = guest.station.clock();
    let both = [guest.station.fd(), other.unwrap_or_else(|| guest.station.fd())];
    let fds = if other.is_some() { &both[..] } else { &both[..1] };
    wait::wait(fds, Some(next.min(look)), clock, Duration::ZERO).map_err(TransferError::Port)?;
    Ok(())
}

/// Lets what there is to send leave, and no more: after this the process may end.
fn leave(guest: &mut Guest, act: impl FnOnce(&mut Endpoint)) {
    guest.station.with(|endpoint, _| act(endpoint));
    // whether it arrives is not ours to know any more
    let _ = guest.station.turn();
}
