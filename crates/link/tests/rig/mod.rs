//! A single link: packets enter at given times, and the fate of each is recorded.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part; this is test code")]

use bentpipe_base::trace::{DropCause, Event, Mask, Sink};
use bentpipe_base::{
    Duration, Ecn, Input, Instant, Node, NodeId, Packet, Port, Probability, Rate, Size, Slot, TooBig, World,
};
use bentpipe_link::{
    Capacity, Change, Channel, DirectionSpec, Discipline, Dynamics, Link, LinkSnapshot, LossDraw, Queue,
    UserChanges,
};
use std::sync::{Arc, Mutex};

/// The fate of the packets, by number.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fates {
    pub(crate) delivered: Vec<(Instant, u64)>,
    pub(crate) dropped: Vec<(u64, DropCause)>,
    /// Packets delivered with CE.
    pub(crate) marked: Vec<u64>,
}

impl Fates {
    pub(crate) fn arrivals(&self) -> Vec<Instant> {
        self.delivered.iter().map(|d| d.0).collect()
    }
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.delivered.iter().map(|d| d.1).collect()
    }
}

struct Drops(Arc<Mutex<Vec<(u64, DropCause)>>>);

impl Sink for Drops {
    fn mask(&self) -> Mask {
        Mask::PACKETS
    }
    fn event(&mut self, _: Instant, _: NodeId, event: &Event<'_>) {
        if let Event::Dropped(packet, cause) = event {
            self.0.lock().unwrap().push((packet.body.off, *cause));
        }
    }
}

pub(crate) struct Rig {
    pub(crate) world: World,
    pub(crate) link: Link,
    pub(crate) now: Instant,
    drops: Arc<Mutex<Vec<(u64, DropCause)>>>,
    delivered: Vec<(Instant, u64)>,
    marked: Vec<u64>,
    /// Messages to senders.
    pub(crate) told: Vec<TooBig>,
}

pub(crate) fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

pub(crate) fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps).unwrap()
}

pub(crate) fn chance(p: f64) -> Probability {
    Probability::new(p).unwrap()
}

/// 8 Mbit/s: a byte takes a microsecond, a packet of 1000 bytes a millisecond. No errors, 100 ms.
pub(crate) fn base() -> DirectionSpec {
    DirectionSpec {
        rate: rate(8_000_000),
        delay: Duration::from_millis(100),
        buffer: Capacity::Packets(1000),
        discipline: Discipline::Fifo,
        loss: Probability::ZERO,
        loss_draw: LossDraw::default(),
        ber: Probability::ZERO,
        framing: Size::ZERO,
        mtu: None,
        dynamics: None,
    }
}

impl Rig {
    pub(crate) fn new(base: &DirectionSpec, dynamics: &Dynamics) -> Self {
        Self::with(base, dynamics, Capacity::Packets(1000), "link", 1)
    }

    pub(crate) fn with(
        base: &DirectionSpec,
        dynamics: &Dynamics,
        capacity: Capacity,
        name: &str,
        seed: u64,
    ) -> Self {
        let mut world = World::new(seed);
        let channel = Channel::varying(base, dynamics, name, &mut world);
        Self::around(world, channel, capacity)
    }

    /// A link on which nothing changes by itself, with errors where `base` has any.
    pub(crate) fn constant(base: &DirectionSpec, capacity: Capacity, seed: u64) -> Self {
        let mut world = World::new(seed);
        let link = DirectionSpec { buffer: capacity, ..base.clone() }.link("link", &mut world);
        Self::of(world, link)
    }

    pub(crate) fn around(world: World, channel: Channel, capacity: Capacity) -> Self {
        Self::queued(world, channel, Queue::new(capacity, Discipline::Fifo, 0))
    }

    /// A link with any queue.
    pub(crate) fn queued(world: World, channel: Channel, queue: Queue) -> Self {
        Self::of(world, Link::new(queue, channel))
    }

    fn of(mut world: World, link: Link) -> Self {
        let drops = Arc::new(Mutex::new(Vec::new()));
        world.set_sink(Box::new(Drops(Arc::clone(&drops))));
        Self {
            world,
            link,
            now: Instant::ZERO,
            drops,
            delivered: Vec::new(),
            marked: Vec::new(),
            told: Vec::new(),
        }
    }

