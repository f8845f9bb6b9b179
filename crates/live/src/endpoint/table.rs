//! The connections of an endpoint: storage, lookup by address, and timers.

use super::socket::{Pair, Socket};
use bentpipe_base::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// Id of a connection of an endpoint. Ids are never reused: that of a closed connection is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    place: u32,
    generation: u32,
}

/// A slot in the table, reused by later connections.
#[derive(Debug, Default)]
struct Entry {
    generation: u32,
    socket: Option<Box<Socket>>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    places: Vec<Entry>,
    free: Vec<u32>,
    /// Live connections by address. An ended one is removed at once, so that its ports can be reused.
    living: BTreeMap<Pair, ConnId>,
    /// When each connection wants to be called; at most one entry for each.
    deadlines: BTreeSet<(Instant, ConnId)>,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn add(&mut self, pair: Pair, socket: Socket) -> ConnId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Entry::default());
            self.places.len() as u32 - 1
        });
        let slot = &mut self.places[place as usize];
        slot.socket = Some(Box::new(socket));
        let id = ConnId { place, generation: slot.generation };
        self.living.insert(pair, id);
        id
    }

    /// The connection with that id, unless it was removed.
    pub(super) fn get(&self, id: ConnId) -> Option<&Socket> {
        let place = self.places.get(id.place as usize)?;
        place.socket.as_deref().filter(|_| place.generation == id.generation)
    }

    pub(super) fn get_mut(&mut self, id: ConnId) -> Option<&mut Socket> {
        let place = self.places.get_mut(id.place as usize)?;
        place.socket.as_deref_mut().filter(|_| place.generation == id.generation)
    }

    pub(super) fn ids(&self) -> Vec<ConnId> {
        let held = self.places.iter().enumerate().filter(|(_, p)| p.socket.is_some());
        held.map(|(i, p)| ConnId { place: i as u32, generation: p.generation }).collect()
    }

    /// The live connection between these addresses.
    pub(super) fn find(&self, pair: &Pair) -> Option<ConnId> {
        self.living.get(pair).copied()
    }

    /// Frees the addresses of an ended connection and stops its timer.
    pub(super) fn bury(&mut self, id: ConnId) {
        let Some(socket) = self.get_mut(id) else { return };
        let (pair, armed) = (socket.pair, core::mem::replace(&mut socket.armed, Instant::NEVER));
        self.deadlines.remove(&(armed, id));
        if self.living.get(&pair) == Some(&id) {
            self.living.remove(&pair);
        }
    }

    /// Removes a connection; its id is invalid from now on.
    pub(super) fn remove(&mut self, id: ConnId) -> Option<Box<Socket>> {
        self.bury(id);
        let place = self.places.get_mut(id.place as usize).filter(|p| p.generation == id.generation)?;
        let socket = place.socket.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(id.place);
        Some(socket)
    }

    /// Sets the timer of a connection to `at` at the latest. It may fire earlier: a wake-up that is too early
    /// is harmless, and cheaper than moving the entry with each packet.
    pub(super) fn arm(&mut self, id: ConnId, at: Instant) {
        let Some(socket) = self.get_mut(id) else { return };
        if at < socket.armed {
            let old = core::mem::replace(&mut socket.armed, at);
            self.deadlines.remove(&(old, id));
            self.deadlines.insert((at, id));
        }
    }

    pub(super) fn next_at(&self) -> Instant {
        self.deadlines.first().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// Removes and returns one connection whose timer is due by `now`.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<ConnId> {
        let (at, id) = *self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.deadlines.remove(&(at, id));
        if let Some(socket) = self.get_mut(id) {
            socket.armed = Instant::NEVER;
        }
        Some(id)
    }
}
