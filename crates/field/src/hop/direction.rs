//! One direction of the hop: a queue, a server and a propagation delay. It uses no clock and no interface;
//! the caller passes the time.
//!
//! A packet waits in a FIFO queue of limited bytes, is served at the rate, may be lost, and arrives after
//! the delay. Disturbances depend on time: a stop postpones the start of a service, a halved rate prolongs
//! it, and a hold postpones arrivals to its end. Service times are computed on demand but with the exact
//! times, so a late caller does not change the rate.

use super::dice::RandomNumbers;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// One second, ns.
pub const SECOND: u64 = 1_000_000_000;
/// One millisecond, ns.
pub const MS: u64 = 1_000_000;

/// Kind of a disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisturbanceKind {
    /// Packets that would arrive meanwhile arrive together at the end.
    Hold,
    /// No transmission starts meanwhile; packets queue.
    Stop,
    /// The rate is halved.
    Half,
}

/// A disturbance, times in ns since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// When it begins.
    pub at: u64,
    /// How long it lasts.
    pub length: u64,
    /// What it is.
    pub kind: DisturbanceKind,
}

impl Disturbance {
    const fn is_active_at(&self, t: u64) -> bool {
        self.at <= t && t < self.at + self.length
    }
}

/// Settings of a direction.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Bits per second.
    pub rate: f64,
    /// Propagation delay, ns.
    pub delay: u64,
    /// Queue limit, bytes, including the packet in service.
    pub queue: u64,
    /// Probability that a packet is lost after service.
    pub loss: f64,
    /// Packets arrive only at multiples of this, ns; 0: as soon as they are due.
    pub frame: u64,
    /// Probability that a packet is delayed further and overtaken, and the maximum extra delay, ns.
    pub reorder: (f64, u64),
    /// Probability that a packet is duplicated.
    pub duplicate: f64,
    /// Scheduled disturbances.
    pub events: Vec<Disturbance>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Still in the hop.
    Inside,
    /// Lost at random.
    Lost,
    /// Dropped because the queue was full.
    QueueFull,
    /// Delivered at this time, ns.
    Delivered(u64),
}

impl Fate {
    /// The delivery time, if it was delivered.
    pub const fn delivered_at(self) -> Option<u64> {
        if let Self::Delivered(at) = self { Some(at) } else { None }
    }
}

/// A packet that leaves the hop; the order is that in which packets leave.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    /// When it is due, ns.
    pub due: u64,
    /// Among packets that are due at the same time, the first to be served leaves first.
    order: u64,
    /// The number given to [`Direction::enqueue`].
    pub number: usize,
    /// The packet.
    pub bytes: Box<[u8]>,
}

struct Waiting {
    since: u64,
    number: usize,
    bytes: Box<[u8]>,
}

/// One direction of the hop.
#[derive(Default)]
pub struct Direction {
    settings: Settings,
    chance: [RandomNumbers; 4],
    waiting: VecDeque<Waiting>,
    queued: u64,
    /// The server is busy until this time.
    server_free_at: u64,
    in_flight: BinaryHeap<Reverse<Departure>>,
    order: u64,
    /// In-order packets are not due before this time.
    latest: u64,
    lost: Vec<usize>,
}

impl Direction {
    /// An empty direction. `side` gives each direction its own random sequence.
    pub fn new(settings: Settings, seed: u64, side: u64) -> Self {
        let chance = core::array::from_fn(|i| RandomNumbers::new(seed, side * 16 + i as u64));
        Self { settings, chance, ..Self::default() }
    }

    /// Queues a packet at time `now`. Returns false if the queue is full.
    pub fn enqueue(&mut self, now: u64, number: usize, bytes: &[u8]) -> bool {
        self.advance(now);
        if self.queued + bytes.len() as u64 > self.settings.queue {
            return false;
        }
        self.queued += bytes.len() as u64;
        self.waiting.push_back(Waiting { since: now, number, bytes: bytes.into() });
        self.advance(now);
        true
    }

    /// The next packet that is due by `now`.
    pub fn take_due(&mut self, now: u64) -> Option<Departure> {
        self.advance(now);
        if self.in_flight.peek().is_none_or(|f| f.0.due > now) {
            return None;
        }
        self.in_flight.pop().map(|Reverse(leaving)| leaving)
    }

    /// Numbers of the packets lost since the last call.
    pub fn take_lost(&mut self) -> Vec<usize> {
        core::mem::take(&mut self.lost)
    }

    /// The next time at which a packet may leave.
    pub fn next(&self) -> Option<u64> {
        // a packet in the queue can leave after its service and the delay at the earliest
        let served = self.waiting.front().map(|head| self.service(head).1 + self.settings.delay);
        let due = self.in_flight.peek().map(|f| f.0.due);
        served.into_iter().chain(due).min()
    }

    /// Bytes queued or in service at `now`.
    pub fn queued(&mut self, now: u64) -> u64 {
        self.advance(now);
        self.queued
    }

    /// Start and end of the service of the first packet in the queue.
    fn service(&self, head: &Waiting) -> (u64, u64) {
        let begin = self.postponed(DisturbanceKind::Stop, head.since.max(self.server_free_at));
        let halves = self.disturbances(DisturbanceKind::Half, begin).count();
        let rate = self.settings.rate / (1_u64 << halves.min(8)) as f64;
        (begin, begin + (head.bytes.len() as f64 * 8e9 / rate) as u64)
    }

    /// The disturbances of this kind at time `t`.
    fn disturbances(&self, kind: DisturbanceKind, t: u64) -> impl Iterator<Item = &Disturbance> {
        self.settings.events.iter().filter(move |e| e.kind == kind && e.is_active_at(t))
    }

