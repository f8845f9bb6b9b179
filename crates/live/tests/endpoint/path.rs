//! A path that carries bytes between two ends: the simulator's link in each direction, followed by
//! duplication and reordering, which links do not have. It runs under any clock.

use bentpipe_base::{Body, Duration, Instant, NodeId, Pkt, Probability, Purpose, Rate, Rng, Size};
use bentpipe_link::{Capacity, Channel, Discipline, Errors, Link, Queue};
use bentpipe_sim::Simulation;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Impairments of a path, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    pub(crate) rate: Rate,
    pub(crate) one_way: Duration,
    pub(crate) loss: f64,
    /// Probability that a packet is duplicated.
    pub(crate) duplicate: f64,
    /// Probability that a packet is delayed, and so overtaken.
    pub(crate) reorder: f64,
    /// Maximum extra delay of a packet or a copy.
    pub(crate) spread: Duration,
}

/// A packet behind a link: when it comes out, its order among those due at once, and its bytes.
type Late = Reverse<(Instant, u64, Vec<u8>)>;

/// Both directions.
pub(crate) struct Path {
    sim: Simulation,
    ports: [NodeId; 2],
    links: [NodeId; 2],
    weather: Weather,
    rng: Rng,
    /// Bytes of the packets on the links, by handle.
    held: Vec<Option<Vec<u8>>>,
    free: Vec<usize>,
    blanks: Vec<Pkt>,
    /// Packets behind the links, for each end.
    out: [BinaryHeap<Late>; 2],
    order: u64,
    pub(crate) duplicated: u64,
    pub(crate) delayed: u64,
}

impl Path {
    pub(crate) fn new(seed: u64, weather: Weather) -> Self {
        let mut sim = Simulation::new(seed);
        let ports = [sim.add_open_end(), sim.add_open_end()];
        let links = [(0, 1), (1, 0)].map(|(from, to)| {
            let rng = sim.world.open_rng(["there", "back"][from], Purpose::Errors);
            let loss = Probability::new(weather.loss).expect("a probability");
            let errors = Errors { rng, loss, ber: Probability::ZERO };
            let channel = Channel::new(weather.rate, weather.one_way, Size::ZERO, Some(errors));
            let queue = Queue::new(Capacity::Bytes(Size(1 << 20)), Discipline::Fifo, 0);
            let link = sim.add_link(Link::new(queue, channel));
            sim.wire(ports[from], link);
            sim.wire(link, ports[to]);
            link
        });
        let rng = Rng::new(seed, "weather", Purpose::SlotJitter);
        Self {
            sim,
            ports,
            links,
            weather,
            rng,
            held: Vec::new(),
            free: Vec::new(),
            blanks: Vec::new(),
            out: Default::default(),
            order: 0,
            duplicated: 0,
            delayed: 0,
        }
    }

    /// Packets that a link dropped.
    pub(crate) fn lost(&mut self) -> u64 {
        let mut lost = 0;
        for id in self.links {
            let Some((link, mut cx)) = self.sim.link(id) else { continue };
            lost += link.stats(&mut cx).drops().map(|(_, n)| n).sum::<u64>();
        }
        lost
    }

    /// Sends a packet from end `side` now.
    pub(crate) fn enter(&mut self, now: Instant, side: usize, bytes: &[u8]) {
        self.advance(now);
        let handle = self.free.pop().unwrap_or_else(|| {
            self.held.push(None);
            self.held.len() - 1
        });
        self.held[handle] = Some(bytes.to_vec());
        let mut packet = self.blanks.pop().unwrap_or_default();
        packet.set_opaque(0, Body::kept(handle as u32, 0, bytes.len() as u32), 0);
        self.sim.inject(self.ports[side], packet);
        self.collect();
    }

    /// Advances the path to `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        if now >= self.sim.now() {
            self.sim.run_until(now, |_| false);
            self.collect();
        }
    }

    fn collect(&mut self) {
        while let Some((at, port, packet)) = self.sim.take_arrived() {
            let bytes = self.free(packet);
            self.weather(at, usize::from(port == self.ports[1]), &bytes);
        }
        while let Some(packet) = self.sim.world.take_recycled() {
            self.free(packet);
        }
    }

    fn free(&mut self, packet: Pkt) -> Vec<u8> {
        let handle = packet.body.slot() as usize;
        self.blanks.push(packet);
        self.free.push(handle);
        self.held[handle].take().expect("a packet has bytes until it is freed")
    }

    fn weather(&mut self, at: Instant, side: usize, bytes: &[u8]) {
        let copies = 1 + u64::from(self.rng.unit() < self.weather.duplicate);
        self.duplicated += copies - 1;
        for copy in 0..copies {
            let held_back = copy > 0 || self.rng.unit() < self.weather.reorder;
            self.delayed += u64::from(held_back);
            let extra = if held_back { self.rng.up_to(self.weather.spread) } else { Duration::ZERO };
            self.order += 1;
            self.out[side].push(Reverse((at + extra, self.order, bytes.to_vec())));
        }
    }

    /// Returns the next packet that has come out at end `side` by `now`.
    pub(crate) fn leave(&mut self, now: Instant, side: usize) -> Option<Vec<u8>> {
        self.out[side].peek().filter(|p| p.0.0 <= now)?;
        self.out[side].pop().map(|p| p.0.2)
    }

    /// Time of the next event.
    pub(crate) fn next_at(&mut self) -> Instant {
        let out = self.out.iter().filter_map(|o| o.peek().map(|p| p.0.0)).min();
        out.into_iter().chain(self.sim.next_at()).min().unwrap_or(Instant::NEVER)
    }
}
