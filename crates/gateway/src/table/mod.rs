//! The connection table: bounded, deterministic, and protected against floods.
//!
//! It has three classes, each with its own limit ([`Class`]):
//! - Opening connections have a limit of their own, so a SYN flood cannot displace others. If the class is
//!   full, a few members are drawn at random and the one that was silent for longest is evicted (random
//!   replacement: to displace the others, an attacker must send as many SYNs as all of them together). A
//!   member whose SYN or SYN/ACK was changed here is protected while its handshake may still be going on: if
//!   it were forgotten, the two hosts would disagree on their windows. If all drawn members are protected,
//!   the new connection is not tracked and passes.
//! - Accelerated connections are never evicted. At the limit, new connections pass; those already in their
//!   handshake may still exceed it.
//! - Passing connections may be evicted, first those of which only one direction was seen; all that this
//!   loses is their report.

mod entry;
mod hash;
mod index;
mod key;
pub(crate) mod persist;
mod slab;
mod wheel;

pub(crate) use entry::{Class, Entry, is_opening_syn};
pub(crate) use hash::HashKey;
pub(crate) use key::Key;
pub(crate) use slab::{NONE, Slab};
pub(crate) use wheel::Wheel;

use crate::config::Limits;
use crate::counters::PassReason;
use crate::report::State;
use bentpipe_base::{Duration, Instant};
use index::Index;

/// Protection of a changed handshake from eviction: two satellite hops and one lost SYN.
const PROTECTED: Duration = Duration::from_secs(5);
/// Members drawn to find one to evict.
const DRAWN: u32 = 8;

/// All tracked connections.
#[derive(Debug, Default)]
pub(crate) struct Table {
    index: Index,
    entries: Slab<Entry>,
    /// Members of each class, unordered.
    members: [Vec<u32>; 3],
    /// Number of passing entries by reason, and of all by state.
    pub(crate) passing: [u32; PassReason::ALL.len()],
    pub(crate) states: [u32; State::ALL.len()],
    pub(crate) wheel: Wheel,
    pub(crate) key: HashKey,
    draws: u64,
}

impl Table {
    pub(crate) fn new(limits: &Limits, key: HashKey) -> Self {
        Self { index: Index::new(limits.connections() as usize), key, ..Self::default() }
    }

    /// Rehashes the table with `key` and makes room for at least as many entries as `limits` allow.
    pub(crate) fn rebuild(&mut self, limits: &Limits, key: HashKey) {
        let room = (limits.connections() as usize).max(self.entries.len() as usize);
        if key == self.key && room <= self.index.capacity() {
            return;
        }
        self.key = key;
        self.index = Index::new(room);
        for id in self.entries.ids(0) {
            if let Some(entry) = self.entries.get(id) {
                self.index.insert(entry.key.hash(key), id);
            }
        }
    }

    /// Returns a uniform number that outsiders cannot predict; retransmitted SYNs get the same one.
    pub(crate) const fn draw(&self, key: Key, isn: u32) -> u32 {
        let (addrs, ports) = key.words();
        let rest = (isn as u64) ^ ports << 24;
        self.key.hash(addrs, rest & ((1 << 56) - 1), 7) as u32
    }

    #[inline]
    pub(crate) fn find(&self, key: &Key) -> Option<u32> {
        let entries = &self.entries;
        self.index.find(key.hash(self.key), |id| entries.get(id).is_some_and(|e| e.key == *key))
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Changes an entry and updates the counts by class, state and reason.
    #[inline]
    pub(crate) fn update<T>(&mut self, id: u32, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let entry = self.entries.get_mut(id)?;
        let (state, why, class, place) = (entry.state, entry.pass_reason, entry.class, entry.place);
        let result = change(entry);
        let (state_now, why_now, class_now) = (entry.state, entry.pass_reason, entry.class);
        assert!(entry.place == place, "only the table says where an entry stands in its list");
        if state != state_now {
            self.states[state as usize] -= 1;
            self.states[state_now as usize] += 1;
        }
        if why != why_now {
            self.count_reason(why, false);
            self.count_reason(why_now, true);
        }
        if class != class_now {
            self.leave(class, place);
            self.join(class_now, id);
        }
        Some(result)
    }

    fn count_reason(&mut self, why: Option<PassReason>, more: bool) {
        if let Some(why) = why {
            let n = &mut self.passing[why as usize];
            *n = if more { *n + 1 } else { *n - 1 };
        }
    }

    fn join(&mut self, class: Class, id: u32) {
        let members = &mut self.members[class as usize];
        if let Some(entry) = self.entries.get_mut(id) {
            entry.place = members.len() as u32;
            members.push(id);
        }
    }

    fn leave(&mut self, class: Class, place: u32) {
        let members = &mut self.members[class as usize];
        members.swap_remove(place as usize);
        if let Some(moved) = members.get(place as usize)
            && let Some(entry) = self.entries.get_mut(*moved)
        {
            entry.place = place;
        }
    }

    /// Adds a connection that is not in the table. There must be room: see [`Table::has_room`].
    pub(crate) fn insert(&mut self, entry: Entry) -> u32 {
        let id = self.entries.insert(entry);
        self.index.insert(entry.key.hash(self.key), id);
        self.states[entry.state as usize] += 1;
        self.count_reason(entry.pass_reason, true);
        self.join(entry.class, id);
        id
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Entry> {
        let entry = self.entries.remove(id)?;
        self.index.remove(entry.key.hash(self.key), id);
        self.wheel.unset(id);
        self.states[entry.state as usize] -= 1;
        self.count_reason(entry.pass_reason, false);
        self.leave(entry.class, entry.place);
        Some(entry)
    }

    pub(crate) const fn count(&self, class: Class) -> u32 {
        self.members[class as usize].len() as u32
    }

    pub(crate) const fn len(&self) -> u32 {
        self.entries.len()
    }

    /// Entry numbers from `from` on, ascending.
    pub(crate) fn ids(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        self.entries.ids(from)
    }

    /// True if `class` has room for one more member.
    pub(crate) fn has_room(&self, class: Class, limits: &Limits) -> bool {
        let most = match class {
            Class::Opening => limits.opening,
            Class::Accelerated => limits.flows,
            Class::Passing => limits.passing,
        };
        self.count(class) < most && self.index.len() < self.index.capacity()
    }

    /// Chooses the member of a full class to evict; none if all drawn members are protected.
    pub(crate) fn victim(&mut self, class: Class, now: Instant) -> Option<u32> {
        let members = &self.members[class as usize];
        let mut best: Option<(bool, Instant, u32)> = None;
        for _ in 0..if members.is_empty() { 0 } else { DRAWN } {
            self.draws = self.draws.wrapping_add(1);
            let drawn = self.key.hash(self.draws, 0, 0);
            let id = members[((u128::from(drawn) * members.len() as u128) >> 64) as usize];
            let Some(entry) = self.entries.get(id) else { continue };
            let is_safe = match class {
                Class::Opening => entry.is_delicate() && now.since(entry.opened) < PROTECTED,
                Class::Accelerated => true,
                Class::Passing => false,
            };
            let candidate = (!entry.is_one_sided() && class == Class::Passing, entry.last, id);
            if !is_safe && best.is_none_or(|b| candidate < b) {
                best = Some(candidate);
            }
        }
        best.map(|b| b.2)
    }

    pub(crate) fn footprint(&self) -> usize {
        let members: usize = self.members.iter().map(|m| m.capacity() * size_of::<u32>()).sum();
        self.index.footprint() + self.entries.footprint() + self.wheel.footprint() + members
    }
}

#[cfg(test)]
mod tests;
