//! Trace events: a packet was sent, delivered, or dropped and why; an RTT was sampled.
//!
//! `Cx::trace` takes a closure and calls it only if the sink wants that kind of event, so unused events cost
//! nothing. Time series and captures are made by sinks; the engine itself never prints or logs.

use crate::ids::NodeId;
use crate::packet::Packet;
use crate::report_enum;
use crate::time::{Duration, Instant};

report_enum! {
    /// Why a packet was dropped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum DropCause {
        /// The queue was full.
        QueueFull = "queue_full",
        /// Dropped by the queue's AQM to keep the delay short (CoDel, FQ-CoDel).
        Aqm = "aqm",
        /// Lost by the link's per-packet error process.
        PacketLoss = "packet_loss",
        /// Lost to at least one bit error.
        BitError = "bit_error",
        /// Lost by the link's burst-loss process, in the bad state or, if that loses too, in the good state.
        Burst = "burst",
        /// Sent while the link was down: shadowing, or an announced outage.
        Outage = "outage",
        /// Lost while a terminal changed to another satellite.
        Handover = "handover",
        /// The fade was too deep for the coding.
        Fade = "fade",
        /// Longer than the MTU of the link.
        TooBig = "too_big",
        /// A router had no route to the destination.
        NoRoute = "no_route",
        /// The hop limit was exceeded.
        HopLimit = "hop_limit",
        /// The host has no such connection and no listener.
        NoListener = "no_listener",
    }
}

/// A trace event.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A packet entered a link, before its queue.
    Sent(&'a Packet),
    /// A packet left a link towards its far end.
    Delivered(&'a Packet),
    /// A packet was dropped. A link is evaluated lazily, so a loss after the queue may be reported after
    /// later events. Its timestamp is the time of the loss: the start of the transmission, or its end on a
    /// link that varies over time.
    Dropped(&'a Packet, DropCause),
    /// An RTT sample used for the retransmission timer.
    RoundTrip {
        /// Local port of the connection.
        port: u16,
        /// The sample.
        rtt: Duration,
    },
}

/// The kinds of event a sink wants, as a bit set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask(pub u8);

impl Mask {
    /// Packets sent, delivered and dropped.
    pub const PACKETS: Self = Self(1);
    /// RTT samples.
    pub const ROUND_TRIPS: Self = Self(2);

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if the sets have a kind in common.
    #[inline]
    pub const fn wants(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Receives trace events.
pub trait Sink {
    /// Returns the kinds of event it wants; asked once, when it is installed.
    fn mask(&self) -> Mask;
    /// Handles an event at time `now` from `node`.
    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>);
}