    fn handle(&mut self, input: Input) {
        let mut cx = self.world.cx(self.now, NodeId(0));
        self.link.handle(&mut cx, input);
        while let Some((_, port, packet)) = self.world.outbox.pop_front() {
            if port != Port(0) {
                self.told.push(packet.too_big().unwrap());
                continue;
            }
            self.delivered.push((self.now, packet.body.off));
            self.marked.extend((packet.ecn == Ecn::Ce).then_some(packet.body.off));
        }
    }

    /// Runs the link's own wake-ups up to `at`.
    pub(crate) fn run(&mut self, at: Instant) {
        while let Some(wake) = self.world.events.pop_until(at) {
            assert!(wake.at >= self.now, "woken in the past");
            self.now = wake.at;
            self.handle(Input::Timer(wake.slot));
        }
        self.now = at;
    }

    /// Sends a packet of `size` bytes at `at`.
    pub(crate) fn send(&mut self, at: Instant, number: u64, size: u32) {
        self.send_as(at, number, size, |_| {});
    }

    /// Like `send`; `say` sets more fields of the packet.
    pub(crate) fn send_as(&mut self, at: Instant, number: u64, size: u32, say: impl FnOnce(&mut Packet)) {
        self.run(at);
        let mut packet = Packet::default();
        packet.body.off = number;
        say(&mut packet);
        packet.seal();
        packet.body.len = size - u32::from(packet.header_len);
        self.handle(Input::Packet(Port(0), Box::new(packet)));
    }

    /// Calls the link although nothing is due.
    pub(crate) fn touch(&mut self, at: Instant) {
        self.run(at);
        self.handle(Input::Timer(Slot(0)));
    }

    /// Changes the link as a user.
    pub(crate) fn change(&mut self, at: Instant, change: &Change) {
        self.run(at);
        self.link.change(&mut self.world.cx(at, NodeId(0)), "link", change);
    }

    /// Starts an outage as a user.
    pub(crate) fn outage(&mut self, at: Instant, length: Duration) {
        self.run(at);
        self.link.outage(&mut self.world.cx(at, NodeId(0)), "link", length);
    }

    /// Resets all changes of the user.
    pub(crate) fn reset(&mut self, at: Instant) {
        self.run(at);
        self.link.reset(&mut self.world.cx(at, NodeId(0)), "link");
    }

    pub(crate) fn by_user(&mut self) -> UserChanges {
        self.link.user_changes(self.now)
    }

    pub(crate) fn look(&mut self, at: Instant) -> LinkSnapshot {
        self.run(at);
        self.link.snapshot(&mut self.world.cx(at, NodeId(0)))
    }

    /// Packets served, and the time spent serving in nanoseconds.
    pub(crate) fn served(&mut self) -> (u64, u64) {
        let mut cx = self.world.cx(self.now, NodeId(0));
        let served = self.link.stats(&mut cx).served;
        (served.packets, served.busy.0)
    }

    /// Bytes served, headers of fragments included.
    pub(crate) fn served_bytes(&mut self) -> u64 {
        self.link.stats(&mut self.world.cx(self.now, NodeId(0))).served.bytes.0
    }

    /// Packets that were marked in the queue.
    pub(crate) fn marks(&mut self) -> Option<u64> {
        self.link.stats(&mut self.world.cx(self.now, NodeId(0))).marked
    }

    /// Packets waiting, and packets being sent or in flight.
    pub(crate) fn inside(&mut self) -> (usize, usize) {
        let mut cx = self.world.cx(self.now, NodeId(0));
        (self.link.snapshot(&mut cx).queue_packets, self.link.on_the_way(&mut cx))
    }

    /// The fate of the packets by `at`.
    pub(crate) fn fates(&mut self, at: Instant) -> Fates {
        self.touch(at);
        let mut dropped = self.drops.lock().unwrap().clone();
        dropped.sort_unstable();
        Fates { delivered: self.delivered.clone(), dropped, marked: self.marked.clone() }
    }
}
