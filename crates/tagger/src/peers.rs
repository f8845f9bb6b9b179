//! Peers that took a structure for data.
//!
//! RFC 9293, section 3.10.7.2, lets a listener queue the data of a SYN, and a host with TCP Fast Open without
//! cookies delivers it. Such a peer acknowledges the structure. It is remembered, and later flows to it start
//! without one.

use bentpipe_base::{Addr, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// The peers, each until a time.
#[derive(Debug)]
pub(crate) struct Peers {
    until: BTreeMap<Addr, Instant>,
    order: BTreeSet<(Instant, Addr)>,
    most: usize,
    time: Duration,
}

impl Peers {
    pub(crate) const fn new(most: u32, time: Duration) -> Self {
        Self { until: BTreeMap::new(), order: BTreeSet::new(), most: most as usize, time }
    }

    /// Remembers a peer; the one that would be forgotten first makes room.
    pub(crate) fn add(&mut self, now: Instant, peer: Addr) {
        let until = now + self.time;
        if let Some(before) = self.until.insert(peer, until) {
            self.order.remove(&(before, peer));
        }
        self.order.insert((until, peer));
        while self.until.len() > self.most.max(1)
            && let Some((_, first)) = self.order.pop_first()
        {
            self.until.remove(&first);
        }
    }

    /// True if the peer is remembered.
    pub(crate) fn contains(&mut self, now: Instant, peer: Addr) -> bool {
        while let Some((until, first)) = self.order.first().copied()
            && until <= now
        {
            self.order.pop_first();
            self.until.remove(&first);
        }
        self.until.contains_key(&peer)
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = Addr> {
        self.until.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_forgotten_after_its_time_or_for_others() {
        let mut peers = Peers::new(2, Duration(10));
        peers.add(Instant(0), Addr(1));
        peers.add(Instant(5), Addr(2));
        assert!(peers.contains(Instant(9), Addr(1)) && !peers.contains(Instant(10), Addr(1)));
        peers.add(Instant(11), Addr(2));
        assert!(peers.contains(Instant(20), Addr(2)), "it was seen again");
        peers.add(Instant(20), Addr(3));
        peers.add(Instant(20), Addr(4));
        assert!(!peers.contains(Instant(20), Addr(2)) && peers.contains(Instant(20), Addr(4)));
        assert_eq!((peers.addresses().count(), peers.order.len()), (2, 2));
    }
}
