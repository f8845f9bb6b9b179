//! The connections of an endpoint: their places, who finds them by address, and when each wants to be called.

use super::socket::{Pair, Socket};
use bentpipe_base::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// Names a connection of an endpoint. A name is never given twice: that of a connection that was let go finds
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    place: u32,
    generation: u32,
}

/// One place, used by one connection after the other.
#[derive(Debug, Default)]
struct Entry {
    generation: u32,
    socket: Option<Box<Socket>>,
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: Vec<Entry>,
    free: Vec<u32>,
    /// The living by their addresses. One that is over leaves it at once, so that its ports may be used
    /// again.
    living: BTreeMap<Pair, ConnId>,
    /// One entry at most for each connection: when it wants to be called.
    deadlines: BTreeSet<(Instant, ConnId)>,
}

impl Table {
    /// Connections that hold a place.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Adds a connection.
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

    /// The connection of that name, if it was not let go.
    pub(super) fn get(&self, id: ConnId) -> Option<&Socket> {
        let place = self.places.get(id.place as usize)?;
        place.socket.as_deref().filter(|_| place.generation == id.generation)
    }

    /// The same, to change.
    pub(super) fn get_mut(&mut self, id: ConnId) -> Option<&mut Socket> {
        let place = self.places.get_mut(id.place as usize)?;
        place.socket.as_deref_mut().filter(|_| place.generation == id.generation)
    }

    /// All names.
    pub(super) fn ids(&self) -> Vec<ConnId> {
        let held = self.places.iter().enumerate().filter(|(_, p)| p.socket.is_some());
        held.map(|(i, p)| ConnId { place: i as u32, generation: p.generation }).collect()
    }

    /// The living connection between these addresses.
    pub(super) fn find(&self, pair: &Pair) -> Option<ConnId> {
        self.living.get(pair).copied()
    }

    /// The connection is over: its addresses are free and no timer runs.
    pub(super) fn bury(&mut self, id: ConnId) {
        let Some(socket) = self.get_mut(id) else { return };
        let (pair, armed) = (socket.pair, core::mem::replace(&mut socket.armed, Instant::NEVER));
        self.deadlines.remove(&(armed, id));
        if self.living.get(&pair) == Some(&id) {
            self.living.remove(&pair);
        }
    }

    /// Nobody needs it any more: its name finds nothing from now on.
    pub(super) fn remove(&mut self, id: ConnId) -> Option<Box<Socket>> {
        self.bury(id);
        let place = self.places.get_mut(id.place as usize).filter(|p| p.generation == id.generation)?;
        let socket = place.socket.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(id.place);
        Some(socket)
    }

    /// The connection wants to be called at `at`, or earlier: an entry that comes too early is harmless and
    /// cheaper than moving it with each packet.
    pub(super) fn arm(&mut self, id: ConnId, at: Instant) {
        let Some(socket) = self.get_mut(id) else { return };
        if at < socket.armed {
            let old = core::mem::replace(&mut socket.armed, at);
            self.deadlines.remove(&(old, id));
            self.deadlines.insert((at, id));
        }
    }

    /// When the first connection wants to be called.
    pub(super) fn next_at(&self) -> Instant {
        self.deadlines.first().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// Takes one connection that wanted to be called by `now`.
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
