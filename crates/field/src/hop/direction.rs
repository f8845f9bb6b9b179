//! One direction of the hop: a queue, a server, flight. It knows no clock and no interface: packets are put
//! in and taken out at times that it is told.
//!
//! A packet waits in a first-in-first-out queue of limited bytes, is served at the rate, may be lost, and is
//! due a delay later. What disturbs it is looked up by time: a stop moves the begin of a service, half a rate
//! stretches it, a hold moves what would be due in it to its end. Service is computed when somebody asks, at
//! the time at which it took place, so a late caller changes no rate.

use super::dice::Dice;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A second in the hop's unit of time, ns.
pub const SECOND: u64 = 1_000_000_000;
/// A millisecond.
pub const MS: u64 = 1_000_000;

/// What disturbs the hop for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What would arrive meanwhile arrives at the end, all at once.
    Hold,
    /// Nothing begins to be sent meanwhile; the queue waits.
    Stop,
    /// The rate is half of what it was.
    Half,
}

/// A disturbance, times in ns since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it begins.
    pub at: u64,
    /// How long it lasts.
    pub length: u64,
    /// What it is.
    pub kind: Kind,
}

impl Event {
    const fn holds_at(&self, t: u64) -> bool {
        self.at <= t && t < self.at + self.length
    }
}

/// How a direction behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bits per second.
    pub rate: f64,
    /// Propagation, ns.
    pub delay: u64,
    /// Bytes that may wait to be served, the packet in service included.
    pub queue: u64,
    /// Probability that a packet is lost after its service.
    pub loss: f64,
    /// Packets arrive at multiples of this only, ns; 0: when they are due.
    pub frame: u64,
    /// Probability that a packet takes longer, by up to so much, ns, and is overtaken.
    pub reorder: (f64, u64),
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// What happens when.
    pub events: Vec<Event>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Still on its way.
    Inside,
    /// Lost by chance.
    Lost,
    /// The queue was full.
    Full,
    /// Handed over at this time.
    Out(u64),
}

impl Fate {
    /// When it was handed over.
    pub const fn out(self) -> Option<u64> {
        if let Self::Out(at) = self { Some(at) } else { None }
    }
}

/// A packet that leaves.
#[derive(Debug)]
pub struct Leaving {
    /// When it was to leave.
    pub due: u64,
    /// The number it was given on entering.
    pub number: usize,
    /// Its bytes.
    pub bytes: Box<[u8]>,
}

struct Waiting {
    since: u64,
    number: usize,
    bytes: Box<[u8]>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Flying {
    due: u64,
    order: u64,
    number: usize,
    bytes: Box<[u8]>,
}

/// One direction.
pub struct Direction {
    settings: Settings,
    chance: [Dice; 4],
    waiting: VecDeque<Waiting>,
    queued: u64,
    /// The server is busy until then.
    free: u64,
    flying: BinaryHeap<Reverse<Flying>>,
    order: u64,
    /// No later packet that keeps its order is due before this.
    latest: u64,
    lost: Vec<usize>,
}

impl Direction {
    /// An empty one. `side` tells the directions' chances apart.
    pub fn new(settings: Settings, seed: u64, side: u64) -> Self {
        let chance = core::array::from_fn(|i| Dice::new(seed, side * 16 + i as u64));
        Self {
            settings,
            chance,
            waiting: VecDeque::new(),
            queued: 0,
            free: 0,
            flying: BinaryHeap::new(),
            order: 0,
            latest: 0,
            lost: Vec::new(),
        }
    }

