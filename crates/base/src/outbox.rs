//! Packets that nodes have sent and that are not yet at the other end of their wires.

use crate::ids::{NodeId, Port};
use crate::packet::Pkt;
use core::ops::RangeFull;
use std::collections::VecDeque;

/// A packet, who sent it, and the port by which it left.
pub type Sent = (NodeId, Port, Pkt);

/// Packets in the order in which they were sent. The first is stored inline: a call of a node mostly sends
/// one.
#[derive(Debug, Default)]
pub struct Outbox {
    first: Option<Sent>,
    rest: VecDeque<Sent>,
}

impl Outbox {
    /// Adds a packet behind the others.
    #[inline]
    pub fn push_back(&mut self, sent: Sent) {
        if self.first.is_none() {
            self.first = Some(sent);
        } else {
            self.rest.push_back(sent);
        }
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn pop_front(&mut self) -> Option<Sent> {
        let sent = self.first.take();
        if !self.rest.is_empty() {
            self.first = self.rest.pop_front();
        }
        sent
    }

    /// Takes all packets.
    pub fn drain(&mut self, _: RangeFull) -> impl Iterator<Item = Sent> {
        self.first.take().into_iter().chain(self.rest.drain(..))
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// True if there is none.
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_comes_first() {
        let mut outbox = Outbox::default();
        let send = |outbox: &mut Outbox, n| outbox.push_back((NodeId(n), Port(0), Pkt::default()));
        let take = |outbox: &mut Outbox| outbox.pop_front().map(|sent| sent.0.0);
        (1..4).for_each(|n| send(&mut outbox, n));
        assert_eq!((outbox.len(), take(&mut outbox)), (3, Some(1)));
        send(&mut outbox, 4);
        assert_eq!([(); 4].map(|()| take(&mut outbox)), [Some(2), Some(3), Some(4), None]);
        (5..8).for_each(|n| send(&mut outbox, n));
        assert_eq!(outbox.drain(..).map(|sent| sent.0.0).collect::<Vec<_>>(), [5, 6, 7]);
        assert!(outbox.is_empty());
    }
}
