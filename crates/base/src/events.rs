//! The event queue: wake-ups in a total order, so that runs are reproducible.
//!
//! Wake-ups are ordered by time, then by the time since which they are known, then by node and timer. So the
//! order does not depend on the order of calls, and work may be done before it is due without a change of any
//! result. With the node in the second place, of flows that send at the same times always the same would get
//! the last place in a queue: 20 flows with Jain's index 0.66 where ns-2 has 0.87. Most wake-ups are about a
//! millisecond ahead (the next packet of a link), so the near future is a ring of short time slices: an
//! insertion is a list operation, and only the current slice is sorted. Wake-ups beyond the ring
//! (retransmission timers) are in a heap; the earlier of the two comes next. This is a calendar queue (Brown
//! 1988) with a fixed width. While there are few wake-ups, all of them are in a sorted array instead
//! (`few.rs`).

mod moved;

use crate::few::{self, Few};
use crate::heap::Heap;
use crate::ids::{NodeId, Slot};
use crate::time::Instant;
use core::cmp::Ordering;

/// A slice of the ring is 2^14 ns = 16.4 us long.
const SLICE_BITS: u32 = 14;
/// The ring holds 1024 slices: 16.8 ms.
const SLICES: u64 = 1024;
const WORDS: usize = (SLICES / 64) as usize;
/// With so few wake-ups left the array takes them over again.
const FEW_AGAIN: usize = few::MOST / 2;
const NONE: u32 = u32::MAX;

/// A wake-up as what orders it among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    at: u64,
    /// Since when it is known, or [`LAST`].
    since: u64,
    /// Node and timer.
    owner: u64,
}

/// In place of a time, for wake-ups that come after all others due at the same time.
const LAST: u64 = u64::MAX;

impl Key {
    const MAX: Self = Self { at: u64::MAX, since: u64::MAX, owner: u64::MAX };

    #[inline]
    const fn new(at: Instant, since: u64, node: NodeId, slot: Slot) -> Self {
        Self { at: at.0, since, owner: (node.0 as u64) << 32 | slot.0 as u64 }
    }

    /// The greatest key of a wake-up due at or before `limit`.
    #[inline]
    const fn last_until(limit: Instant) -> Self {
        Self { at: limit.0, ..Self::MAX }
    }

    /// True if this comes before `other`. Equal times are rare where many wake-ups are compared.
    #[inline]
    pub(crate) const fn is_before(self, other: Self) -> bool {
        if self.at != other.at {
            return self.at < other.at;
        }
        self.since < other.since || (self.since == other.since && self.owner < other.owner)
    }

    #[inline]
    fn node(self) -> NodeId {
        NodeId((self.owner >> 32) as u32)
    }

    #[inline]
    fn wake(self) -> Wake {
        Wake { at: Instant(self.at), node: self.node(), slot: Slot(self.owner as u32) }
    }

    const fn slice(self) -> u64 {
        self.at >> SLICE_BITS
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.since, self.owner).cmp(&(other.at, other.since, other.owner))
    }
}

/// A wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// When it is due.
    pub at: Instant,
    /// The node to wake.
    pub node: NodeId,
    /// Which of the node's timers.
    pub slot: Slot,
}

/// An entry of a slice's list, or of the list of free entries.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    next: u32,
}

/// Wake-ups in the order they are due.
#[derive(Debug)]
pub struct EventQueue {
    /// True while all wake-ups are in `few`; else none is.
    is_few: bool,
    few: Few,
    /// The current slice, latest first: the next wake-up is the last element.
    now: Vec<Key>,
    /// Number of the current slice, from time 0.
    slice: u64,
    /// First entry of each later slice's list.
    heads: Box<[u32; SLICES as usize]>,
    /// One bit for each slice that is not empty.
    filled: [u64; WORDS],
    /// One bit for each word of `filled` that is not 0.
    words: u32,
    entries: Vec<Entry>,
    free: u32,
    far: Heap,
    in_ring: usize,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            is_few: true,
            few: Few::default(),
            now: Vec::new(),
            slice: 0,
            heads: Box::new([NONE; SLICES as usize]),
            filled: [0; WORDS],
            words: 0,
            entries: Vec::new(),
            free: NONE,
            far: Heap::default(),
            in_ring: 0,
        }
    }
}

impl EventQueue {
    /// Adds a wake-up that is known since `since`. Always inlined: it is called for every hop of every
    /// packet.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: 4 % of a run's instructions")]
    pub fn push(&mut self, at: Instant, since: Instant, node: NodeId, slot: Slot) {
        self.push_key(Key::new(at, since.0, node, slot));
    }

