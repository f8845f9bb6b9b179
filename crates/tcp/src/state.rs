//! Connection states, tuples, events and counters.

use crate::steady::SteadyRate;
use bentpipe_base::histogram::Histogram;
use bentpipe_base::{Addr, Instant, RngSlot, Seq, Size};

/// States of RFC 9293, figure 5, without LISTEN: listening is up to the host, see [`crate::Offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// SYN sent.
    SynSent,
    /// SYN received; ours is not acknowledged yet.
    SynReceived,
    /// Open.
    Established,
    /// We closed first; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer still sends.
    FinWait2,
    /// The peer closed; we still send.
    CloseWait,
    /// Both closed at once; our FIN is not acknowledged.
    Closing,
    /// The peer closed first, then we did; our FIN is not acknowledged.
    LastAck,
    /// Both FINs are acknowledged; old duplicates die out.
    TimeWait,
    /// The connection no longer exists.
    Closed,
}

impl State {
    /// True once both SYNs are acknowledged.
    #[inline]
    pub const fn synchronised(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }
    /// True while data may be sent.
    #[inline]
    pub const fn may_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }
}

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// Our address and port.
    pub local: (Addr, u16),
    /// The peer's address and port.
    pub remote: (Addr, u16),
}

/// Random values of a connection, given by its host.
#[derive(Clone, Copy, Debug)]
pub struct RandomValues {
    /// Initial sequence number (RFC 6528: unpredictable to others).
    pub isn: Seq,
    /// Start of the timestamp clock.
    pub timestamp: u32,
    /// Random stream for sender jitter, if configured.
    pub jitter: Option<RngSlot>,
}

/// Events for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is open.
    Established,
    /// The peer has sent all it will.
    PeerClosed,
    /// Both directions are closed and everything is acknowledged.
    Closed,
    /// The peer reset the connection, or refused it.
    Reset,
    /// The peer did not answer any more.
    TimedOut,
    /// The connection could not be opened: a router or the peer's host reported it unreachable.
    Unreachable,
}

/// Counters of one end.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// When the handshake ended.
    pub established_at: Option<Instant>,
    /// When the last byte of a closed stream was acknowledged.
    pub finished_at: Option<Instant>,
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Of these, retransmissions.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Timeouts and recoveries found to be spurious.
    pub undone: u64,
    /// Payload bytes acknowledged.
    pub bytes_acked: Size,
    /// When the peer's window first kept the sender from sending more while data was outstanding.
    pub opened_at: Option<Instant>,
    /// Rate of new payload in steady state.
    pub steady: SteadyRate,
    /// Round-trip time samples.
    pub rtt: Histogram,
}
