//! Traces are typed facts: "the window changed", "a packet was dropped, and why".
//!
//! Free when nobody listens: `Cx::trace` takes a closure and calls it only when the sink wants that kind.
//! CSV series, pcapng, pictures and the live view are sinks; the engine never prints or logs.

use crate::ids::NodeId;
use crate::packet::Packet;
use crate::time::{Duration, Instant};
use crate::units::Size;

/// Why a packet ended before its destination. Every drop has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropCause {
    /// The queue was full.
    QueueFull,
    /// The queue's discipline gave it up to keep the delay short (CoDel, FQ-CoDel).
    Aqm,
    /// Lost by the link's per-packet error process.
    PacketLoss,
    /// Lost to at least one bit error.
    BitError,
    /// Lost by the link's burst process, in a bad spell or, where these lose too, a good one.
    Burst,
    /// Sent while the link was blind: shadowing, or an announced outage.
    Outage,
    /// Lost while a terminal changed to another satellite.
    Handover,
    /// The fade was deeper than the coding can bear.
    Fade,
    /// A router had no route to the destination.
    NoRoute,
    /// The hop limit was used up.
    HopLimit,
    /// The host has no such connection and no listener.
    NoListener,
}

impl DropCause {
    /// All causes, in the order reports list them.
    pub const ALL: [Self; 11] = [
        Self::QueueFull,
        Self::Aqm,
        Self::PacketLoss,
        Self::BitError,
        Self::Burst,
        Self::Outage,
        Self::Handover,
        Self::Fade,
        Self::NoRoute,
        Self::HopLimit,
        Self::NoListener,
    ];

    /// The key used in reports.
    pub const fn key(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Aqm => "aqm",
            Self::PacketLoss => "packet_loss",
            Self::BitError => "bit_error",
            Self::Burst => "burst",
            Self::Outage => "outage",
            Self::Handover => "handover",
            Self::Fade => "fade",
            Self::NoRoute => "no_route",
            Self::HopLimit => "hop_limit",
            Self::NoListener => "no_listener",
        }
    }
}

/// One fact.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A packet entered a link, before its queue.
    Sent(&'a Packet),
    /// A packet left a link towards its far end.
    Delivered(&'a Packet),
    /// A packet was dropped. A link works when it is touched, so a loss behind the queue may be told after
    /// events that were later; its time is that of the loss: when its transmission began, or ended on a link
    /// that changes.
    Dropped(&'a Packet, DropCause),
    /// A sender's windows after an acknowledgment, loss or timeout.
    Window {
        /// Local port of the connection.
        port: u16,
        /// Congestion window.
        cwnd: Size,
        /// Slow-start threshold, where the scheme has one.
        ssthresh: Option<Size>,
        /// Bytes in flight.
        in_flight: Size,
        /// The peer's window.
        peer_window: Size,
    },
    /// A round-trip sample that fed the retransmission timer.
    RoundTrip {
        /// Local port of the connection.
        port: u16,
        /// The sample.
        rtt: Duration,
    },
}

/// Which kinds of fact a sink wants, as a bit set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask(pub u8);

impl Mask {
    /// Packets sent, delivered and dropped.
    pub const PACKETS: Self = Self(1);
    /// Window changes.
    pub const WINDOWS: Self = Self(2);
    /// Round-trip samples.
    pub const ROUND_TRIPS: Self = Self(4);

    /// The kinds of either.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True when any kind of `other` is wanted.
    #[inline]
    pub const fn wants(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Receives facts.
pub trait Sink {
    /// The kinds it wants; asked once, when it is installed.
    fn mask(&self) -> Mask;
    /// One fact at `now` from `node`.
    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>);
}
