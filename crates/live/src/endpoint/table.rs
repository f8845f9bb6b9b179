//! The connections of an endpoint: storage, lookup by address, and timers.

use super::socket::{FourTuple, Socket};
use bentpipe_base::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// Id of a connection of an endpoint. Ids are never reused: that of a closed connection is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(u64);

#[derive(Debug, Default)]
pub(super) struct Table {
    sockets: BTreeMap<ConnId, Box<Socket>>,
    /// Number of connections that were ever added.
    added: u64,
    /// Live connections by address. An ended one is removed at once, so that its ports can be reused.
    living: BTreeMap<FourTuple, ConnId>,
    /// When each connection wants to be called; at most one entry for each.
    deadlines: BTreeSet<(Instant, ConnId)>,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.sockets.len()
    }

    pub(super) fn add(&mut self, pair: FourTuple, socket: Socket) -> ConnId {
        let id = ConnId(self.added);
        self.added += 1;
        self.sockets.insert(id, Box::new(socket));
        self.living.insert(pair, id);
        id
    }

    /// The connection with that id, unless it was removed.
    pub(super) fn get(&self, id: ConnId) -> Option<&Socket> {
        self.sockets.get(&id).map(Box::as_ref)
    }

    pub(super) fn get_mut(&mut self, id: ConnId) -> Option<&mut Socket> {
        self.sockets.get_mut(&id).map(Box::as_mut)
    }

    pub(super) fn ids(&self) -> Vec<ConnId> {
        self.sockets.keys().copied().collect()
    }

    /// The live connection between these addresses.
    pub(super) fn find(&self, pair: &FourTuple) -> Option<ConnId> {
        self.living.get(pair).copied()
    }

    /// Frees the addresses of an ended connection and stops its timer.
    pub(super) fn free_addresses(&mut self, id: ConnId) {
        let Some(socket) = self.get_mut(id) else { return };
        let (pair, armed) = (socket.pair, core::mem::replace(&mut socket.armed, Instant::NEVER));
        self.deadlines.remove(&(armed, id));
        if self.living.get(&pair) == Some(&id) {
            self.living.remove(&pair);
        }
    }

    /// Removes a connection; its id is invalid from now on.
    pub(super) fn remove(&mut self, id: ConnId) -> Option<Box<Socket>> {
        self.free_addresses(id);
        self.sockets.remove(&id)
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