    /// A packet enters at `now`; false when the queue is full.
    pub fn enter(&mut self, now: u64, number: usize, bytes: &[u8]) -> bool {
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
    pub fn leave(&mut self, now: u64) -> Option<Leaving> {
        self.advance(now);
        if self.flying.peek().is_none_or(|f| f.0.due > now) {
            return None;
        }
        self.flying.pop().map(|Reverse(Flying { due, number, bytes, .. })| Leaving { due, number, bytes })
    }

    /// Numbers of the packets that were lost since the last call.
    pub fn take_lost(&mut self) -> Vec<usize> {
        core::mem::take(&mut self.lost)
    }

    /// When something will have to be done next.
    pub fn next(&self) -> Option<u64> {
        // what is served is looked at when it is due at the earliest
        let served = self.waiting.front().map(|head| self.service(head).1 + self.settings.delay);
        let due = self.flying.peek().map(|f| f.0.due);
        served.into_iter().chain(due).min()
    }

    /// Bytes that wait or are in service at `now`.
    pub fn queued(&mut self, now: u64) -> u64 {
        self.advance(now);
        self.queued
    }

    /// Begin and end of the service of the packet at the head.
    fn service(&self, head: &Waiting) -> (u64, u64) {
        let mut begin = head.since.max(self.free);
        // stops may follow each other in any order
        while let Some(stop) = self.settings.events.iter().find(|e| e.kind == Kind::Stop && e.holds_at(begin))
        {
            begin = stop.at + stop.length;
        }
        let halves =
            self.settings.events.iter().filter(|e| e.kind == Kind::Half && e.holds_at(begin)).count();
        let rate = self.settings.rate / (1_u64 << halves.min(8)) as f64;
        (begin, begin + (head.bytes.len() as f64 * 8e9 / rate) as u64)
    }

    /// Serves what was served until `now`.
    fn advance(&mut self, now: u64) {
        while let Some(head) = self.waiting.front() {
            let (_, end) = self.service(head);
            if end > now {
                return;
            }
            let Some(Waiting { number, bytes, .. }) = self.waiting.pop_front() else { return };
            self.free = end;
            self.queued -= bytes.len() as u64;
            if self.chance[0].says(self.settings.loss) {
                self.lost.push(number);
                continue;
            }
            let due = self.due(end);
            if self.chance[3].says(self.settings.duplicate) {
                self.fly(due, number, bytes.clone());
            }
            self.fly(due, number, bytes);
        }
    }

    fn fly(&mut self, due: u64, number: usize, bytes: Box<[u8]>) {
        self.order += 1;
        self.flying.push(Reverse(Flying { due, order: self.order, number, bytes }));
    }

    /// When a packet whose service ended at `end` arrives.
    fn due(&mut self, end: u64) -> u64 {
        let mut due = end + self.settings.delay;
        let strays = self.chance[1].says(self.settings.reorder.0);
        if strays {
            due += (self.chance[2].uniform() * self.settings.reorder.1 as f64) as u64;
        }
        if self.settings.frame > 0 {
            due = due.div_ceil(self.settings.frame) * self.settings.frame;
        }
        while let Some(hold) = self.settings.events.iter().find(|e| e.kind == Kind::Hold && e.holds_at(due)) {
            due = hold.at + hold.length;
        }
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

    /// 12 Mbit/s: 1500 B take a millisecond.
    fn settings() -> Settings {
        Settings {
            rate: 12e6,
            delay: 100 * MS,
            queue: 15_000,
            loss: 0.0,
            frame: 0,
            reorder: (0.0, 0),
            duplicate: 0.0,
            events: Vec::new(),
        }
    }

    /// When `n` packets that enter together at `start` leave, ms, in the order of leaving.
    fn leaves(settings: Settings, start: u64, n: usize) -> Vec<(usize, u64)> {
        let mut hop = Direction::new(settings, 1, 0);
        for i in 0..n {
            hop.enter(start, i, &[0; 1500]);
        }
        core::iter::from_fn(|| hop.leave(100 * SECOND)).map(|l| (l.number, l.due / MS)).collect()
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
                assert!(hop.enter(t * MS, left.len() + t as usize, &[0; 1500]));
            }
            while let Some(l) = hop.leave(t * MS) {
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
            events: vec![Event { at: at * MS, length: length * MS, kind }],
            ..settings()
        };
        let times = |s| leaves(s, 0, 4).into_iter().map(|l| l.1).collect::<Vec<_>>();
        assert_eq!(times(with(Kind::Stop, 2, 50)), [101, 102, 153, 154]);
        assert_eq!(times(with(Kind::Half, 2, 50)), [101, 102, 104, 106]);
        assert_eq!(times(with(Kind::Hold, 102, 50)), [101, 152, 152, 152]);
        assert_eq!(times(Settings { frame: 20 * MS, ..settings() }), [120, 120, 120, 120]);
    }

    #[test]
    fn loss_reordering_and_duplicates_come_as_often_as_asked() {
        let n = 20_000;
        let run = |s: Settings| {
            let mut hop = Direction::new(Settings { queue: u64::MAX, ..s }, 5, 0);
            (0..n).for_each(|i| assert!(hop.enter(0, i, &[0; 1500])));
            let left: Vec<usize> =
                core::iter::from_fn(|| hop.leave(100 * SECOND)).map(|l| l.number).collect();
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
