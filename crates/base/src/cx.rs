//! The context: everything a node can access outside itself.
//!
//! `World` is the driver's side (event queue, outbox, random streams, packet pool, trace sink); `Cx` is the
//! node's view during one call. Simulated and live drivers own a `World` and differ in what advances `now`.

use crate::addresses::Addresses;
use crate::events::EventQueue;
use crate::ids::{NodeId, Port, Slot};
use crate::outbox::Outbox;
use crate::packet::{Addr, Body, Packet, Pkt};
use crate::rng::{Purpose, Rng, RngSlot};
use crate::shift::Walk;
use crate::time::Instant;
use crate::trace::{Event, Mask, Sink};
use core::net::IpAddr;

/// What a driver owns and lends to nodes.
#[derive(Default)]
pub struct World {
    /// Wake-ups that nodes requested.
    pub events: EventQueue,
    /// Packets sent and not yet handed to the node at the other end of the wire, oldest first.
    pub outbox: Outbox,
    /// Maps the addresses of packets to real ones.
    pub addresses: Addresses,
    rngs: Vec<Rng>,
    pool: Vec<Pkt>,
    /// Only for a driver that counts the references to packet bytes.
    counted: Option<Counted>,
    sink: Option<Box<dyn Sink>>,
    mask: Mask,
    seed: u64,
}

/// Packets that were recycled and bodies that were duplicated, until the driver takes them.
#[derive(Debug, Default)]
struct Counted {
    recycled: Vec<Pkt>,
    duplicated: Vec<Body>,
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

    /// True if the sink wants events of this kind.
    pub fn traces(&self, kind: Mask) -> bool {
        self.sink.is_some() && self.mask.wants(kind)
    }

    /// Takes a recycled packet, unchanged, so that a live driver can free its bytes.
    #[inline]
    pub fn take_recycled(&mut self) -> Option<Pkt> {
        match &mut self.counted {
            Some(counted) => counted.recycled.pop(),
            None => self.pool.pop(),
        }
    }

    /// Turns on reference counting by the driver, which returns packets to the pool itself.
    pub fn count_holders(&mut self) {
        self.counted.get_or_insert_default();
    }

    /// Takes the body of a packet that a node copied; take all of these before recycled packets.
    #[inline]
    pub fn take_duplicated(&mut self) -> Option<Body> {
        self.counted.as_mut()?.duplicated.pop()
    }

    /// Returns a packet to the pool after its bytes were accounted for.
    #[inline]
    pub fn return_to_pool(&mut self, packet: Pkt) {
        self.pool.push(packet);
    }

    /// Visits random streams and what is between the nodes.
    pub fn shift(&mut self, walk: &mut Walk<'_>) {
        walk.expect(self.outbox.is_empty() && self.counted.is_none(), "packets of a live driver");
        walk.expect(self.sink.is_none() || self.mask == Mask::default(), "a trace that wants each packet");
        for rng in &self.rngs {
            walk.same(&rng.drawn());
        }
        self.events.shift(walk);
    }

    /// Frees the wake-ups, the packets between nodes and those in the pool: the run is over.
    pub fn end(&mut self) {
        self.events = EventQueue::default();
        self.outbox = Outbox::default();
        self.pool = Vec::new();
    }

    /// Returns the context of `node` for one call.
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
    /// The current time, simulated or monotonic.
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

    /// Requests `Input::Timer(slot)` at `at`. Wake-ups cannot be cancelled, so request one only if `at` is
    /// earlier than those pending.
    #[inline]
    pub fn wake(&mut self, slot: Slot, at: Instant) {
        self.wake_since(slot, at, self.now);
    }

    /// The same if the wake-up is known since another time than now: of those due at one time, the one that
    /// is known for longer comes first.
    #[inline]
    pub fn wake_since(&mut self, slot: Slot, at: Instant, since: Instant) {
        self.world.events.push(at, since, self.node, slot);
    }

    /// The same for a timer that most often has moved on when it is due: of the wake-ups due at one time it
    /// comes last, whenever it was requested.
    #[inline]
    pub fn wake_last(&mut self, slot: Slot, at: Instant) {
        self.world.events.push_last(at, self.node, slot);
    }

    /// The random stream that was opened as `slot`.
    #[inline]
    pub fn rng(&mut self, slot: RngSlot) -> &mut Rng {
        &mut self.world.rngs[slot.0 as usize]
    }

    /// Opens a random stream during the run, as [`World::open_rng`] does.
    pub fn open_rng(&mut self, owner: &str, purpose: Purpose) -> RngSlot {
        self.world.open_rng(owner, purpose)
    }

    /// The real address of a packet address, if there is one.
    pub fn address(&self, addr: Addr) -> Option<IpAddr> {
        self.world.addresses.address(addr)
    }

    /// The packet address of a real one, if it has one.
    pub fn addr_of(&self, address: IpAddr) -> Option<Addr> {
        self.world.addresses.known(address)
    }

    /// Returns a blank packet, from the pool if possible. Always inlined: most of what is blanked is then
    /// written only once, with what the caller puts there.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: 2 % of the instructions of a packet")]
    pub fn packet(&mut self) -> Pkt {
        let Some(mut packet) = self.world.pool.pop() else { return new_packet() };
        *packet = Packet::default();
        packet
    }

    /// Returns a packet to the pool. In a simulation a node may drop it instead, which is only slower. With
    /// real packets it must not, because the driver counts references (see [`Cx::duplicate`]).
    #[inline]
    pub fn recycle(&mut self, packet: Pkt) {
        match &mut self.world.counted {
            Some(counted) => counted.recycled.push(packet),
            None => self.world.pool.push(packet),
        }
    }

    /// Returns a copy of a packet; its body may be narrowed afterwards. Both packets now reference the bytes,
    /// and each must be sent or recycled.
    #[inline]
    pub fn duplicate(&mut self, packet: &Packet) -> Pkt {
        if let Some(counted) = &mut self.world.counted {
            counted.duplicated.push(packet.body);
        }
        let mut copy = self.world.pool.pop().unwrap_or_default();
        (*copy).clone_from(packet);
        copy
    }

    /// Reports an event if the sink wants its kind.
    #[inline]
    pub fn trace<'e>(&mut self, kind: Mask, event: impl FnOnce() -> Event<'e>) {
        if self.world.mask.wants(kind)
            && let Some(sink) = &mut self.world.sink
        {
            sink.event(self.now, self.node, &event());
        }
    }
}

#[cold]
fn new_packet() -> Pkt {
    Pkt::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_counts_hears_of_copies_and_of_what_was_given_back() {
        let mut world = World::new(1);
        world.count_holders();
        let mut cx = world.cx(Instant::ZERO, NodeId(0));
        let mut packet = cx.packet();
        packet.body = Body { off: 7, len: 100 };
        let copy = cx.duplicate(&packet);
        assert_eq!(copy, packet);
        cx.recycle(copy);
        // a recycled packet is not reused before the driver has seen it
        assert_eq!(cx.packet().body, Body::default());
        assert_eq!(
            (world.take_duplicated(), world.take_duplicated()),
            (Some(Body { off: 7, len: 100 }), None)
        );
        let back = world.take_recycled().unwrap();
        assert_eq!((back.body.off, world.take_recycled()), (7, None));
        world.return_to_pool(back);
        assert_eq!(world.cx(Instant::ZERO, NodeId(0)).packet().body.len, 0);
    }
}
