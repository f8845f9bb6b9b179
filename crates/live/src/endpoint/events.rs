//! Events for applications. An event that repeats before it is read is reported once.

use super::table::ConnId;
use std::collections::{BTreeSet, VecDeque};

/// An event for the application of a connection. Unread events are read in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SocketEvent {
    /// Our connection is open.
    Connected,
    /// A connection can be accepted; reported for each, in the order of [`super::Endpoint::accept`].
    Calling,
    /// Data can be read, after a read found none.
    Readable,
    /// Data can be written, after a write found too little room.
    Writable,
    /// The peer has sent its FIN; data before it may still be unread.
    PeerClosed,
    /// All written data and our FIN are acknowledged.
    Delivered,
    /// The connection has ended: [`super::Endpoint::ending`] says how. Data that arrived can still be read.
    Ended,
}

/// Connections with unread events, in FIFO order.
#[derive(Debug, Default)]
pub(super) struct EventQueue(pub(super) VecDeque<ConnId>);

impl EventQueue {
    /// Adds `event` for `id`, whose unread events are `unread`.
    pub(super) fn tell(&mut self, id: ConnId, unread: &mut BTreeSet<SocketEvent>, event: SocketEvent) {
        if unread.is_empty() {
            self.0.push_back(id);
        }
        unread.insert(event);
    }
}