    /// The first time from `t` on without a disturbance of this kind; they may overlap in any order.
    fn postponed(&self, kind: DisturbanceKind, mut t: u64) -> u64 {
        while let Some(event) = self.disturbances(kind, t).next() {
            t = event.at + event.length;
        }
        t
    }

    /// Completes all services that end by `now`.
    fn advance(&mut self, now: u64) {
        while let Some(head) = self.waiting.front() {
            let (_, end) = self.service(head);
            if end > now {
                return;
            }
            let Some(Waiting { number, bytes, .. }) = self.waiting.pop_front() else { return };
            self.server_free_at = end;
            self.queued -= bytes.len() as u64;
            if self.chance[0].happens(self.settings.loss) {
                self.lost.push(number);
                continue;
            }
            let due = self.due(end);
            if self.chance[3].happens(self.settings.duplicate) {
                self.put_in_flight(due, number, bytes.clone());
            }
            self.put_in_flight(due, number, bytes);
        }
    }

    fn put_in_flight(&mut self, due: u64, number: usize, bytes: Box<[u8]>) {
        self.order += 1;
        self.in_flight.push(Reverse(Departure { due, order: self.order, number, bytes }));
    }

    /// Arrival time of a packet whose service ended at `end`.
    fn due(&mut self, end: u64) -> u64 {
        let mut due = end + self.settings.delay;
        let strays = self.chance[1].happens(self.settings.reorder.0);
        if strays {
            due += (self.chance[2].uniform() * self.settings.reorder.1 as f64) as u64;
        }
        if self.settings.frame > 0 {
            due = due.div_ceil(self.settings.frame) * self.settings.frame;
        }
        due = self.postponed(DisturbanceKind::Hold, due);
        if strays {
            return due;
        }
        self.latest = self.latest.max(due);
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 12 Mbit/s: 1500 B take 1 ms.
    fn settings() -> Settings {
        Settings { rate: 12e6, delay: 100 * MS, queue: 15_000, ..Settings::default() }
    }

    /// When `n` packets that enter together at `start` leave, ms, in order of departure.
    fn leaves(settings: Settings, start: u64, n: usize) -> Vec<(usize, u64)> {
        let mut hop = Direction::new(settings, 1, 0);
        for i in 0..n {
            hop.enqueue(start, i, &[0; 1500]);
        }
        core::iter::from_fn(|| hop.take_due(100 * SECOND)).map(|l| (l.number, l.due / MS)).collect()
    }

    #[test]
    fn packets_are_served_one_by_one_and_what_finds_no_room_is_refused() {
        let all = leaves(settings(), 0, 20);
        assert_eq!(all, (0..10).map(|i| (i, 101 + i as u64)).collect::<Vec<_>>());
    }

    #[test]
    fn the_moment_of_the_call_changes_nothing() {
        let mut hop = Direction::new(settings(), 1, 0);
        let mut left = Vec::new();
        for t in 0..500 {
            if t % 7 == 0 && t < 70 {
                assert!(hop.enqueue(t * MS, left.len() + t as usize, &[0; 1500]));
            }
            while let Some(l) = hop.take_due(t * MS) {
                left.push(l.due / MS);
            }
            assert!(hop.next().is_none_or(|next| next > t * MS));
        }
        assert_eq!(left, (0..10).map(|i| 101 + 7 * i).collect::<Vec<_>>());
        assert_eq!(hop.queued(500 * MS), 0);
    }

    #[test]
    fn a_stop_a_hold_and_half_the_rate_do_what_they_say() {
        let with = |kind, at, length| Settings {
            events: vec![Disturbance { at: at * MS, length: length * MS, kind }],
            ..settings()
        };
        let times = |s| leaves(s, 0, 4).into_iter().map(|l| l.1).collect::<Vec<_>>();
        assert_eq!(times(with(DisturbanceKind::Stop, 2, 50)), [101, 102, 153, 154]);
        assert_eq!(times(with(DisturbanceKind::Half, 2, 50)), [101, 102, 104, 106]);
        assert_eq!(times(with(DisturbanceKind::Hold, 102, 50)), [101, 152, 152, 152]);
        assert_eq!(times(Settings { frame: 20 * MS, ..settings() }), [120, 120, 120, 120]);
    }

    #[test]
    fn loss_reordering_and_duplicates_come_as_often_as_asked() {
        let n = 20_000;
        let run = |s: Settings| {
            let mut hop = Direction::new(Settings { queue: u64::MAX, ..s }, 5, 0);
            (0..n).for_each(|i| assert!(hop.enqueue(0, i, &[0; 1500])));
            let left: Vec<usize> =
                core::iter::from_fn(|| hop.take_due(100 * SECOND)).map(|l| l.number).collect();
            (left, hop.take_lost().len())
        };
        let (left, lost) = run(Settings { loss: 0.01, ..settings() });
        assert!((140..260).contains(&lost) && left.len() == n - lost, "{lost}");
        let (left, _) = run(Settings { duplicate: 0.01, ..settings() });
        assert!((140..260).contains(&(left.len() - n)), "{}", left.len());
        let (left, _) = run(Settings { reorder: (0.01, 20 * MS), ..settings() });
        let late =
            (1..n).filter(|i| left[..*i].iter().rev().take(100).any(|before| *before > left[*i])).count();
        assert!((130..260).contains(&late) && left.len() == n, "{late}");
        assert!(run(settings()).0.is_sorted());
    }
}
