//! Deadlines of connections in a hierarchical timing wheel (Varghese & Lauck, "Hashed and hierarchical timing
//! wheels", 1987, scheme 7).
//!
//! Time is divided into ticks of 2^18 ns (0.26 ms). Level 0 has a slot for each of the next 64 ticks, level 1
//! for each of the next 64 times 64, and so on. An entry's level is the highest base-64 digit in which its
//! tick differs from the current one; it moves down a level when its slot is reached. Setting or removing a
//! deadline costs one list operation; to find the earliest slot, one word per level is read. Deviation:
//! within a tick deadlines are exact, and due entries are returned ordered by deadline and number, so runs
//! are reproducible and nothing fires late. A postponed deadline is not moved: its entry fires early and the
//! owner sets it again.

use super::slab::{CHUNK, NONE};
use bentpipe_base::Instant;

/// Ticks last 2^18 ns.
const TICK_BITS: u32 = 18;
/// Bits per digit: 64 slots.
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
/// 18 + 8 * 6 bits cover every instant.
const LEVELS: usize = 8;
/// Not in the wheel.
const OUT: u16 = u16::MAX;

/// List node of one entry.
#[derive(Clone, Copy, Debug)]
struct Link {
    at: Instant,
    next: u32,
    prev: u32,
    slot: u16,
}

const NOT_IN: Link = Link { at: Instant::NEVER, next: NONE, prev: NONE, slot: OUT };

/// Deadlines by number of their owner.
#[derive(Debug)]
pub(crate) struct Wheel {
    links: Vec<Vec<Link>>,
    heads: [[u32; SLOTS]; LEVELS],
    filled: [u64; LEVELS],
    tick: u64,
    /// When to look again: see [`Wheel::next`]; none if it must be computed.
    earliest: Option<Instant>,
    len: usize,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            heads: [[NONE; SLOTS]; LEVELS],
            filled: [0; LEVELS],
            tick: 0,
            earliest: None,
            len: 0,
        }
    }
}

impl Wheel {
    fn link(&mut self, id: u32) -> &mut Link {
        let (chunk, within) = (id as usize / CHUNK, id as usize % CHUNK);
        if chunk >= self.links.len() {
            self.links.resize_with(chunk + 1, Vec::new);
        }
        let chunk = &mut self.links[chunk];
        if chunk.is_empty() {
            chunk.reserve_exact(CHUNK);
            chunk.resize(CHUNK, NOT_IN);
        }
        &mut chunk[within]
    }

    /// Ensures that `id` fires at `at` or earlier.
    #[inline]
    pub(crate) fn set(&mut self, id: u32, at: Instant) {
        if self.link(id).at > at {
            self.unset(id);
            self.insert(id, at);
        }
    }

    pub(crate) fn is_due(&mut self, id: u32, now: Instant) -> bool {
        self.link(id).at <= now
    }

    pub(crate) fn unset(&mut self, id: u32) {
        let Link { at, next, prev, slot } = core::mem::replace(self.link(id), NOT_IN);
        if slot == OUT {
            return;
        }
        let (level, i) = (usize::from(slot) / SLOTS, usize::from(slot) % SLOTS);
        if prev == NONE {
            self.heads[level][i] = next;
            if next == NONE {
                self.filled[level] &= !(1 << i);
            }
        } else {
            self.link(prev).next = next;
        }
        if next != NONE {
            self.link(next).prev = prev;
        }
        if self.earliest.is_none_or(|earliest| at <= earliest) {
            self.earliest = None;
        }
        self.len -= 1;
    }

    /// Inserts `id`, which must not be in the wheel.
    fn insert(&mut self, id: u32, at: Instant) {
        let tick = (at.0 >> TICK_BITS).max(self.tick);
        let apart = (tick ^ self.tick) | 1;
        let level = apart.ilog2() / DIGIT_BITS;
        let shift = level * DIGIT_BITS;
        let i = (tick >> shift) as usize % SLOTS;
        let level = level as usize;
        let next = core::mem::replace(&mut self.heads[level][i], id);
        self.filled[level] |= 1 << i;
        if next != NONE {
            self.link(next).prev = id;
        }
        *self.link(id) = Link { at, next, prev: NONE, slot: (level * SLOTS + i) as u16 };
        // the slot must be opened when time reaches its start
        let look = if level == 0 { at } else { Instant(tick >> shift << shift << TICK_BITS) };
        if self.len == 0 || self.earliest.is_some_and(|earliest| look < earliest) {
            self.earliest = Some(look);
        }
        self.len += 1;
    }

