//! What an application is told: each fact once, however often it happens before it is asked for.

use super::table::ConnId;
use std::collections::VecDeque;

/// Something that concerns the application of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum News {
    /// Our call was answered: the connection is open.
    Connected = 0,
    /// A caller waits to be accepted; said once for each, [`super::Endpoint::accept`] gives them in order.
    Calling = 1,
    /// There are bytes to read, after a read had found none.
    Readable = 2,
    /// There is room to write, after a write had found too little.
    Writable = 3,
    /// The peer has said its last byte; it may still be unread.
    PeerClosed = 4,
    /// All that was written, and the end after it, has reached the peer's TCP.
    Delivered = 5,
    /// The connection is over: [`super::Endpoint::ending`] says how. What had arrived can still be read.
    Ended = 6,
}

impl News {
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

/// The facts about one connection that were not asked for yet: one bit each, so a peer cannot make them many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unread(u8);

impl Unread {
    /// Adds a fact; true when the connection had none before.
    const fn add(&mut self, news: News) -> bool {
        let was = self.0;
        self.0 |= 1 << news as u8;
        was == 0
    }

    /// The next fact.
    pub(super) fn take(&mut self) -> Option<News> {
        let news = News::ALL.into_iter().find(|n| self.0 & 1 << *n as u8 != 0)?;
        self.0 &= !(1 << news as u8);
        Some(news)
    }
}

/// Connections with facts, first come first told.
#[derive(Debug, Default)]
pub(super) struct Inbox(VecDeque<ConnId>);

impl Inbox {
    /// Tells `news` about `id`, whose unread facts are `unread`.
    pub(super) fn tell(&mut self, id: ConnId, unread: &mut Unread, news: News) {
        if unread.add(news) {
            self.0.push_back(id);
        }
    }

    /// The connection whose turn it is.
    pub(super) fn first(&self) -> Option<ConnId> {
        self.0.front().copied()
    }

    /// It has no more to tell.
    pub(super) fn pop(&mut self) {
        self.0.pop_front();
    }
}
