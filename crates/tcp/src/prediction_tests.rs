//! The short way and the long way do the same: two pairs of connections live through the same conversation,
//! one pair without short ways, and are equal in every field after each step.

use super::*;
use crate::Offer;
use crate::config::{Config, Options};
use crate::scheme::Scheme;
use crate::state::{RandomValues, Tuple};
use bentpipe_base::{Addr, Duration, Instant, NodeId, Purpose, Rng, RngSlot, Seq, World};
use std::sync::Arc;

/// Two ends and what is on its way between them, in the order of arrival.
struct Pair {
    world: World,
    ends: [Option<Connection>; 2],
    config: Arc<Config>,
    takes_short_way: bool,
    way: Vec<(Instant, usize, Pkt)>,
    /// Segments that took the short way.
    expected: usize,
}

impl Pair {
    fn new(config: Config, takes_short_way: bool) -> Self {
        let mut world = World::new(7);
        let config = Arc::new(config);
        let tuple = Tuple { local: (Addr(1), 1), remote: (Addr(2), 2) };
        let jitter = world.open_rng("jitter", Purpose::Jitter);
        let chance = RandomValues { isn: Seq(u32::MAX - 5000), timestamp: 9, jitter: Some(jitter) };
        let first = Connection::connect(&world.cx(Instant::ZERO, NodeId(0)), tuple, config.clone(), chance);
        let (ends, way) = ([Some(first), None], Vec::new());
        Self { world, ends, config, takes_short_way, way, expected: 0 }
    }

    fn forbid(&mut self) {
        for end in self.ends.iter_mut().flatten().filter(|_| !self.takes_short_way) {
            end.short_way.plain = false;
        }
    }

    /// Lets an end send all that it may; `fate` says when each packet arrives, if it does.
    fn run(&mut self, side: usize, now: Instant, fate: &mut impl FnMut() -> Option<Duration>) {
        self.forbid();
        let Some(end) = &mut self.ends[side] else { return };
        let cx = &mut self.world.cx(now, NodeId(side as u32));
        let readable = end.readable();
        end.consume(now, readable);
        if side == 0 {
            end.write(u64::MAX);
        }
        let way = &mut self.way;
        end.transmit_all(cx, |_, packet| {
            if let Some(delay) = fate() {
                way.push((now + delay, 1 - side, packet));
            }
        });
    }

    /// The next thing that happens: a packet arrives or a timer expires. Returns when.
    fn step(&mut self, fate: &mut impl FnMut() -> Option<Duration>) -> Instant {
        let timer = |i: usize| self.ends[i].as_ref().map_or(Instant::NEVER, Connection::deadline);
        let (due, side) = (0..2).map(|i| (timer(i), i)).min().unwrap();
        let first = (0..self.way.len()).min_by_key(|i| (self.way[*i].0, *i));
        if let Some(i) = first.filter(|i| self.way[*i].0 <= due) {
            let (now, side, packet) = self.way.remove(i);
            self.arrives(now, side, &packet);
            self.run(side, now, fate);
            return now;
        }
        let end = self.ends[side].as_mut().unwrap();
        end.timer(&mut self.world.cx(due, NodeId(side as u32)));
        self.run(side, due, fate);
        due
    }

    fn arrives(&mut self, now: Instant, side: usize, packet: &Packet) {
        let cx = &mut self.world.cx(now, NodeId(side as u32));
        match &mut self.ends[side] {
            Some(end) => {
                let may = end.short_way.plain && end.state == State::Established;
                self.expected += usize::from(may && packet.tcp.sack.is_empty());
                end.segment(cx, packet);
            }
            empty => {
                let chance = RandomValues { isn: Seq(77), timestamp: 3, jitter: Some(RngSlot(0)) };
                *empty = Offer::new(packet, self.config.clone()).map(|offer| offer.complete(cx, chance));
            }
        }
    }

    /// Everything that the ends know, without whether they take short ways.
    fn state(&mut self) -> String {
        let text = |end: &mut Option<Connection>| {
            end.as_mut().map(|end| {
                let kept = core::mem::take(&mut end.short_way);
                end.timers.settle();
                let text = format!("{end:?}");
                end.short_way = kept;
                text
            })
        };
        format!("{:?} {:?}", self.ends.each_mut().map(text), self.way)
    }
}

/// Random losses, delays and reordering of a conversation.
fn fates(seed: u64, loss: f64, reorder: f64) -> impl FnMut() -> Option<Duration> {
    let mut rng = Rng::new(seed, "fate", Purpose::Errors);
    let mut sent = 0;
    move || {
        sent += 1;
        let (lost, late) = (rng.unit() < loss, rng.unit() < reorder);
        let delay = 50_000_000 + if late { rng.bits() % 5_000_000 } else { sent };
        (!lost).then_some(Duration(delay))
    }
}

fn live_through(config: &Config, seed: u64, loss: f64, reorder: f64) -> usize {
    let mut pairs = [true, false].map(|short| Pair::new(config.clone(), short));
    let mut fates = [(); 2].map(|()| fates(seed, loss, reorder));
    for (pair, fate) in pairs.iter_mut().zip(&mut fates) {
        pair.run(0, Instant::ZERO, fate);
    }
    for step in 0..2000 {
        let mut both = pairs.iter_mut().zip(&mut fates).map(|(pair, fate)| pair.step(fate));
        assert_eq!(both.next(), both.next(), "step {step}");
        if step % 13 == 0 || step > 1990 {
            let [short, long] = &mut pairs;
            assert_eq!(short.state(), long.state(), "step {step} of seed {seed}");
        }
    }
    pairs[0].expected
}

#[test]
fn both_ways_do_the_same() {
    let bases = ["reno", "newreno", "sack", "cubic", "hybla", "vegas"].map(Scheme::named);
    let mut expected = 0;
    for (n, scheme) in bases.into_iter().enumerate() {
        for variant in 0..6 {
            let mut config = Config { scheme: scheme.unwrap(), ..Config::default() };
            config.options = Options { timestamps: variant % 2 == 0, ..config.options };
            if variant % 3 == 0 {
                config.delayed_ack = None;
            }
            config.limited_transmit = variant != 1;
            let (loss, reorder) = [(0.0, 0.0), (0.01, 0.0), (0.03, 0.01)][variant % 3];
            expected += live_through(&config, (n * 10 + variant) as u64, loss, reorder);
        }
    }
    assert!(expected > 25_000, "the short way was hardly taken: {expected}");
}