    /// When to look again: the earliest deadline, or an earlier moment if it is far ahead.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        if self.len == 0 {
            return None;
        }
        if self.earliest.is_none() {
            self.earliest = self.first().map(|(level, i, begin)| {
                if level > 0 { Instant(begin << TICK_BITS) } else { self.least(self.heads[0][i]) }
            });
        }
        self.earliest
    }

    /// The earliest deadline in a list.
    fn least(&self, mut at: u32) -> Instant {
        let mut least = Instant::NEVER;
        while at != NONE {
            let link = &self.links[at as usize / CHUNK][at as usize % CHUNK];
            least = least.min(link.at);
            at = link.next;
        }
        least
    }

    /// The earliest non-empty slot: its level, index and first tick.
    fn first(&self) -> Option<(usize, usize, u64)> {
        let level = self.filled.iter().position(|f| *f != 0)?;
        // slots below the current digit are empty, since time has passed them
        let i = self.filled[level].trailing_zeros();
        let shift = level as u32 * DIGIT_BITS;
        let above = self.tick >> (shift + DIGIT_BITS) << (shift + DIGIT_BITS);
        Some((level, i as usize, above | u64::from(i) << shift))
    }

    /// Advances to `now` and appends all due entries to `due`, ordered by deadline and number.
    pub(crate) fn advance(&mut self, now: Instant, due: &mut Vec<(Instant, u32)>) {
        let present = now.0 >> TICK_BITS;
        if self.next().is_some_and(|at| at <= now) {
            let from = due.len();
            while let Some((level, i, begin)) = self.first()
                && begin <= present
            {
                self.tick = self.tick.max(begin);
                self.open(level, i, now, due);
                if level == 0 && begin == present {
                    break;
                }
            }
            due[from..].sort_unstable();
            self.earliest = None;
        }
        self.tick = self.tick.max(present);
    }

    /// Empties a slot that time has reached: due entries go to `due`, the others to lower levels.
    fn open(&mut self, level: usize, i: usize, now: Instant, due: &mut Vec<(Instant, u32)>) {
        let mut id = self.heads[level][i];
        while id != NONE {
            let Link { at, next, .. } = *self.link(id);
            self.unset(id);
            if at <= now {
                due.push((at, id));
            } else {
                // inserted at the head of a list, so this loop does not meet it again
                self.insert(id, at);
            }
            id = next;
        }
    }

    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn footprint(&self) -> usize {
        self.links.iter().map(|c| c.capacity() * size_of::<Link>()).sum::<usize>() + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Op {
        Set(u32, u64),
        Unset(u32),
        Advance(u64),
        ToNext,
    }

    #[test]
    fn time_opens_every_slot_that_it_enters() {
        // 64^4 ticks: where the digit of level 4 changes
        let (mut wheel, edge) = (Wheel::default(), 1 << (24 + TICK_BITS));
        let mut due = Vec::new();
        wheel.advance(Instant(edge - 1), &mut due);
        wheel.set(0, Instant(edge + 1_000_000_000_000));
        wheel.advance(Instant(edge), &mut due);
        assert!(due.is_empty() && wheel.next().unwrap() > Instant(edge), "{:?}", wheel.next());
    }

    fn op() -> impl Strategy<Value = Op> {
        // from nanoseconds to a day: uses every level that a test can reach
        let ahead = || (0u64..50, 0u32..47).prop_map(|(n, scale)| n << scale);
        prop_oneof![
            4 => (0u32..30, ahead()).prop_map(|(id, at)| Op::Set(id, at)),
            1 => (0u32..30).prop_map(Op::Unset),
            1 => ahead().prop_map(Op::Advance),
            2 => Just(Op::ToNext),
        ]
    }

    proptest! {
        /// Compares with a sorted list: which entries fire, when, and in which order.
        #[test]
        fn agrees_with_a_sorted_list(ops in proptest::collection::vec(op(), 1..200)) {
            let mut wheel = Wheel::default();
            let mut oracle: BTreeMap<u32, u64> = BTreeMap::new();
            let mut now = 0;
            for op in ops {
                match op {
                    Op::Set(id, ahead) => {
                        wheel.set(id, Instant(now + ahead));
                        let at = oracle.entry(id).or_insert(u64::MAX);
                        *at = (now + ahead).min(*at);
                    }
                    Op::Unset(id) => {
                        wheel.unset(id);
                        oracle.remove(&id);
                    }
                    Op::Advance(by) => now += by,
                    Op::ToNext => now = now.max(wheel.next().map_or(0, |at| at.0)),
                }
                let mut due = Vec::new();
                wheel.advance(Instant(now), &mut due);
                let mut expected: Vec<(Instant, u32)> =
                    oracle.iter().filter(|(_, at)| **at <= now).map(|(id, at)| (Instant(*at), *id)).collect();
                expected.sort_unstable();
                prop_assert_eq!(due, expected);
                oracle.retain(|_, at| *at > now);
                prop_assert_eq!(wheel.len(), oracle.len());
                let least = oracle.values().min().copied();
                prop_assert_eq!(wheel.next().is_some(), least.is_some());
                prop_assert!(wheel.next().is_none_or(|at| at.0 > now && Some(at.0) <= least), "{:?} {:?}", wheel.next(), least);
            }
        }
    }

    #[test]
    fn one_deadline_far_ahead_costs_few_looks() {
        let mut wheel = Wheel::default();
        let at = Instant(2 * 3600 * 1_000_000_000 + 12_345);
        wheel.set(5, at);
        let (mut looks, mut due) = (0, Vec::new());
        while due.is_empty() {
            let next = wheel.next().unwrap();
            wheel.advance(next, &mut due);
            looks += 1;
        }
        assert_eq!((due, wheel.next()), (vec![(at, 5)], None));
        assert!(looks <= LEVELS, "{looks} looks");
    }

    #[test]
    fn putting_off_moves_nothing() {
        let mut wheel = Wheel::default();
        wheel.set(1, Instant(1000));
        wheel.set(1, Instant(5000));
        let mut due = Vec::new();
        wheel.advance(Instant(999), &mut due);
        assert!(due.is_empty());
        wheel.advance(Instant(1000), &mut due);
        assert_eq!(due, [(Instant(1000), 1)], "early: its owner sets it again");
    }
}
