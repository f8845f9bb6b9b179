//! Events for applications. An event that repeats before it is read is reported once.

use super::table::ConnId;
use std::collections::VecDeque;

/// An event for the application of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum SocketEvent {
    /// Our connection is open.
    Connected = 0,
    /// A connection can be accepted; reported for each, in the order of [`super::Endpoint::accept`].
    Calling = 1,
    /// Data can be read, after a read found none.
    Readable = 2,
    /// Data can be written, after a write found too little room.
    Writable = 3,
    /// The peer has sent its FIN; data before it may still be unread.
    PeerClosed = 4,
    /// All written data and our FIN are acknowledged.
    Delivered = 5,
    /// The connection has ended: [`super::Endpoint::ending`] says how. Data that arrived can still be read.
    Ended = 6,
}

impl SocketEvent {
    const ALL: [Self; 7] = [
        Self::Connected,
        Self::Calling,
        Self::Readable,
        Self::Writable,
        Self::PeerClosed,
        Self::Delivered,
        Self::Ended,
    ];
}

/// Unread events of one connection: one bit each, so a peer cannot make them many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PendingEvents(u8);

impl PendingEvents {
    /// Removes and returns the next event.
    pub(super) fn take(&mut self) -> Option<SocketEvent> {
        let news = SocketEvent::ALL.into_iter().find(|n| self.0 & 1 << *n as u8 != 0)?;
        self.0 &= !(1 << news as u8);
        Some(news)
    }
}

/// Connections with unread events, in FIFO order.
#[derive(Debug, Default)]
pub(super) struct EventQueue(pub(super) VecDeque<ConnId>);

impl EventQueue {
    /// Adds `news` for `id`, whose unread events are `unread`.
    pub(super) fn tell(&mut self, id: ConnId, unread: &mut PendingEvents, news: SocketEvent) {
        if unread.0 == 0 {
            self.0.push_back(id);
        }
        unread.0 |= 1 << news as u8;
    }
}
