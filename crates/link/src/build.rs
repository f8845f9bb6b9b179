//! Builds a link from its description.

use crate::channel::{Channel, Errors};
use crate::direction::DirectionSpec;
use crate::link::Link;
use crate::queue::{Discipline, Queue};
use bentpipe_base::{Instant, NodeId, Purpose, World};

impl DirectionSpec {
    /// Builds an idle link. `name` is the name of the direction and owns its random streams.
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
