//! One direction of a link as a value.

use crate::drop_tail::Capacity;
use crate::dynamics::Dynamics;
use crate::queue::Discipline;
use bentpipe_base::{Duration, Probability, Rate, Size};

/// One direction of a link. Order of effects: queue, serialise, errors, propagate.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionSpec {
    /// Rate at which IP bytes plus `framing` are serialised.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Duration,
    /// How much may wait, the packet in service not counted.
    pub buffer: Capacity,
    /// Who is served next, and who is dropped.
    pub discipline: Discipline,
    /// Loss probability per packet.
    pub loss: Probability,
    /// Bit error rate over IP bytes plus framing; a packet survives when all its bits do.
    pub ber: Probability,
    /// Bytes that each packet takes on the link beyond its own.
    pub framing: Size,
    /// What changes during the run; `None` on most links.
    pub dynamics: Option<Box<Dynamics>>,
}

impl DirectionSpec {
    /// A direction that loses nothing and never changes, first in, first out.
    pub const fn new(rate: Rate, delay: Duration, buffer: Capacity) -> Self {
        Self {
            rate,
            delay,
            buffer,
            discipline: Discipline::Fifo,
            loss: Probability::ZERO,
            ber: Probability::ZERO,
            framing: Size::ZERO,
            dynamics: None,
        }
    }
}