    /// Adds a wake-up that comes after all others due at the same time, whatever their nodes.
    #[inline]
    pub fn push_last(&mut self, at: Instant, node: NodeId, slot: Slot) {
        self.push_key(Key::new(at, LAST, node, slot));
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `push`")]
    fn push_key(&mut self, key: Key) {
        if self.is_few {
            if self.few.push(key) {
                return;
            }
            self.spread();
        }
        self.push_to_many(key);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `push`")]
    fn push_to_many(&mut self, key: Key) {
        let slice = key.slice();
        if slice <= self.slice {
            let entry = self.now.iter().rposition(|e| *e > key).map_or(0, |i| i + 1);
            self.now.insert(entry, key);
        } else if slice - self.slice < SLICES {
            self.push_near(slice, key);
        } else {
            self.far.push(key);
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `push`")]
    fn push_near(&mut self, slice: u64, key: Key) {
        let i = (slice % SLICES) as usize;
        let entry = Entry { key, next: self.heads[i] };
        if self.free == NONE {
            self.heads[i] = self.entries.len() as u32;
            self.entries.push(entry);
        } else {
            self.heads[i] = self.free;
            let taken = &mut self.entries[self.free as usize];
            self.free = taken.next;
            *taken = entry;
        }
        self.filled[i / 64] |= 1 << (i % 64);
        self.words |= 1 << (i / 64);
        self.in_ring += 1;
    }

    /// Moves all wake-ups from the array to the ring and the heap.
    #[cold]
    fn spread(&mut self) {
        self.is_few = false;
        let all = self.few.take();
        self.slice = all.last().map_or(self.slice, |first| first.slice());
        for key in all {
            self.push_to_many(key);
        }
    }

    /// Moves all wake-ups to the array.
    #[cold]
    fn gather(&mut self) {
        let mut all = core::mem::take(&mut self.now);
        while let Some(slice) = self.next_filled() {
            self.load(slice);
            all.append(&mut self.now);
        }
        while let Some(key) = self.far.pop() {
            all.push(key);
        }
        all.sort_unstable();
        for key in all {
            let has_room = self.few.push(key);
            debug_assert!(has_room, "there are few");
        }
        self.is_few = true;
    }

    /// When the next wake-up is due.
    pub fn next_at(&mut self) -> Option<Instant> {
        if self.is_few {
            return self.few.as_slice().last().copied().map(|key| Instant(key.at));
        }
        self.settle();
        let near = self.now.last().copied();
        near.into_iter().chain(self.far.first()).min().map(|key| Instant(key.at))
    }

    /// Takes the earliest wake-up due at or before `limit`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `push`")]
    pub fn pop_until(&mut self, limit: Instant) -> Option<Wake> {
        if self.is_few {
            return self.few.pop_until(Key::last_until(limit)).map(Key::wake);
        }
        self.pop_of_many(Key::last_until(limit)).map(Key::wake)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `push`")]
    fn pop_of_many(&mut self, limit: Key) -> Option<Key> {
        let far = self.far.first().unwrap_or(Key::MAX);
        if self.now.is_empty() {
            if self.in_ring + self.far.as_slice().len() <= FEW_AGAIN {
                self.gather();
                return self.few.pop_until(limit);
            }
            if let Some(alone) = self.next_filled().and_then(|slice| self.alone(slice, far)) {
                return self.take_alone(alone, limit);
            }
            self.settle();
        }
        match self.now.last() {
            Some(near) if *near < far => {
                if *near > limit {
                    return None;
                }
                self.now.pop()
            }
            _ if far > limit => None,
            _ => self.far.pop(),
        }
    }

    /// The index of the entry of `slice` if it has only one, before `far`: the usual case with few
    /// connections, which needs no sorting.
    #[inline]
    fn alone(&self, slice: u64, far: Key) -> Option<(u64, u32)> {
        let head = self.heads[(slice % SLICES) as usize];
        let entry = self.entries.get(head as usize)?;
        (entry.next == NONE && entry.key < far).then_some((slice, head))
    }

    #[inline]
    fn take_alone(&mut self, (slice, head): (u64, u32), limit: Key) -> Option<Key> {
        let entry = &mut self.entries[head as usize];
        let key = entry.key;
        if key > limit {
            return None;
        }
        entry.next = self.free;
        self.free = head;
        self.slice = slice;
        self.empty(slice);
        self.in_ring -= 1;
        Some(key)
    }

    /// The node of the wake-up that is due after `before` others; `None` if there are few or they are sparse.
    #[inline]
    pub fn soon(&self, before: usize) -> Option<NodeId> {
        let place = self.now.len().checked_sub(before + 1)?;
        Some(self.now[place].node())
    }

    /// Number of the current slice of time.
    #[inline]
    pub const fn slice(&self) -> u64 {
        self.slice
    }

    /// The nodes of the wake-ups left in the current slice.
    #[inline]
    pub fn of_this_slice(&self) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        self.now.iter().rev().map(|key| key.node())
    }

    /// The nodes of the wake-ups in the next slice that has any, in no order.
    #[inline]
    pub fn of_next_slice(&self) -> impl Iterator<Item = NodeId> + '_ {
        let mut at = self.next_filled().map_or(NONE, |slice| self.heads[(slice % SLICES) as usize]);
        core::iter::from_fn(move || {
            let entry = self.entries.get(at as usize)?;
            at = entry.next;
            Some(entry.key.node())
        })
    }

    /// Loads the next slice if the current one is empty, unless a wake-up in the heap comes first.
    #[inline(never)]
    fn settle(&mut self) {
        if !self.now.is_empty() {
            return;
        }
        match (self.next_filled(), self.far.first().map(Key::slice)) {
            (Some(near), far) if far.is_none_or(|far| near <= far) => self.load(near),
            (_, Some(far)) => self.slice = self.slice.max(far),
            (_, None) => {}
        }
    }

    /// Number of the first non-empty slice after the current one.
    #[inline]
    fn next_filled(&self) -> Option<u64> {
        let start = self.slice + 1;
        let first = start % SLICES;
        let (word, bit) = ((first / 64) as usize, first % 64);
        let bits = self.filled[word] & (!0 << bit);
        if bits != 0 {
            return Some(start - bit + u64::from(bits.trailing_zeros()));
        }
        // the words after this one, and at last this one again for the slices below `first`
        let after = (self.words | self.words << WORDS) >> (word + 1) & ((1 << WORDS) - 1);
        if after == 0 {
            return None;
        }
        let steps = after.trailing_zeros() as usize + 1;
        let bits = self.filled[(word + steps) % WORDS];
        Some(start - bit + steps as u64 * 64 + u64::from(bits.trailing_zeros()))
    }

    /// Notes that a slice has become empty.
    #[inline]
    fn empty(&mut self, slice: u64) {
        let i = (slice % SLICES) as usize;
        self.heads[i] = NONE;
        let word = &mut self.filled[i / 64];
        *word &= !(1 << (i % 64));
        if *word == 0 {
            self.words &= !(1 << (i / 64));
        }
    }

    fn load(&mut self, slice: u64) {
        self.slice = slice;
        let mut at = self.heads[(slice % SLICES) as usize];
        self.empty(slice);
        while at != NONE {
            let entry = &mut self.entries[at as usize];
            self.now.push(entry.key);
            let next = core::mem::replace(&mut entry.next, self.free);
            self.free = at;
            at = next;
        }
        self.in_ring -= self.now.len();
        self.now.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Number of wake-ups waiting.
    pub(crate) const fn len(&self) -> usize {
        self.few.len() + self.now.len() + self.in_ring + self.far.as_slice().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        /// Same order as `std`'s heap under any mix of pushes and pops, with few wake-ups and with many;
        /// of equal times first the one known for longer, then that of the first node.
        #[test]
        fn agrees_with_the_standard_heap(ops in proptest::collection::vec((0u8..5, 0u64..50, 0u32..24), 1..1000)) {
            let mut ours = EventQueue::default();
            let mut oracle = BinaryHeap::new();
            let mut now = 0;
            let mut before = 0;
            for (i, (op, at, scale)) in ops.into_iter().enumerate() {
                // times from nanoseconds to seconds ahead, never before what was popped
                let grows = i % 400 < 200;
                let (push, at) = (op < if grows { 4 } else { 1 }, now + (at << scale));
                // every other one at the time of the one before
                let at = if push && i % 2 == 1 { before.max(now) } else { at };
                before = at;
                if push {
                    let node = (i as u32).wrapping_mul(0x9e37_79b1) >> 1;
                    let since = i as u64 * 5 % 7;
                    ours.push(Instant(at), Instant(since), NodeId(node), Slot(0));
                    oracle.push(Reverse((at, since, node)));
                } else {
                    let limit = at;
                    let expected = match oracle.peek() {
                        Some(Reverse((t, ..))) if *t <= limit => oracle.pop().map(|Reverse(e)| e),
                        _ => None,
                    };
                    if let Some((t, ..)) = expected {
                        now = t;
                    }
                    prop_assert_eq!(ours.pop_until(Instant(limit)).map(|w| (w.at.0, w.node.0)), expected.map(|(t, _, node)| (t, node)));
                }
                prop_assert_eq!(ours.len(), oracle.len());
            }
        }
    }
}
