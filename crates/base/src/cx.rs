//! The context: all ambience a node ever sees.
//!
//! `World` is the driver's side (event queue, outbox, random streams, packet pool, trace sink); `Cx` is the node's side
//! for the length of one call. A simulated and a live driver both own a `World` and differ only in who
//! advances `now`.

use crate::events::EventQueue;
use crate::ids::{NodeId, Port, Slot};
use crate::packet::{Packet, Pkt};
use crate::rng::{Purpose, Rng, RngSlot};
use crate::time::Instant;
use crate::trace::{Event, Mask, Sink};
use std::collections::VecDeque;

/// What a driver owns and lends to nodes.
#[derive(Default)]
pub struct World {
    /// Wake-ups that nodes asked for.
    pub events: EventQueue,
    /// Packets sent and not yet handed to the node at the other end of the wire, oldest first.
    pub outbox: VecDeque<(NodeId, Port, Pkt)>,
    rngs: Vec<Rng>,
    pool: Vec<Pkt>,
    sink: Option<Box<dyn Sink>>,
    mask: Mask,
    seed: u64,
}

impl World {
    /// An empty world whose random streams derive from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Opens the random stream of `owner` for `purpose`.
    pub fn open_rng(&mut self, owner: &str, purpose: Purpose) -> RngSlot {
        self.rngs.push(Rng::new(self.seed, owner, purpose));
        RngSlot((self.rngs.len() - 1) as u32)
    }

    /// Installs the sink that receives trace events.
    pub fn set_sink(&mut self, sink: Box<dyn Sink>) {
        self.mask = sink.mask();
        self.sink = Some(sink);
    }

    /// Takes the sink back.
    pub fn take_sink(&mut self) -> Option<Box<dyn Sink>> {
        self.mask = Mask::default();
        self.sink.take()
    }

    /// A packet that was given back, as it was: a live driver frees what it stands for.
    #[inline]
    pub fn take_recycled(&mut self) -> Option<Pkt> {
        self.pool.pop()
    }

    /// The node's side, for one call.
    #[inline]
    pub fn cx(&mut self, now: Instant, node: NodeId) -> Cx<'_> {
        Cx { now, node, world: self }
    }
}

impl core::fmt::Debug for World {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut s = f.debug_struct("World");
        s.field("events", &self.events.len()).field("outbox", &self.outbox.len()).finish_non_exhaustive()
    }
}

/// What a node sees of the world during one call.
#[derive(Debug)]
pub struct Cx<'a> {
    /// The time: simulated or monotonic, the node cannot tell.
    pub now: Instant,
    node: NodeId,
    world: &'a mut World,
}

impl Cx<'_> {
    /// Sends a packet out of one of this node's ports.
    #[inline]
    pub fn send(&mut self, port: Port, packet: Pkt) {
        self.world.outbox.push_back((self.node, port, packet));
    }

    /// Asks for `Input::Timer(slot)` at `at`. Ask only when `at` is earlier than what was asked before: entries are not taken back.
    #[inline]
    pub fn wake(&mut self, slot: Slot, at: Instant) {
        self.world.events.push(at, self.node, slot);
    }

    /// The random stream that was opened as `slot`.
    #[inline]
    pub fn rng(&mut self, slot: RngSlot) -> &mut Rng {
        &mut self.world.rngs[slot.0 as usize]
    }

    /// Opens a random stream, as [`World::open_rng`] does, for what a node was not built with.
    pub fn open_rng(&mut self, owner: &str, purpose: Purpose) -> RngSlot {
        self.world.open_rng(owner, purpose)
    }

    /// A blank packet, from the pool when one is there.
    #[inline]
    pub fn packet(&mut self) -> Pkt {
        match self.world.pool.pop() {
            Some(mut p) => {
                *p = Packet::default();
                p
            }
            None => Pkt::default(),
        }
    }

    /// Gives a packet back to the pool. Dropping it instead is correct, only slower.
    #[inline]
    pub fn recycle(&mut self, packet: Pkt) {
        self.world.pool.push(packet);
    }

    /// Reports a fact if somebody listens for its kind.
    #[inline]
    pub fn trace<'e>(&mut self, kind: Mask, event: impl FnOnce() -> Event<'e>) {
        if self.world.mask.wants(kind)
            && let Some(sink) = &mut self.world.sink
        {
            sink.event(self.now, self.node, &event());
        }
    }
}
