//! One direction of a link as a value, and the link that it makes.

use crate::channel::{Channel, Errors};
use crate::dynamics::Dynamics;
use crate::link::Link;
use crate::queue::{Capacity, Discipline, Queue};
use bentpipe_base::{Duration, Instant, NodeId, Probability, Purpose, Rate, Size, World};

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

    /// An idle link. `name` is the direction's: its random streams are opened by it.
    pub fn link(&self, name: &str, world: &mut World) -> Link {
        let channel = match &self.dynamics {
            Some(dynamics) if !dynamics.is_constant() => Channel::varying(self, dynamics, name, world),
            _ => self.constant(name, world),
        };
        // only a discipline that hashes needs a key
        let key = match self.discipline {
            Discipline::FqCodel(_) => {
                let rng = world.open_rng(name, Purpose::Table);
                world.cx(Instant::ZERO, NodeId(0)).rng(rng).bits()
            }
            _ => 0,
        };
        Link::new(Queue::new(self.buffer, self.discipline, key), channel)
    }

    fn constant(&self, name: &str, world: &mut World) -> Channel {
        let lossy = !self.loss.is_zero() || !self.ber.is_zero();
        let errors = lossy.then(|| Errors {
            rng: world.open_rng(name, Purpose::Errors),
            loss: self.loss,
            ber: self.ber,
        });
        Channel::new(self.rate, self.delay, self.framing, errors)
    }
}
