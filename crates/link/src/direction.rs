//! Description of one direction of a link.

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
    /// Capacity of the queue; the packet in service is not counted.
    pub buffer: Capacity,
    /// Which packet is served next, and which is dropped.
    pub discipline: Discipline,
    /// Loss probability per packet.
    pub loss: Probability,
    /// Bit error rate over IP bytes plus framing; one bit error loses the packet.
    pub ber: Probability,
    /// Bytes of link-layer overhead of each packet.
    pub framing: Size,
    /// What changes during the run; `None` on most links.
    pub dynamics: Option<Box<Dynamics>>,
}

impl DirectionSpec {
    /// A constant direction without losses, first in, first out.
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
